{{- define "esim.name" -}}
{{- printf "%s-%s" .root.Release.Name .role | trunc 63 | trimSuffix "-" -}}
{{- end -}}

{{- define "esim.selector" -}}
app.kubernetes.io/name: partner-esim-service
app.kubernetes.io/instance: {{ .root.Release.Name }}
app.kubernetes.io/component: {{ .role }}
{{- end -}}

{{- define "esim.labels" -}}
{{ include "esim.selector" . }}
app.kubernetes.io/version: {{ .root.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .root.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .root.Chart.Name .root.Chart.Version }}
{{- end -}}

{{- define "esim.image" -}}
{{- $image := .root.Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .root.Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/* What every container has: nothing to write to but /tmp, no rights, no shell. */}}
{{- define "esim.securityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
capabilities: { drop: [ALL] }
seccompProfile: { type: RuntimeDefault }
{{- end -}}

{{- define "esim.podSecurity" -}}
automountServiceAccountToken: false
enableServiceLinks: false
securityContext:
  runAsNonRoot: true
  fsGroup: 65532
  seccompProfile: { type: RuntimeDefault }
{{- with .root.Values.imagePullSecrets }}
imagePullSecrets: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .root.Values.tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The keys of the Secret that a role reads; a pod sees no others. */}}
{{- define "esim.secretKeys" -}}
{{- $every := list "DATABASE_URL" "SECRETS_KEYS" "REDIS_URL" "DATABASE_DIRECT_URL" "OTEL_EXPORTER_OTLP_HEADERS" -}}
{{- $wholesalers := list "ESIM_ACCESS_CODE" "ESIM_ACCESS_SECRET" "ZENDIT_API_KEY" -}}
{{- $keys := dict
  "api" $every
  "admin" (concat $every (list "ADMIN_TOKENS") $wholesalers)
  "portal" (append $every "ADMIN_TOKENS")
  "install" $every
  "worker" (concat $every (list "CALLBACK_SECRET") $wholesalers)
  "webhooks" $every
  "migrate" (list "DATABASE_URL" "DATABASE_DIRECT_URL") -}}
{{- index $keys .role | join " " -}}
{{- end -}}

{{- define "esim.env" -}}
{{- $settings := merge (dict) (.values.settings | default dict) (.root.Values.settings | default dict) }}
{{- $secret := .values.existingSecret | default .root.Values.existingSecret }}
{{- $required := list "DATABASE_URL" "SECRETS_KEYS" "ADMIN_TOKENS" }}
env:
  - { name: NODE_ENV, value: production }
{{- range $key := splitList " " (include "esim.secretKeys" .) }}
  - name: {{ $key }}
    valueFrom:
      secretKeyRef: { name: {{ $secret }}, key: {{ $key }}, optional: {{ not (has $key $required) }} }
{{- end }}
{{- if .jobs }}
  - { name: WORKER_JOBS, value: {{ .jobs | quote }} }
{{- end }}
{{- if and (eq .role "api") .root.Values.liveProviders }}
  - { name: LIVE_PROVIDERS, value: {{ join "," .root.Values.liveProviders | quote }} }
{{- end }}
{{- /* The admin API makes the links to the portal. */}}
{{- if has .role (list "admin" "portal") }}
  - { name: PORTAL_URL, value: {{ .root.Values.portal.url | quote }} }
{{- end }}
{{- /* API and portal make the links to the install page. */}}
{{- if and .root.Values.install.enabled (has .role (list "api" "portal" "install")) }}
  - { name: INSTALL_URL, value: {{ .root.Values.install.url | quote }} }
{{- end }}
{{- with .root.Values.privateCa }}
{{- if .configMap }}
  - { name: NODE_EXTRA_CA_CERTS, value: {{ printf "/etc/private-ca/%s" .key | quote }} }
{{- end }}
{{- end }}
{{- if and .root.Values.tracing.endpoint (ne .role "migrate") }}
  - { name: OTEL_EXPORTER_OTLP_ENDPOINT, value: {{ .root.Values.tracing.endpoint | quote }} }
  - { name: OTEL_TRACES_SAMPLER, value: {{ .root.Values.tracing.sampler | quote }} }
  - { name: OTEL_TRACES_SAMPLER_ARG, value: {{ .root.Values.tracing.ratio | toString | quote }} }
{{- end }}
{{- range $name, $value := $settings }}
  - name: {{ $name }}
    value: {{ $value | toString | quote }}
{{- end }}
{{- end -}}

{{/* Of the container, and of the pod. */}}
{{- define "esim.volumeMounts" -}}
volumeMounts:
  - { name: tmp, mountPath: /tmp }
{{- if .root.Values.privateCa.configMap }}
  - { name: private-ca, mountPath: /etc/private-ca, readOnly: true }
{{- end }}
{{- end -}}

{{- define "esim.volumes" -}}
volumes:
  - name: tmp
    emptyDir: { medium: Memory, sizeLimit: 64Mi }
{{- if .root.Values.privateCa.configMap }}
  - name: private-ca
    configMap: { name: {{ .root.Values.privateCa.configMap }} }
{{- end }}
{{- end -}}

{{- define "esim.deployment" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "esim.name" . }}
  labels: {{- include "esim.labels" . | nindent 4 }}
spec:
  {{- if not .scaled }}
  replicas: {{ .values.replicas }}
  {{- end }}
  revisionHistoryLimit: 5
  # A process that has just begun takes its part while the one before is still there: its first calls cost it more.
  minReadySeconds: 10
  strategy:
    type: RollingUpdate
    rollingUpdate: { maxUnavailable: 0, maxSurge: 1 }
  selector:
    matchLabels: {{- include "esim.selector" . | nindent 6 }}
  template:
    metadata:
      labels: {{- include "esim.labels" . | nindent 8 }}
      annotations:
        {{- if .root.Values.metrics.scrapeAnnotations }}
        prometheus.io/scrape: 'true'
        prometheus.io/port: '3002'
        prometheus.io/path: /metrics
        {{- end }}
        {{- with .root.Values.podAnnotations }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    spec:
      {{- include "esim.podSecurity" . | nindent 6 }}
      # Longer than preStop and SHUTDOWN_TIMEOUT_MS together.
      terminationGracePeriodSeconds: 30
      topologySpreadConstraints:
        - maxSkew: 1
          topologyKey: topology.kubernetes.io/zone
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "esim.selector" . | nindent 14 }}
        - maxSkew: 1
          topologyKey: kubernetes.io/hostname
          whenUnsatisfiable: ScheduleAnyway
          labelSelector:
            matchLabels: {{- include "esim.selector" . | nindent 14 }}
      containers:
        - name: {{ .role }}
          image: {{ include "esim.image" . }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [dist/src/main.{{ .entry | default .role }}.js]
          {{- include "esim.env" . | nindent 10 }}
          ports:
            {{- range .ports }}
            - { name: {{ .name }}, containerPort: {{ .port }} }
            {{- end }}
            - { name: ops, containerPort: 3002 }
          startupProbe:
            httpGet: { path: /readyz, port: ops }
            periodSeconds: 2
            failureThreshold: 60
          readinessProbe:
            httpGet: { path: /readyz, port: ops }
            periodSeconds: 5
            timeoutSeconds: 3
          livenessProbe:
            httpGet: { path: /livez, port: ops }
            periodSeconds: 10
            timeoutSeconds: 5
            failureThreshold: 6
          lifecycle:
            # Endpoints forget the pod before it stops taking calls; the kubelet sleeps, as the image has no shell.
            preStop: { sleep: { seconds: 5 } }
          resources: {{- toYaml .values.resources | nindent 12 }}
          securityContext: {{- include "esim.securityContext" . | nindent 12 }}
          {{- include "esim.volumeMounts" . | nindent 10 }}
      {{- include "esim.volumes" . | nindent 6 }}
{{- end -}}

{{- define "esim.service" -}}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "esim.name" . }}
  labels: {{- include "esim.labels" . | nindent 4 }}
spec:
  type: ClusterIP
  selector: {{- include "esim.selector" . | nindent 4 }}
  ports:
    {{- range .ports }}
    - { name: {{ .name }}, port: {{ .port }}, targetPort: {{ .name }} }
    {{- end }}
{{- end -}}

{{- define "esim.pdb" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ include "esim.name" . }}
  labels: {{- include "esim.labels" . | nindent 4 }}
spec:
  maxUnavailable: {{ .values.podDisruptionBudget.maxUnavailable }}
  selector:
    matchLabels: {{- include "esim.selector" . | nindent 6 }}
{{- end -}}

{{/* `query` tells the age of the oldest due work, of the whole database: every process shows the same, hence `Value`. */}}
{{- define "esim.scaledObject" -}}
apiVersion: keda.sh/v1alpha1
kind: ScaledObject
metadata:
  name: {{ include "esim.name" . }}
  labels: {{- include "esim.labels" . | nindent 4 }}
spec:
  scaleTargetRef: { name: {{ include "esim.name" . }} }
  {{- with .values.keda }}
  minReplicaCount: {{ .minReplicas }}
  maxReplicaCount: {{ .maxReplicas }}
  cooldownPeriod: 300
  # Without Prometheus nobody knows how old the work is: stay at what is enough for most days.
  fallback: { failureThreshold: 5, replicas: {{ .minReplicas }} }
  {{- end }}
  triggers:
    - type: prometheus
      metricType: Value
      metadata:
        serverAddress: {{ .values.keda.prometheusUrl }}
        query: {{ .query }}
        threshold: {{ .values.keda.oldestSeconds | quote }}
    - type: cpu
      metricType: Utilization
      metadata:
        value: {{ .values.keda.cpuPercent | quote }}
{{- end -}}
