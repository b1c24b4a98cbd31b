// What Kubernetes' own helper says that pods take of their node, for our arithmetic to be held
// against. Writes one JSON document to standard output: the same one each time.
//
// `placed` is what kube-scheduler asks of a node for a pod that has none yet; `running` is what it
// counts on the node once the pod is there, left out where it is the same.
package main

import (
	"bytes"
	"encoding/json"
	"log"
	"maps"
	"math/rand"
	"os"
	"reflect"

	core "k8s.io/api/core/v1"
	resources "k8s.io/component-helpers/resource"
)

type amounts map[string]int64

type object = map[string]any

type vector struct {
	Pod     object  `json:"pod"`
	Placed  amounts `json:"placed"`
	Running amounts `json:"running,omitzero"`
}

// Features whose combinations are all drawn at least once.
type shape struct {
	sidecars, starting, whole, overhead, resize string
}

const random = 80

var (
	sidecars = []string{"", "first", "last", "both"}
	starting = []string{"", "small", "large"}
	wholes   = []string{"", "some"}
	overhead = []string{"", "some"}
	resizes  = []string{"", "done", "growing", "shrinking", "deferred", "infeasible"}

	// Quantities as people write them, small to large: zero, odd and not whole among them.
	cpus     = []string{"0", "100n", "1m", "0.1", "250m", "0.5", ".75", "1", "1500m", "2.000", "3", "1e1", "12", "1k"}
	memories = []string{"0", "1", "0.5", "1500m", "999", "1Ki", "1e3", "1M", "1Mi", "1.5Gi", "2G", "1e9", "3Gi", "1Ti"}
	devices  = []string{"0", "1", "2", "4", "8"}
	pages    = []string{"0", "2Mi", "4Mi", "1Gi"}
	names    = []string{"cpu", "memory", "ephemeral-storage", "nvidia.com/gpu", "hugepages-2Mi"}
)

func main() {
	draw := rand.New(rand.NewSource(20250801))
	var vectors []vector
	for _, s := range sidecars {
		for _, i := range starting {
			for _, w := range wholes {
				for _, o := range overhead {
					for _, r := range resizes {
						vectors = append(vectors, made(draw, shape{s, i, w, o, r}))
					}
				}
			}
		}
	}
	for range random {
		vectors = append(vectors, made(draw, shape{
			any1(draw, sidecars), any1(draw, starting), any1(draw, wholes), any1(draw, overhead), any1(draw, resizes),
		}))
	}
	write(vectors)
}

func write(vectors []vector) {
	var out bytes.Buffer
	out.WriteString("[\n")
	for i, each := range vectors {
		line, err := json.Marshal(each)
		if err != nil {
			log.Fatal(err)
		}
		out.Write(line)
		if i < len(vectors)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]\n")
	if _, err := os.Stdout.Write(out.Bytes()); err != nil {
		log.Fatal(err)
	}
}

func any1[T any](draw *rand.Rand, of []T) T {
	return of[draw.Intn(len(of))]
}

// made draws a pod of the shape and asks the helper about it.
func made(draw *rand.Rand, as shape) vector {
	containers := []object{container(draw, "a", 0)}
	if draw.Intn(3) == 0 {
		containers = append(containers, container(draw, "b", 0))
	}
	var starts []object
	if as.sidecars == "first" || as.sidecars == "both" {
		starts = append(starts, sidecar(draw, "s"))
	}
	switch as.starting {
	case "small":
		starts = append(starts, container(draw, "i", 0))
	case "large":
		starts = append(starts, container(draw, "i", 6))
	}
	if as.sidecars == "last" || as.sidecars == "both" {
		starts = append(starts, sidecar(draw, "t"))
	}
	spec := object{"containers": containers}
	if len(starts) > 0 {
		spec["initContainers"] = starts
	}
	if as.whole != "" {
		asked := asking(draw, 4, "cpu", "memory", "hugepages-2Mi")
		spec["resources"] = object{"requests": asked}
		if draw.Intn(2) == 0 {
			spec["resources"] = object{"requests": asked, "limits": maps.Clone(asked)}
		}
	}
	if as.overhead != "" {
		spec["overhead"] = asking(draw, 0, "cpu", "memory")
	}
	pod := object{"spec": spec}
	if status := resized(draw, as, containers, starts); status != nil {
		pod["status"] = status
	}
	return told(pod)
}

func container(draw *rand.Rand, name string, from int) object {
	asked := asking(draw, from, names...)
	if len(asked) == 0 {
		return object{"name": name}
	}
	limited := object{"requests": asked}
	if draw.Intn(8) == 0 {
		limited["limits"] = maps.Clone(asked)
	}
	return object{"name": name, "resources": limited}
}

func sidecar(draw *rand.Rand, name string) object {
	made := container(draw, name, 0)
	made["restartPolicy"] = "Always"
	return made
}

// asking draws amounts for some of the resources, none below the given place of its list.
func asking(draw *rand.Rand, from int, of ...string) map[string]string {
	asked := map[string]string{}
	for _, name := range of {
		list := map[string][]string{
			"cpu": cpus, "nvidia.com/gpu": devices, "hugepages-2Mi": pages,
		}[name]
		if list == nil {
			list = memories
		}
		if odds := map[string]int{"cpu": 8, "memory": 8}[name]; draw.Intn(10) < max(odds, 2) {
			asked[name] = any1(draw, list[min(from, len(list)-2):])
		}
	}
	return asked
}

// resized draws what a kubelet would say of the pod. Some statuses are missing, as they may be.
func resized(draw *rand.Rand, as shape, containers, starts []object) object {
	if as.resize == "" {
		return nil
	}
	status := object{}
	switch as.resize {
	case "deferred":
		status["conditions"] = pending(core.PodReasonDeferred)
	case "infeasible":
		status["conditions"] = pending(core.PodReasonInfeasible)
	}
	if list := granted(draw, as, containers); list != nil {
		status["containerStatuses"] = list
	}
	if list := granted(draw, as, starts); list != nil {
		status["initContainerStatuses"] = list
	}
	if as.whole != "" && draw.Intn(2) == 0 {
		if draw.Intn(4) > 0 {
			status["allocatedResources"] = asking(draw, 0, "cpu", "memory")
		}
		status["resources"] = object{}
		if draw.Intn(4) > 0 {
			status["resources"] = object{"requests": asking(draw, 0, "cpu", "memory")}
		}
	}
	return status
}

func granted(draw *rand.Rand, as shape, of []object) []object {
	var list []object
	for _, each := range of {
		if draw.Intn(8) > 0 {
			list = append(list, grant(draw, as, each))
		}
	}
	return list
}

func pending(reason string) []object {
	return []object{{"type": string(core.PodResizePending), "status": "True", "reason": reason}}
}

// grant says what a container was granted, and what is set for it.
func grant(draw *rand.Rand, as shape, of object) object {
	made := object{"name": of["name"]}
	asked := map[string]string{}
	if limited, is := of["resources"].(object); is {
		asked = limited["requests"].(map[string]string)
	}
	granted, set := maps.Clone(asked), maps.Clone(asked)
	switch as.resize {
	case "growing": // granted, not set yet
		set = asking(draw, 0, "cpu", "memory")
	case "shrinking":
		granted, set = asking(draw, 0, "cpu", "memory"), asking(draw, 6, "cpu", "memory")
	case "deferred", "infeasible":
		granted = asking(draw, 0, "cpu", "memory")
		set = maps.Clone(granted)
	}
	if draw.Intn(6) > 0 {
		made["allocatedResources"] = granted
	}
	if draw.Intn(6) > 0 {
		made["resources"] = object{"requests": set}
	}
	return made
}

// told asks the helper as kube-scheduler does with its default feature gates, each time about a
// fresh copy: the helper may add overhead into the very quantity that the pod asked for as a whole.
func told(pod object) vector {
	placed := counted(resources.PodRequests(decoded(pod), resources.PodResourcesOptions{}))
	running := counted(resources.PodRequests(decoded(pod), resources.PodResourcesOptions{
		UseStatusResources: true,
		InPlacePodLevelResourcesVerticalScalingEnabled: true,
	}))
	if reflect.DeepEqual(placed, running) {
		running = nil
	}
	return vector{pod, placed, running}
}

func decoded(pod object) *core.Pod {
	raw, err := json.Marshal(pod)
	if err != nil {
		log.Fatal(err)
	}
	var made core.Pod
	if err := json.Unmarshal(raw, &made); err != nil {
		log.Fatalf("%s: %v", raw, err)
	}
	return &made
}

// counted gives whole numbers as kube-scheduler adds them up on a node, without zeros.
func counted(list core.ResourceList) amounts {
	found := amounts{}
	for name, quantity := range list {
		amount := quantity.Value()
		if name == core.ResourceCPU {
			amount = quantity.MilliValue()
		}
		if amount != 0 {
			found[string(name)] = amount
		}
	}
	return found
}
