{{- /*
What the guards share. A guard is a ValidatingAdmissionPolicy: the API server judges by it alone, so it holds while
every webhook is down. Its expressions see the object as all webhooks left it.

Where many requests are judged there is one matchCondition, with what nearly all of them end at first: of several the API
server works out each, even when the first has said no.
*/ -}}

{{- /*
Whether the request's namespace is one that the webhooks look at. It is asked here and by no namespaceSelector: the API
server reads those of each guard anew for every request, whatever that is about.
*/ -}}
{{- define "penstock.isGuarded" -}}
!(request.namespace in {{ include "penstock.leftOut" . }})
{{- end -}}

{{- /* Who may lift our gate. Asked without a namespace: a namespace's own admin passes a namespaced question. */ -}}
{{- define "penstock.mayLift" -}}
authorizer.group('penstock.dev').resource('schedulinggates').check('lift').allowed()
{{- end -}}

{{- /* Who may make pods of gangs that have a custom resource. */ -}}
{{- define "penstock.mayMakeGangPods" -}}
authorizer.group('penstock.dev').resource('gangpods').check('create').allowed()
{{- end -}}

{{- /* The schedulers whose pods are ours, by whatever name, as a CEL list. */ -}}
{{- define "penstock.schedulers" -}}
{{ printf "['%s']" (join "', '" (concat .Values.schedulers .Values.schedulerAliases | uniq)) }}
{{- end -}}

{{- /*
Whether a pod says that it was made for a set: what is the set's own doing goes by that, whatever the scheduler. Any
group counts, as an owner's is not looked at. Call with the object's name.
*/ -}}
{{- define "penstock.ofASet" -}}
{{ . }}.metadata.?ownerReferences.orValue([]).exists(o, o.kind in {{ include "penstock.owners" . }})
{{- end -}}

{{- /*
Whether something says that it was made for a set. Services and autoscalers choose a set's pods by this label, whatever
scheduler those are for. Call with the object's name.
*/ -}}
{{- define "penstock.saysMadeForASet" -}}
{{ . }}.metadata.?labels[?'app.kubernetes.io/managed-by'].orValue('') == 'grove-operator'
{{- end -}}

{{- /* What the size and the minimum of a gang look like: 1 to 10000, as many pods as a clique may have. */ -}}
{{- define "penstock.count" -}}
'^([1-9][0-9]{0,3}|10000)$'
{{- end -}}

{{- /* The kinds that a set's pods, or what they belong to, have as owners; as a CEL list. */ -}}
{{- define "penstock.owners" -}}
['PodClique', 'PodCliqueScalingGroup', 'PodCliqueSet']
{{- end -}}

{{- /*
Whether a pod's labels and annotations are too many to look through, as no pod's are: a guard's time grows with their
square, and a few tens of thousands would keep the API server busy for a minute. Call with the object's name.
*/ -}}
{{- define "penstock.tooMany" -}}
size({{ . }}.metadata.?labels.orValue({})) + size({{ . }}.metadata.?annotations.orValue({})) > 1000
{{- end -}}

{{- /* What tidies up in any cluster: it adopts, orphans and collects, and must be able to do so at all times. */ -}}
{{- define "penstock.caretakers" -}}
{{- $names := list "system:kube-controller-manager" -}}
{{- range list "generic-garbage-collector" "namespace-controller" "replicaset-controller" "replication-controller" "statefulset-controller" "job-controller" -}}
{{- $names = append $names (printf "system:serviceaccount:kube-system:%s" .) -}}
{{- end -}}
{{ printf "['%s']" (join "', '" $names) }}
{{- end -}}

{{- /* The binding of one guard: call with (dict "root" $ "name" "..." "action" "Deny"). */ -}}
{{- define "penstock.guardBinding" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: {{ .name }}
  labels:
    {{- include "penstock.labels" .root | nindent 4 }}
    app.kubernetes.io/component: guards
  annotations:
    {{- include "penstock.featureGates" .root | nindent 4 }}
spec:
  policyName: {{ .name }}
  validationActions: [{{ .action }}]
{{- end -}}

{{- /* The head of one guard: call with (dict "root" $ "name" "..."). */ -}}
{{- define "penstock.guardHead" -}}
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: {{ .name }}
  labels:
    {{- include "penstock.labels" .root | nindent 4 }}
    app.kubernetes.io/component: guards
{{- end -}}
