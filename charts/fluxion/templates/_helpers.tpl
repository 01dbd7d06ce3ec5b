{{- define "fluxion.name" -}}
{{- default "fluxion-inspector" .Values.fullnameOverride -}}
{{- end }}

{{- define "fluxion.selectorLabels" -}}
app.kubernetes.io/name: fluxion
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: inspector
{{- end }}

{{- define "fluxion.labels" -}}
app.kubernetes.io/name: fluxion
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "fluxion.serviceAccountName" -}}
{{- default (include "fluxion.name" .) .Values.serviceAccount.name -}}
{{- end }}

{{- define "fluxion.image" -}}
{{- with .Values.image -}}
{{- if .digest -}}
{{ .repository }}@{{ .digest }}
{{- else -}}
{{ .repository }}:{{ default $.Chart.AppVersion .tag }}
{{- end -}}
{{- end -}}
{{- end }}

{{- /* The Secret with the CA and the serving certificate. */ -}}
{{- define "fluxion.tlsSecretName" -}}
{{ include "fluxion.name" . }}-tls
{{- end }}

{{- /* The Secret with the CA by which the inspectors know each other. */ -}}
{{- define "fluxion.replicaSecretName" -}}
{{ include "fluxion.name" . }}-replicas
{{- end }}

{{- /* The annotation of the Lease with the number of the leader's term. */ -}}
{{- define "fluxion.term" -}}
fluxion.flux-framework.org/term
{{- end }}

{{- define "fluxion.apiServiceName" -}}
v1alpha1.fluxion.flux-framework.org
{{- end }}

{{- define "fluxion.priorityClassName" -}}
{{- if .Values.priorityClass.create -}}
{{- default (include "fluxion.name" .) .Values.priorityClass.name -}}
{{- else -}}
{{- .Values.priorityClass.name -}}
{{- end -}}
{{- end }}

{{- /* Fails where the inspector would have to schedule its own Pods. */ -}}
{{- define "fluxion.checkSchedulerName" -}}
{{- $own := default "default-scheduler" .Values.schedulerName -}}
{{- if has $own (default (list "fluxion") .Values.config.schedulerNames) -}}
{{- fail (printf "config.schedulerNames contains %q, which also schedules the inspector's own Pods: set schedulerName to another scheduler" $own) -}}
{{- end -}}
{{- end }}

{{- define "fluxion.restrictedPodSecurityContext" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
seccompProfile:
  type: RuntimeDefault
{{- end }}

{{- define "fluxion.restrictedSecurityContext" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end }}
