{{- define "fluxion.args" -}}
- cluster
- --config=/etc/fluxion/config.yaml
- --state-dir=/var/lib/fluxion
- --secure-listen=0.0.0.0:{{ .Values.containerPort }}
- --service={{ include "fluxion.name" . }}
{{- if .Values.tls.certManager.enabled }}
- --tls-cert-file=/etc/fluxion-tls/tls.crt
- --tls-private-key-file=/etc/fluxion-tls/tls.key
{{- else }}
- --tls-secret={{ include "fluxion.tlsSecretName" . }}
{{- end }}
- --replica-secret={{ include "fluxion.replicaSecretName" . }}
- --advertise-address=$(POD_IP)
- --lease-seconds={{ .Values.leaderElection.leaseSeconds }}
- --log-format={{ .Values.logFormat }}
{{- if and .Values.admission.enabled (eq .Values.admission.via "webhook") }}
- --admission-webhook
{{- end }}
{{- if .Values.cancel.enabled }}
- --allow-cancel
{{- end }}
{{- with .Values.tracing.endpoint }}
- --otlp-endpoint={{ . }}
{{- end }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}
