{{- /* What the pods of the three processes share. Each caller indents. */ -}}

{{- /* Whether the processes run in the cluster at all: with a URL, somebody runs them beside it. */ -}}
{{- define "penstock.inside" -}}
{{- if not .Values.webhook.url }}yes{{ end -}}
{{- end -}}

{{- /* The processes that the chart runs, as a JSON list. */ -}}
{{- define "penstock.processes" -}}
{{- $found := list -}}
{{- if include "penstock.inside" . -}}
{{- $found = list "webhook" "gangs" -}}
{{- if not .Values.companion.enabled }}{{ $found = list "webhook" "workloads" "gangs" }}{{ end -}}
{{- end -}}
{{ $found | toJson }}
{{- end -}}

{{- define "penstock.image" -}}
{{- if .Values.image.digest -}}
{{ printf "%s@%s" .Values.image.repository .Values.image.digest }}
{{- else -}}
{{ printf "%s:%s" .Values.image.repository (.Values.image.tag | default .Chart.AppVersion) }}
{{- end -}}
{{- end -}}

{{- /* By what the pods of one process are found: call with (dict "root" $ "component" "..."). */ -}}
{{- define "penstock.selector" -}}
app.kubernetes.io/name: penstock
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* The same, with all labels of the chart. */ -}}
{{- define "penstock.componentLabels" -}}
{{ include "penstock.labels" .root }}
app.kubernetes.io/component: {{ .component }}
{{- end -}}

{{- /* The metadata of pods. What people add never wins over what a selector goes by. */ -}}
{{- define "penstock.podMetadata" -}}
labels:
  {{- mergeOverwrite (deepCopy .root.Values.pods.labels) (include "penstock.componentLabels" . | fromYaml) | toYaml | nindent 2 }}
{{- with .root.Values.pods.annotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- /*
How pods run, whatever they run: as nobody in particular, and near no other of their kind if that can be had. It is only
a wish, since a cluster of one node is one too. What is "ordinary" comes before nobody.
*/ -}}
{{- define "penstock.podSpec" -}}
serviceAccountName: penstock-{{ .component }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with .root.Values.image.pullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
{{- if not .ordinary }}
{{- with .root.Values.pods.priorityClassName }}
priorityClassName: {{ . }}
{{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  fsGroup: 65532
  seccompProfile:
    type: RuntimeDefault
{{- with .root.Values.pods.nodeSelector }}
nodeSelector:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.pods.tolerations }}
tolerations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "penstock.spread" -}}
topologySpreadConstraints:
  {{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
  - topologyKey: {{ . }}
    maxSkew: 1
    whenUnsatisfiable: ScheduleAnyway
    labelSelector:
      matchLabels:
        {{- include "penstock.selector" $ | nindent 8 }}
    # Of a roll, the new pods alone are to lie apart; the old ones go.
    matchLabelKeys: [pod-template-hash]
  {{- end }}
{{- end -}}

{{- /* Nothing may be written but in volumes, and nothing may become more than it is. */ -}}
{{- define "penstock.containerSecurity" -}}
securityContext:
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
{{- end -}}

{{- /*
The account's token, which accounts of ours get only where it is asked for by name; and a place for what is written in
passing.
*/ -}}
{{- define "penstock.volumeMounts" -}}
- name: account
  mountPath: /var/run/secrets/kubernetes.io/serviceaccount
  readOnly: true
- name: tmp
  mountPath: /tmp
{{- end -}}

{{- define "penstock.volumes" -}}
- name: account
  projected:
    sources:
      - serviceAccountToken:
          path: token
          expirationSeconds: 3600
      - configMap:
          name: kube-root-ca.crt
          items:
            - key: ca.crt
              path: ca.crt
- name: tmp
  emptyDir:
    sizeLimit: 64Mi
{{- end -}}

{{- /* Of a NetworkPolicy: the API server, by the port its endpoints have, and names. The caller indents. */ -}}
{{- define "penstock.apiServerEgress" -}}
- ports:
    {{- range .Values.networkPolicy.apiServerPorts }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
  {{- with .Values.networkPolicy.apiServers }}
  to:
    {{- range . }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
  {{- end }}
- ports:
    - {port: 53, protocol: UDP}
    - {port: 53, protocol: TCP}
{{- end -}}

{{- /* What all three processes are told. */ -}}
{{- define "penstock.arguments" -}}
- --namespace={{ .Release.Namespace }}
- --log-level={{ .Values.logLevel }}
- --log-format={{ .Values.logFormat }}
{{- with .Values.traces.endpoint }}
- --traces-endpoint={{ . }}
{{- end }}
- --feature-gates=GangScheduling={{ .Values.featureGates.GangScheduling }},GroveIntegration={{ .Values.featureGates.GroveIntegration }}
{{- end -}}

{{- /*
What the processes are told by their environment: headers for the collector of traces, which are secret, and so in no
argument. The caller indents.
*/ -}}
{{- define "penstock.environment" -}}
{{- if and .Values.traces.endpoint .Values.traces.headersSecret.name -}}
env:
  - name: OTEL_EXPORTER_OTLP_TRACES_HEADERS
    valueFrom:
      secretKeyRef:
        name: {{ .Values.traces.headersSecret.name | quote }}
        key: {{ .Values.traces.headersSecret.key | quote }}
{{- end -}}
{{- end -}}

{{- /* How one of the two controllers is looked after: what it counts is answered by the loop that does its work. */ -}}
{{- define "penstock.controllerProbes" -}}
ports:
  - name: metrics
    containerPort: 8080
    protocol: TCP
# It waits for an API server before it answers.
startupProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 2
  timeoutSeconds: 5
  failureThreshold: 60
readinessProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 5
livenessProbe:
  httpGet: {path: /metrics, port: metrics}
  periodSeconds: 10
  timeoutSeconds: 10
  failureThreshold: 6
{{- end -}}
