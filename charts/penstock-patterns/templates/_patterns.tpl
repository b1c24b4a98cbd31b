{{- /* The four patterns: call each with (dict "root" $ "name" "..." "set" ...). */ -}}

{{- define "penstock-patterns.singleNode" -}}
{{ include "penstock-patterns.head" . }}
spec:
  replicas: {{ .set.replicas | default 1 }}
  template:
    {{- with .set.topology }}
    {{- include "penstock-patterns.topology" . | nindent 4 }}
    {{- end }}
    cliques:
      {{- include "penstock-patterns.clique" (dict "name" "server" "of" .set) | nindent 6 }}
{{- end -}}

{{- define "penstock-patterns.leaderWorkers" -}}
{{- $startup := .set.startup | default "together" }}
{{ include "penstock-patterns.head" . }}
spec:
  replicas: {{ .set.replicas | default 1 }}
  template:
    cliqueStartupType: {{ eq $startup "together" | ternary "CliqueStartupTypeAnyOrder" "CliqueStartupTypeExplicit" }}
    cliques:
      {{- $after := eq $startup "workersFirst" | ternary (list "worker") list }}
      {{- include "penstock-patterns.clique" (dict "name" "leader" "of" .set.leader "after" $after) | nindent 6 }}
      {{- $after = eq $startup "leaderFirst" | ternary (list "leader") list }}
      {{- include "penstock-patterns.clique" (dict "name" "worker" "of" .set.workers "count" .set.workers.count "after" $after) | nindent 6 }}
    podCliqueScalingGroups:
      {{- $roles := list "leader" "worker" }}
      {{- include "penstock-patterns.group" (dict "name" "engine" "cliques" $roles "copies" .set.copies "topology" .set.topology "scale" .set.scale) | nindent 6 }}
{{- end -}}

{{- define "penstock-patterns.disaggregated" -}}
{{ include "penstock-patterns.head" . }}
spec:
  replicas: {{ .set.replicas | default 1 }}
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    {{- with .set.topology }}
    {{- include "penstock-patterns.topology" . | nindent 4 }}
    {{- end }}
    cliques:
      {{- $after := list "prefill" "decode" }}
      {{- include "penstock-patterns.clique" (dict "name" "router" "of" .set.router "count" .set.router.count "after" $after) | nindent 6 }}
      {{- range $stage := list "prefill" "decode" }}
      {{- $of := index $.set $stage }}
      {{- include "penstock-patterns.clique" (dict "name" $stage "of" $of "count" $of.count) | nindent 6 }}
      {{- end }}
    podCliqueScalingGroups:
      {{- range $stage := list "prefill" "decode" }}
      {{- $of := index $.set $stage }}
      {{- include "penstock-patterns.group" (dict "name" (printf "%s-pool" $stage) "cliques" (list $stage) "copies" $of.copies "topology" $of.topology "scale" $of.scale) | nindent 6 }}
      {{- end }}
{{- end -}}

{{- define "penstock-patterns.pipeline" -}}
{{ include "penstock-patterns.head" . }}
spec:
  replicas: {{ .set.replicas | default 1 }}
  template:
    cliqueStartupType: CliqueStartupTypeExplicit
    cliques:
      {{- $stages := list }}
      {{- range .set.stages }}
      {{- $stages = append $stages .name }}
      {{- include "penstock-patterns.clique" (dict "name" .name "of" . "count" .count "after" .after) | nindent 6 }}
      {{- end }}
    podCliqueScalingGroups:
      {{- include "penstock-patterns.group" (dict "name" "pipeline" "cliques" $stages "copies" .set.copies "topology" .set.topology "scale" .set.scale) | nindent 6 }}
{{- end -}}
