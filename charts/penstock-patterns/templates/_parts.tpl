{{- /* What the patterns are made of. Each can be called from a chart that has this one as a dependency. */ -}}

{{- define "penstock-patterns.labels" -}}
app.kubernetes.io/name: {{ .name }}
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
{{- with .set.queue }}
penstock.dev/queue: {{ . }}
{{- end }}
{{- with .set.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /* The head of a set: call with (dict "root" $ "name" "..." "set" ...). */ -}}
{{- define "penstock-patterns.head" -}}
apiVersion: grove.io/v1alpha1
kind: PodCliqueSet
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "penstock-patterns.labels" . | nindent 4 }}
  {{- with .set.annotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}

{{- /* How close together: call with what the values say of it. */ -}}
{{- define "penstock-patterns.topology" -}}
topologyConstraint:
  topologyName: {{ .name }}
  pack:
    {{- toYaml (omit . "name") | nindent 4 }}
{{- end -}}

{{- /* A podSpec of one container called main: call with what the values say of it. */ -}}
{{- define "penstock-patterns.podSpec" -}}
{{- $main := dict "name" "main" "image" .image -}}
{{- range $key := list "command" "args" "env" -}}
{{- with index $ $key }}{{ $_ := set $main $key . }}{{ end -}}
{{- end -}}
{{- if hasKey . "port" -}}
{{- $_ := set $main "ports" (list (dict "name" "http" "containerPort" .port "protocol" "TCP")) -}}
{{- with .readyPath }}{{ $_ := set $main "readinessProbe" (dict "httpGet" (dict "path" . "port" $.port)) }}{{ end -}}
{{- end -}}
{{- $requests := dict -}}
{{- range $key := list "cpu" "memory" -}}
{{- with index $ $key }}{{ $_ := set $requests $key (toString .) }}{{ end -}}
{{- end -}}
{{- $resources := dict -}}
{{- with $requests }}{{ $_ := set $resources "requests" . }}{{ end -}}
{{- with .gpus -}}
{{- $_ := set $resources "limits" (dict ($.gpuResource | default "nvidia.com/gpu") (toString .)) -}}
{{- end -}}
{{- with $resources }}{{ $_ := set $main "resources" . }}{{ end -}}
{{- $spec := deepCopy (.podSpec | default dict) -}}
{{- $others := list -}}
{{- range $spec.containers -}}
{{- if eq .name "main" }}{{ $main = mergeOverwrite $main . }}{{ else }}{{ $others = append $others . }}{{ end -}}
{{- end -}}
{{- $_ := set $spec "containers" (prepend $others $main) -}}
{{ toYaml $spec }}
{{- end -}}

{{- /* One role: call with (dict "name" "..." "of" ... "count" 1 "after" (list)). */ -}}
{{- define "penstock-patterns.clique" -}}
- name: {{ .name }}
  spec:
    roleName: {{ .name }}
    replicas: {{ .count | default 1 }}
    {{- with .after }}
    startsAfter: {{ toJson . }}
    {{- end }}
    podSpec:
      {{- include "penstock-patterns.podSpec" .of | nindent 6 }}
{{- end -}}

{{- /* Roles that start and scale together: call with (dict "name" "..." "cliques" (list) "copies" 1 "minimum" 1). */ -}}
{{- define "penstock-patterns.group" -}}
- name: {{ .name }}
  cliqueNames: {{ toJson .cliques }}
  replicas: {{ .copies | default 1 }}
  minAvailable: {{ .minimum | default 1 }}
  {{- with .topology }}
  {{- include "penstock-patterns.topology" . | nindent 2 }}
  {{- end }}
  {{- with .scale }}
  scaleConfig:
    {{- toYaml . | nindent 4 }}
  {{- end }}
{{- end -}}
