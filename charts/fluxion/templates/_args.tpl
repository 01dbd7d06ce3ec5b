{{- define "fluxion.args" -}}
- cluster
- --config=/etc/fluxion/config.yaml
- --state-dir=/var/lib/fluxion
- --listen=0.0.0.0:{{ .Values.containerPort }}
- --lease-seconds={{ .Values.leaderElection.leaseSeconds }}
- --log-format={{ .Values.logFormat }}
{{- with .Values.extraArgs }}
{{ toYaml . }}
{{- end }}
{{- end }}
