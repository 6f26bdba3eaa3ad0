{{- define "corral.name" -}}
{{- if contains "corral" .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-corral" (.Release.Name | trunc 43) }}{{ end }}
{{- end }}

{{- define "corral.labels" -}}
{{ include "corral.selector" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- define "corral.selector" -}}
app.kubernetes.io/name: corral
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end }}

{{- define "corral.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "corral.jobsNamespace" -}}
{{ .Values.jobs.namespace | default .Release.Namespace }}
{{- end }}

{{- define "corral.url" -}}
{{ .Values.url | default (printf "%s://%s.%s.svc:%v" (ternary "https" "http" (ne .Values.tls.existingSecret "")) (include "corral.name" .) .Release.Namespace .Values.service.port) }}
{{- end }}

{{/* What a probe of the front says of its scheme, after the port. */}}
{{- define "corral.probeScheme" -}}
{{- if .Values.tls.existingSecret }}, scheme: HTTPS{{ end }}
{{- end }}

{{- define "corral.keySecret" -}}
{{ .Values.key.existingSecret | default (printf "%s-key" (include "corral.name" .)) }}
{{- end }}

{{- define "corral.databaseSecret" -}}
{{ .Values.database.existingSecret | default (printf "%s-database" (include "corral.name" .)) }}
{{- end }}

{{- define "corral.databaseHost" -}}
{{ include "corral.name" . }}-postgresql
{{- end }}

{{/* The password that the trial database was given first, or a new one. */}}
{{- define "corral.databasePassword" -}}
{{- $there := lookup "v1" "Secret" .Release.Namespace (include "corral.databaseSecret" .) -}}
{{- if and $there $there.data (index $there.data "password") }}{{ index $there.data "password" | b64dec }}{{ else }}{{ randAlphaNum 32 }}{{ end }}
{{- end }}

{{/* The Secrets of Corral itself, which no job may mount. */}}
{{- define "corral.secrets" -}}
{{- $names := list (include "corral.keySecret" .) (include "corral.databaseSecret" .) .Values.tls.existingSecret .Values.oidc.existingSecret -}}
{{- $names = concat $names (list .Values.blobs.existingSecret .Values.nodeAgent.tokenSecret .Values.ingress.tlsSecret) .Values.imagePullSecrets -}}
{{- if .Values.monitoring.enabled }}{{ $names = concat $names (list (include "corral.monitoring" .) (printf "%s-grafana" (include "corral.name" .))) }}{{ end -}}
{{- join "," ($names | compact | uniq) }}
{{- end }}

{{/* What both containers of the server are told. */}}
{{- define "corral.environment" -}}
- {name: HOME, value: /tmp}
- {name: CORRAL_DATA_FOLDER, value: /var/lib/corral}
- name: CORRAL_DATABASE_URL
  valueFrom: {secretKeyRef: {name: {{ include "corral.databaseSecret" . }}, key: url}}
- {name: CORRAL_HOST, value: "0.0.0.0"}
- {name: CORRAL_PORT, value: "8470"}
- {name: CORRAL_ADVERTISE, value: {{ include "corral.url" . | quote }}}
- {name: CORRAL_ADMINISTRATOR, value: {{ .Values.administrator | quote }}}
- {name: CORRAL_LOG_LEVEL, value: {{ .Values.logLevel }}}
- {name: CORRAL_ENGINE, value: {{ .Values.engine }}}
{{- if gt (int .Values.replicas) 1 }}
- name: POD_IP
  valueFrom: {fieldRef: {fieldPath: status.podIP}}
- {name: CORRAL_CONTROL_ADDRESS, value: "$(POD_IP):8471"}
{{- end }}
{{- if .Values.tls.existingSecret }}
- {name: CORRAL_TLS_CERTIFICATE, value: /var/run/corral-tls/tls.crt}
- {name: CORRAL_TLS_KEY, value: /var/run/corral-tls/tls.key}
{{- end }}
{{- with .Values.blobs.uri }}
- {name: CORRAL_BLOBS, value: {{ . | quote }}}
{{- end }}
{{- if .Values.oidc.existingSecret }}
- {name: CORRAL_OIDC_CLIENT_SECRET_FILE, value: /var/run/corral-oidc/client-secret}
{{- end }}
{{- if .Values.documents }}
- {name: CORRAL_CLUSTER, value: /etc/corral/documents.yaml}
{{- end }}
{{- if eq .Values.engine "kubernetes" }}
- {name: CORRAL_NAMESPACE, value: {{ include "corral.jobsNamespace" . }}}
- {name: CORRAL_DEFAULT_IMAGE, value: {{ .Values.jobs.defaultImage | quote }}}
- {name: CORRAL_IMAGE_PULL_SECRETS, value: {{ join "," .Values.jobs.imagePullSecrets | quote }}}
- {name: CORRAL_POD_SERVICE_ACCOUNT, value: {{ .Values.jobs.serviceAccount | quote }}}
{{- $runtime := .Values.jobs.runtimeImage | default (include "corral.image" .) }}
- {name: CORRAL_RUNTIME_IMAGE, value: {{ ternary "" $runtime (eq $runtime "none") | quote }}}
- {name: CORRAL_STORAGE_PLACES, value: {{ join "," .Values.jobs.storagePlaces | quote }}}
- {name: CORRAL_POD_TEMPLATES, value: {{ join "," .Values.jobs.podTemplates | quote }}}
- {name: CORRAL_RESERVED_SECRETS, value: {{ include "corral.secrets" . | quote }}}
{{- $levels := list }}
{{- range .Values.topologyLabels }}{{ $levels = append $levels (printf "%s=%s" .level .label) }}{{ end }}
- {name: CORRAL_TOPOLOGY_LABELS, value: {{ join "," $levels | quote }}}
{{- $devices := list }}
{{- range .Values.deviceResources }}{{ $devices = append $devices (printf "%s=%s" .resource .kind) }}{{ end }}
- {name: CORRAL_DEVICE_RESOURCES, value: {{ join "," $devices | quote }}}
{{- $accounts := list }}
{{- range $namespace, $account := .Values.objects.accounts }}{{ $accounts = append $accounts (printf "%s=%s" $namespace $account) }}{{ end }}
- {name: CORRAL_OBJECT_ACCOUNTS, value: {{ join "," $accounts | quote }}}
- {name: CORRAL_OBJECT_KINDS, value: {{ join "," .Values.objects.kinds | quote }}}
{{- end }}
{{- if and .Values.nodeAgent.enabled (eq .Values.engine "kubernetes") }}
- {name: CORRAL_AGENTS, value: {{ printf "http://%s-node-agent.%s.svc:%v" (include "corral.name" .) .Release.Namespace .Values.nodeAgent.port | quote }}}
- {name: CORRAL_AGENTS_TOKEN_FILE, value: /var/run/corral-agents/token}
{{- end }}
{{- if .Values.monitoring.enabled }}
- {name: CORRAL_MONITORING_TOKEN_FILE, value: /var/run/corral-monitoring/token}
{{- end }}
{{- if include "corral.ownPrometheus" . }}
- {name: CORRAL_PROMETHEUS, value: {{ printf "http://%s.%s.svc:9090" (include "corral.monitoring" .) .Release.Namespace | quote }}}
- {name: CORRAL_PROMETHEUS_TOKEN_FILE, value: /var/run/corral-prometheus/access}
{{- end }}
{{- range $name, $value := .Values.settings }}
- {name: CORRAL_{{ upper $name }}, value: {{ $value | toString | quote }}}
{{- end }}
{{- end }}

{{/* What opens the blob store. */}}
{{- define "corral.environmentFrom" -}}
{{- with .Values.blobs.existingSecret -}}
envFrom:
- secretRef: {name: {{ . }}}
{{- end }}
{{- end }}

{{/* What both containers of the server mount. */}}
{{- define "corral.mounts" -}}
- {name: data, mountPath: /var/lib/corral}
- {name: blobs, mountPath: /var/lib/corral/blobs}
- {name: key, mountPath: /var/lib/corral/key, subPath: key, readOnly: true}
- {name: temporary, mountPath: /tmp}
{{- if .Values.tls.existingSecret }}
- {name: tls, mountPath: /var/run/corral-tls, readOnly: true}
{{- end }}
{{- if .Values.documents }}
- {name: documents, mountPath: /etc/corral, readOnly: true}
{{- end }}
{{- end }}

{{- define "corral.confined" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}
