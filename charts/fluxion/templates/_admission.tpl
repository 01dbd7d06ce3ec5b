{{- define "fluxion.admission.label" -}}
fluxion.flux-framework.org/admission
{{- end }}

{{- /* Selects the namespaces labelled with one of `modes`. */ -}}
{{- define "fluxion.admission.namespaceSelector" -}}
{{- $values := .root.Values.admission -}}
{{- $never := concat (list "kube-system" .root.Release.Namespace) $values.excludeNamespaces | uniq -}}
{{- with $values.namespaceSelector.matchLabels }}
matchLabels:
  {{- toYaml . | nindent 2 }}
{{- end }}
matchExpressions:
- key: {{ include "fluxion.admission.label" .root }}
  operator: In
  values: {{ toJson .modes }}
- key: kubernetes.io/metadata.name
  operator: NotIn
  values: {{ toJson $never }}
{{- with $values.namespaceSelector.matchExpressions }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- define "fluxion.admission.objectSelector" -}}
{{- with .Values.admission.objectSelector.matchLabels }}
matchLabels:
  {{- toYaml . | nindent 2 }}
{{- end }}
matchExpressions:
- key: {{ include "fluxion.admission.label" . }}
  operator: NotIn
  values: [none]
{{- with .Values.admission.objectSelector.matchExpressions }}
{{ toYaml . }}
{{- end }}
{{- end }}

{{- /* Pods that a scheduler has to place, and of those, only those of the configured schedulers. */ -}}
{{- define "fluxion.admission.podConditions" -}}
- name: of-these-schedulers
  expression: >-
    has(object.spec.schedulerName) && object.spec.schedulerName in {{ toJson .Values.admission.schedulerNames }}
- name: without-a-node
  expression: "!has(object.spec.nodeName) || object.spec.nodeName == ''"
- name: not-bound-to-its-node
  expression: >-
    !has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(owner,
    owner.kind in ['DaemonSet', 'Node'] && has(owner.controller) && owner.controller)
{{- end }}

{{- /* A policy and its binding: `name`, `modes`, `group`, `resource`, `conditions` and `mutation`. */ -}}
{{- define "fluxion.admission.policy" -}}
{{- $name := printf "%s-%s" (include "fluxion.name" .root) .name -}}
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata:
  name: {{ $name }}
  labels:
    {{- include "fluxion.labels" .root | nindent 4 }}
spec:
  failurePolicy: {{ .root.Values.admission.failurePolicy }}
  # Another admission plugin may create what this policy changes.
  reinvocationPolicy: IfNeeded
  matchConstraints:
    resourceRules:
    - apiGroups: [{{ .group | quote }}]
      apiVersions: [v1]
      operations: [CREATE]
      resources: [{{ .resource }}]
    namespaceSelector:
      {{- include "fluxion.admission.namespaceSelector" . | trim | nindent 6 }}
    objectSelector:
      {{- include "fluxion.admission.objectSelector" .root | trim | nindent 6 }}
  matchConditions:
  {{- .conditions | trim | nindent 2 }}
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration:
      expression: >-
        {{- .mutation | trim | nindent 8 }}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata:
  name: {{ $name }}
  labels:
    {{- include "fluxion.labels" .root | nindent 4 }}
spec:
  policyName: {{ $name }}
{{- end }}
