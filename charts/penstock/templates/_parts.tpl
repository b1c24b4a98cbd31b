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

{{- /* For the metadata of a webhook configuration: what is on, and who puts the CA bundle in, if gangs does not. */ -}}
{{- define "penstock.injectedBundle" -}}
annotations:
  {{- include "penstock.featureGates" . | nindent 2 }}
  {{- if .Values.certManager.enabled }}
  cert-manager.io/inject-ca-from: {{ .Release.Namespace }}/penstock-webhook
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
