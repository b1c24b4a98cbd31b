"""The status patches of the lab's stages, as Go templates over the object (see `stages`).

A patch replaces `containerStatuses` and `initContainerStatuses` whole and merges conditions by
type, so each template writes complete lists, and keeps a condition's transition time while its
status stays.
"""

from typing import Final

_ANNOTATIONS: Final = (
    "{{ $notes := or .metadata.annotations dict }}{{ $root := . }}{{ $now := Now }}"
)

_BEHAVIOUR: Final = """
{{ $behaviour := or (index $notes "lab.penstock.dev/behaviour") "" }}
{{ $code := or (index $notes "lab.penstock.dev/exit-code") "1" }}
"""

# The addresses of the pod and its node, as a kubelet reports them once the sandbox is up.
_ADDRESSES: Final = """
{{ with NodeIPWith .spec.nodeName }}
hostIP: {{ . | Quote }}
hostIPs: [{ip: {{ . | Quote }}}]
{{ end }}
{{ $ip := PodIPWith .spec.nodeName (or .spec.hostNetwork false) (or .metadata.uid "")
   (or .metadata.name "") (or .metadata.namespace "") }}
podIP: {{ $ip | Quote }}
podIPs: [{ip: {{ $ip | Quote }}}]
startTime: {{ $now | Quote }}
"""

# One condition, given $type, $true, $reason and $message.
_CONDITION: Final = """
{{ $status := ternary "True" "False" $true }}{{ $since := $now }}
{{ range $root.status.conditions }}{{ if and (eq .type $type) (eq .status $status) }}
{{ $since = .lastTransitionTime }}{{ end }}{{ end }}
- type: {{ $type }}
  status: {{ $status | Quote }}
  reason: {{ $reason | Quote }}
  message: {{ $message | Quote }}
  lastTransitionTime: {{ $since | Quote }}
"""


def _condition(kind: str, true: str, reason: str = '""', message: str = '""') -> str:
    values = f'{{{{ $type := "{kind}" }}}}{{{{ $true := {true} }}}}'
    values += f"{{{{ $reason := {reason} }}}}{{{{ $message := {message} }}}}"
    return f"{{{{ with $root }}}}{values}{_CONDITION}{{{{ end }}}}"


# What main containers are while they wait, given $reason.
_WAITING: Final = """
containerStatuses:
{{ range .spec.containers }}
- {name: {{ .name | Quote }}, image: {{ .image | Quote }}, imageID: "", restartCount: 0,
   ready: false, started: false, state: {waiting: {reason: PodInitializing}}}
{{ end }}
"""

# Whether containers are ready follows the behaviour; whether the pod is, also its readiness gates,
# whose conditions belong to whoever owns them and are only read here.
_READINESS_CONDITIONS: Final = (
    """
{{ $unready := list }}{{ range .spec.containers }}
{{ if or (eq $behaviour "never-ready") (and (eq $behaviour "crash") .readinessProbe) }}
{{ $unready = append $unready .name }}{{ end }}{{ end }}
{{ $unmet := list }}{{ range .spec.readinessGates }}{{ $gate := .conditionType }}{{ $met := false }}
{{ range $root.status.conditions }}
{{ if and (eq .type $gate) (eq .status "True") }}{{ $met = true }}{{ end }}{{ end }}
{{ if not $met }}{{ $unmet = append $unmet $gate }}{{ end }}{{ end }}
{{ $why := "" }}{{ $words := "" }}
{{ if $unready }}{{ $why = "ContainersNotReady" }}
{{ $words = printf "containers with unready status: [%s]" (join " " $unready) }}
{{ else if $unmet }}{{ $why = "ReadinessGatesNotReady" }}
{{ $words = printf "readiness gates not yet True: [%s]" (join " " $unmet) }}{{ end }}
"""
    + _condition(
        "ContainersReady",
        "not $unready",
        '(ternary "ContainersNotReady" "" (not (not $unready)))',
        '(ternary $words "" (not (not $unready)))',
    )
    + _condition("Ready", "not $why", "$why", "$words")
)

_NOT_READY_CONDITIONS: Final = _condition("ContainersReady", "false", "$reason", '""') + _condition(
    "Ready", "false", "$reason", '""'
)

# Main containers running. Keeps the start, restarts and last end of those that already are or were.
_RUNNING: Final = """
phase: Running
observedGeneration: {{ or .metadata.generation 0 }}
containerStatuses:
{{ range .spec.containers }}{{ $name := .name }}{{ $old := dict }}
{{ range $root.status.containerStatuses }}{{ if eq .name $name }}{{ $old = . }}{{ end }}{{ end }}
{{ $state := or $old.state dict }}{{ $running := or $state.running dict }}
{{ $restarts := int (or $old.restartCount 0) }}
{{ if or $old.lastState.terminated $state.terminated }}{{ if not $state.running }}
{{ $restarts = add $restarts 1 }}{{ end }}{{ end }}
- name: {{ $name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  started: true
  ready: {{ not (or (eq $behaviour "never-ready") (and (eq $behaviour "crash") .readinessProbe)) }}
  restartCount: {{ $restarts }}
  state: {running: {startedAt: {{ or $running.startedAt $now | Quote }}}}
  lastState: {{ or $old.lastState dict | toJson }}
{{ end }}
"""

_RUN: Final = "conditions:\n" + _READINESS_CONDITIONS

START_AT_ONCE: Final = (
    _ANNOTATIONS
    + _BEHAVIOUR
    + _RUN
    + _condition("Initialized", "true")
    + _condition("PodReadyToStartContainers", "true")
    + _ADDRESSES
    + _RUNNING
)

START: Final = _ANNOTATIONS + _BEHAVIOUR + _RUN + _RUNNING
READINESS: Final = START
RESTART: Final = START

# Init containers start in order: a sidecar lets the next one start at once, another must end first.
# $open says whether the next may start; where it stays true to the end, init is over.
_INIT_STATUSES: Final = """
{{ $open := true }}
initContainerStatuses:
{{ range .spec.initContainers }}
{{ $name := .name }}{{ $sidecar := eq (or .restartPolicy "") "Always" }}
{{ $old := dict }}
{{ range $root.status.initContainerStatuses }}
{{ if eq .name $name }}{{ $old = . }}{{ end }}{{ end }}
{{ $state := or $old.state dict }}{{ $ended := $state.terminated }}
{{ if and $state.running (not $sidecar) }}
{{ $ended = dict "exitCode" 0 "reason" "Completed"
   "startedAt" $state.running.startedAt "finishedAt" $now }}
{{ end }}
- name: {{ $name | Quote }}
  image: {{ .image | Quote }}
  imageID: ""
  restartCount: 0
{{ if $ended }}
  ready: true
  started: false
  state: {terminated: {{ toJson $ended }}}
{{ else if not $open }}
  ready: false
  started: false
  state: {waiting: {reason: PodInitializing}}
{{ else }}
  ready: {{ $sidecar }}
  started: true
{{ $since := $now }}{{ with $state.running }}{{ $since = .startedAt }}{{ end }}
  state: {running: {startedAt: {{ $since | Quote }}}}
{{ $open = $sidecar }}
{{ end }}
{{ end }}
"""

_INITIALIZED: Final = """
{{ $reason := ternary "" "ContainersNotInitialized" $open }}
conditions:
""" + _condition("Initialized", "$open", "$reason")

ADMIT: Final = (
    _ANNOTATIONS
    + _INIT_STATUSES
    + _INITIALIZED
    + _condition("PodReadyToStartContainers", "true")
    + '{{ $reason = "ContainersNotReady" }}'
    + _NOT_READY_CONDITIONS
    + _ADDRESSES
    + _WAITING
    + "phase: Pending\nobservedGeneration: {{ or .metadata.generation 0 }}\n"
)

INIT_NEXT: Final = _ANNOTATIONS + _INIT_STATUSES + _INITIALIZED


def _ended(kind: str, code: str, reason: str, *, crash: bool = False) -> str:
    """Statuses of one list of containers that end now; those that never ran stay as they are."""
    terminated = (
        f'dict "exitCode" (int ({code})) "reason" ({reason}) '
        '"startedAt" .state.running.startedAt "finishedAt" $now'
    )
    state = (
        'dict "waiting" (dict "reason" "CrashLoopBackOff" "message" "pausing before a new start")'
        if crash
        else 'dict "terminated" $end'
    )
    last = '{{ $_ := set $one "lastState" (dict "terminated" $end) }}' if crash else ""
    return f"""
{{{{ with .status.{kind} }}}}
{kind}:
{{{{ range . }}}}{{{{ $one := deepCopy . }}}}
{{{{ if .state.running }}}}{{{{ $end := {terminated} }}}}
{{{{ $_ := set $one "ready" false }}}}{{{{ $_ := set $one "started" false }}}}
{{{{ $_ := set $one "state" ({state}) }}}}{last}{{{{ end }}}}
- {{{{ toJson $one }}}}
{{{{ end }}}}
{{{{ end }}}}
"""


COMPLETE: Final = (
    _ANNOTATIONS
    + '{{ $reason := "PodCompleted" }}\nconditions:\n'
    + _NOT_READY_CONDITIONS
    + _ended("containerStatuses", "0", '"Completed"')
    + _ended("initContainerStatuses", "0", '"Completed"')
    + "phase: Succeeded\n"
)

FAIL: Final = (
    _ANNOTATIONS
    + _BEHAVIOUR
    + '{{ $reason := "PodFailed" }}\nconditions:\n'
    + _NOT_READY_CONDITIONS
    + _ended("containerStatuses", "$code", '(ternary "Completed" "Error" (eq $code "0"))')
    + _ended("initContainerStatuses", "0", '"Completed"')
    + "phase: Failed\n"
)

CRASH: Final = (
    _ANNOTATIONS
    + _BEHAVIOUR
    + '{{ $reason := "ContainersNotReady" }}\nconditions:\n'
    + _NOT_READY_CONDITIONS
    + _ended("containerStatuses", "$code", '"Error"', crash=True)
)

# A pod that heeds SIGTERM succeeds if it ran; one that is killed, or never ran, fails.
STOP: Final = (
    _ANNOTATIONS
    + '{{ $killed := eq (or (index $notes "lab.penstock.dev/ignore-sigterm") "") "true" }}'
    + '{{ $code := ternary "137" "0" $killed }}{{ $word := ternary "Error" "Completed" $killed }}'
    + '{{ $phase := ternary "Failed" "Succeeded" (or $killed (ne .status.phase "Running")) }}'
    + '{{ $reason := ternary "PodFailed" "PodCompleted" (eq $phase "Failed") }}\nconditions:\n'
    + _NOT_READY_CONDITIONS
    + _ended("containerStatuses", "$code", "$word")
    + _ended("initContainerStatuses", "$code", "$word")
    + "phase: {{ $phase }}\n"
)

_NODE_CONDITIONS: Final = """
{{ $root := . }}{{ $now := Now }}
conditions:
{{ range NodeConditions }}{{ $type := .type }}{{ $status := .status }}{{ $since := $now }}
{{ range $root.status.conditions }}{{ if and (eq .type $type) (eq .status $status) }}
{{ $since = .lastTransitionTime }}{{ end }}{{ end }}
- type: {{ $type }}
  status: {{ $status | Quote }}
  reason: {{ .reason | Quote }}
  message: {{ .message | Quote }}
  lastHeartbeatTime: {{ $now | Quote }}
  lastTransitionTime: {{ $since | Quote }}
{{ end }}
"""

NODE_HEARTBEAT: Final = _NODE_CONDITIONS

NODE_UP: Final = (
    _NODE_CONDITIONS
    + """
{{ if not .status.addresses }}
addresses:
- {type: Hostname, address: {{ .metadata.name | Quote }}}
{{ end }}
{{ with NodePort }}daemonEndpoints: {kubeletEndpoint: {Port: {{ . }}}}{{ end }}
phase: Running
"""
)

NODE_DOWN: Final = """
conditions:
- type: Ready
  status: "False"
  reason: KubeletNotReady
  message: "made not ready by the annotation lab.penstock.dev/behaviour"
  lastHeartbeatTime: {{ Now | Quote }}
  lastTransitionTime: {{ Now | Quote }}
"""
