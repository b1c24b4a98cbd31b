{{- /* Labels of every object; the caller indents. */ -}}
{{- define "penstock.labels" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
app.kubernetes.io/part-of: penstock
{{- with .Values.labels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- /*
Which namespaces the webhooks see. The mandatory ones are merged in here, not in the values, so that nobody
can drop them: a webhook that is down must not stop what would bring it back.
*/ -}}
{{- define "penstock.namespaceSelector" -}}
matchExpressions:
  - key: kubernetes.io/metadata.name
    operator: NotIn
    values:
      {{- include "penstock.leftOutNamespaces" . | fromJsonArray | toYaml | nindent 6 }}
{{- end -}}

{{- define "penstock.leftOutNamespaces" -}}
{{- $always := list "kube-system" "kube-public" "kube-node-lease" .Release.Namespace -}}
{{- concat $always .Values.webhook.excludedNamespaces | uniq | toJson -}}
{{- end -}}

{{- /* The same, as a CEL list. */ -}}
{{- define "penstock.leftOut" -}}
{{ printf "['%s']" (join "', '" (include "penstock.leftOutNamespaces" . | fromJsonArray)) }}
{{- end -}}

{{- /* For the metadata of a webhook configuration: what is on, what is closed once it is proven, and who puts the CA bundle
in, if gangs does not: call with (dict "root" $ "kind" "..."). */ -}}
{{- define "penstock.injectedBundle" -}}
annotations:
  {{- include "penstock.featureGates" .root | nindent 2 }}
  {{- with include "penstock.closing" . }}
  penstock.dev/closes-when-proven: {{ . }}
  {{- end }}
  {{- if .root.Values.certManager.enabled }}
  cert-manager.io/inject-ca-from: {{ .root.Release.Namespace }}/penstock-webhook
  {{- end }}
{{- end -}}

{{- /*
How the API server reaches one path of the webhook: call with (dict "root" $ "path" "/...").
caBundle is left out on purpose: gangs issues the certificate and patches it in, and since no revision of the
chart ever names the field, Helm's three-way merge leaves it alone.
*/ -}}
{{- define "penstock.clientConfig" -}}
{{- if .root.Values.webhook.url -}}
url: {{ printf "%s%s" .root.Values.webhook.url .path | quote }}
{{- else -}}
service:
  name: penstock-webhook
  namespace: {{ .root.Release.Namespace }}
  port: 443
  path: {{ .path }}
{{- end -}}
{{- end -}}

{{/*
Of a stored set only what rules look at is judged anew. Its finalizer comes and goes without us: no webhook that is
away may keep a set from going, and each set is spared two calls.
*/}}
{{- define "penstock.changesASet" -}}
- name: changes-what-is-judged
  expression: >-
    request.operation == 'CREATE' || object.spec != oldObject.spec ||
    object.metadata.?annotations.orValue({}) != oldObject.metadata.?annotations.orValue({}) ||
    object.metadata.?labels.orValue({}) != oldObject.metadata.?labels.orValue({})
{{- end -}}

{{- /* For the metadata of what gates new pods: gangs reads there what is switched off. The caller indents. */ -}}
{{- define "penstock.featureGates" -}}
penstock.dev/feature-gates: "GangScheduling={{ .Values.featureGates.GangScheduling }},GroveIntegration={{ .Values.featureGates.GroveIntegration }}"
{{- end -}}

{{- /*
What becomes of what a webhook is asked about that does not answer. Open while nothing is proven; one that was closed
stays so, whoever upgrades: call with (dict "root" $ "kind" "..." "name" "...").
*/ -}}
{{- define "penstock.failurePolicy" -}}
{{- $found := "Fail" -}}
{{- if .root.Values.webhook.proof.enabled -}}
{{- $found = "Ignore" -}}
{{- $there := lookup "admissionregistration.k8s.io/v1" .kind "" "penstock" | default dict -}}
{{- range $there.webhooks -}}
{{- if and (eq .name $.name) .failurePolicy }}{{ $found = .failurePolicy }}{{ end -}}
{{- end -}}
{{- end -}}
{{ $found }}
{{- end -}}

{{- /* Which webhooks of a configuration are closed once they are proven; the others stay open for good. */ -}}
{{- define "penstock.closing" -}}
{{- $found := list -}}
{{- if not .root.Values.companion.enabled -}}
{{- $found = append $found "podcliquesets.penstock.dev" -}}
{{- if eq .kind "ValidatingWebhookConfiguration" -}}
{{- $found = append $found "clustertopologybindings.penstock.dev" -}}
{{- if .root.Values.featureGates.GroveIntegration }}{{ $found = append $found "managed.penstock.dev" }}{{ end -}}
{{- end -}}
{{- end -}}
{{ $found | join "," }}
{{- end -}}
