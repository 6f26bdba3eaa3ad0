{{- define "corral.monitoring" -}}
{{ include "corral.name" . }}-monitoring
{{- end }}

{{/* The Secret of both configurations. A job may mount no Secret whose name begins with corral-. */}}
{{- define "corral.monitoringConfiguration" -}}
{{- $name := printf "%s-configuration" (include "corral.monitoring" .) }}
{{- if not (hasPrefix "corral-" $name) }}corral-{{ end }}{{ $name }}
{{- end }}

{{/* Where Prometheus and Alertmanager find the server. */}}
{{- define "corral.monitored" -}}
{{ include "corral.name" . }}.{{ .Release.Namespace }}.svc:{{ .Values.service.port }}
{{- end }}

{{/* Whether the server asks the chart's Prometheus: not where the settings name another one, which must not get its password. */}}
{{- define "corral.ownPrometheus" -}}
{{- if .Values.monitoring.enabled }}
{{- if hasKey .Values.settings "monitoring_token_file" }}{{ fail "settings: monitoring_token_file is the chart's own with monitoring.enabled: leave it out" }}{{ end }}
{{- if not (hasKey .Values.settings "prometheus") }}
{{- if hasKey .Values.settings "prometheus_token_file" }}{{ fail "settings: prometheus_token_file goes with prometheus: with monitoring.enabled give both or none" }}{{ end }}
{{- print "yes" }}
{{- end }}
{{- end }}
{{- end }}

{{- define "corral.monitoringAgents" -}}
{{- if and .Values.nodeAgent.enabled (eq .Values.engine "kubernetes") }}yes{{ end }}
{{- end }}

{{/* How both trust the server: its certificate alone, whoever signed it. */}}
{{- define "corral.monitoringTrust" -}}
{{- if .Values.tls.existingSecret -}}
tls_config: {ca_file: /etc/corral-monitoring/tls/tls.crt, server_name: {{ (urlParse (include "corral.url" .)).hostname | quote }}}
{{- end }}
{{- end }}

{{- define "corral.prometheusConfiguration" -}}
{{- $token := "/etc/corral-monitoring/secret" }}
{{- $own := dict "username" "corral" "password_file" (printf "%s/password" $token) }}
{{- $names := list "corral" "corral-node-agent" "node" "prometheus" "alertmanager" }}
{{- range .Values.monitoring.prometheus.scrapeConfigs }}
{{- if has .job_name $names }}{{ fail (printf "monitoring.prometheus.scrapeConfigs: the name %s is one of Corral's own: choose another one" .job_name) }}{{ end }}
{{- $names = append $names .job_name }}
{{- end }}
global: {scrape_interval: {{ .Values.monitoring.prometheus.interval }}, evaluation_interval: {{ .Values.monitoring.prometheus.interval }}}
rule_files: [/etc/corral-monitoring/configuration/*.rules.yml]
alerting:
  alertmanagers:
  - basic_auth: {{ toJson $own }}
    static_configs: [{targets: ["127.0.0.1:9093"]}]
scrape_configs:
- job_name: corral
  {{- if .Values.tls.existingSecret }}
  scheme: https
  {{ include "corral.monitoringTrust" . }}
  {{- end }}
  authorization: {credentials_file: {{ $token }}/token}
  static_configs: [{targets: [{{ include "corral.monitored" . | quote }}]}]
{{- if include "corral.monitoringAgents" . }}
- job_name: corral-node-agent
  authorization: {credentials_file: /etc/corral-monitoring/agent/token}
  {{- include "corral.podsOf" (dict "root" . "component" "node-agent") | nindent 2 }}
{{- end }}
{{- if .Values.monitoring.nodeExporter.image }}
- job_name: node
  basic_auth: {{ toJson $own }}
  {{- include "corral.podsOf" (dict "root" . "component" "node-exporter") | nindent 2 }}
{{- end }}
- job_name: prometheus
  basic_auth: {{ toJson $own }}
  static_configs: [{targets: ["127.0.0.1:9090"]}]
- job_name: alertmanager
  basic_auth: {{ toJson $own }}
  static_configs: [{targets: ["127.0.0.1:9093"]}]
{{- with .Values.monitoring.prometheus.scrapeConfigs }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{/* The pods of a component, one on each node, by the names of their nodes. Every job's pod has the label corral.dev/server. */}}
{{- define "corral.podsOf" -}}
kubernetes_sd_configs:
- role: pod
  namespaces: {own_namespace: true}
  selectors:
  - role: pod
    label: {{ printf "app.kubernetes.io/name=corral,app.kubernetes.io/instance=%s,app.kubernetes.io/component=%s,!corral.dev/server" .root.Release.Name .component | quote }}
relabel_configs:
- {source_labels: [__meta_kubernetes_pod_node_name], target_label: instance}
{{- end }}

{{- define "corral.alertmanagerConfiguration" -}}
{{- $scheme := ternary "https" "http" (ne .Values.tls.existingSecret "") }}
{{- $names := list "corral" }}
{{- range .Values.monitoring.alertmanager.receivers }}
{{- if has .name $names }}{{ fail (printf "monitoring.alertmanager.receivers: there is a receiver %s already: choose another name" .name) }}{{ end }}
{{- $names = append $names .name }}
{{- end }}
route:
  receiver: corral
  group_by: [alertname]
  group_wait: 10s
  group_interval: 1m
  # Corral forgets what was not told again for two days.
  repeat_interval: 12h
  routes:
  {{- with .Values.monitoring.alertmanager.routes }}
  # Corral is told of every alert, whoever else is.
  - {receiver: corral, continue: true}
  {{- toYaml . | nindent 2 }}
  {{- else }} []
  {{- end }}
inhibit_rules:
# While the server does not answer, nothing is known of its scheduler.
- source_matchers: [alertname="CorralDown"]
  target_matchers: [alertname="CorralSchedulerDown"]
  equal: [instance]
{{- with .Values.monitoring.alertmanager.inhibitRules }}
{{ toYaml . }}
{{- end }}
receivers:
- name: corral
  webhook_configs:
  - url: {{ printf "%s://%s/api/v3/alerts/webhook" $scheme (include "corral.monitored" .) | quote }}
    send_resolved: true
    # Corral takes 1 MiB at once.
    max_alerts: 500
    http_config:
      authorization: {credentials_file: /etc/corral-monitoring/secret/token}
      {{- with include "corral.monitoringTrust" . }}
      {{ . }}
      {{- end }}
{{- with .Values.monitoring.alertmanager.receivers }}
{{ toYaml . }}
{{- end }}
{{- end }}
