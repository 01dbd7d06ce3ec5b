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

{{- /* Jobs that nothing else starts or suspends. */ -}}
{{- define "fluxion.admission.jobConditions" -}}
- name: of-these-schedulers
  expression: >-
    has(object.spec.template.spec.schedulerName) &&
    object.spec.template.spec.schedulerName in {{ toJson .Values.admission.schedulerNames }}
- name: not-suspended-by-its-user
  expression: "!has(object.spec.suspend) || !object.spec.suspend"
- name: run-by-the-job-controller
  expression: "!has(object.spec.managedBy) || object.spec.managedBy == 'kubernetes.io/job-controller'"
- name: without-a-controller
  expression: >-
    !has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(owner,
    owner.kind != 'CronJob' && has(owner.controller) && owner.controller)
{{- end }}

{{- /* Jobs that were suspended when they were created, and are being resumed. */ -}}
{{- define "fluxion.admission.resumeConditions" -}}
{{- $label := include "fluxion.admission.label" . -}}
- name: resumed
  expression: >-
    has(oldObject.spec.suspend) && oldObject.spec.suspend && (!has(object.spec.suspend) || !object.spec.suspend)
- name: suspended-when-created
  expression: >-
    has(object.metadata.annotations) && '{{ $label }}' in object.metadata.annotations &&
    object.metadata.annotations['{{ $label }}'] == 'suspend'
{{- end }}

{{- /*
What is changed on admission, as a list: the name, the modes of namespaces in which it applies, the objects, the conditions,
and the change.
*/ -}}
{{- define "fluxion.admission.changes" -}}
{{- $label := include "fluxion.admission.label" . -}}
{{- $modes := .Values.admission.modes -}}
{{- if has "bind" $modes }}
- name: bind
  modes: [bind]
  group: ""
  resource: pods
  operation: CREATE
  conditions: {{ include "fluxion.admission.podConditions" . | fromYamlArray | toJson }}
  mutation: "Object{spec: Object.spec{schedulerName: '{{ first (default (list "fluxion") .Values.config.schedulerNames) }}'}}"
{{- end }}
{{- if or (has "gate" $modes) (has "suspend" $modes) }}
- name: gate
  modes: {{ without $modes "bind" | toJson }}
  group: ""
  resource: pods
  operation: CREATE
  conditions: {{ include "fluxion.admission.podConditions" . | fromYamlArray | toJson }}
  mutation: >-
    Object{spec: Object.spec{schedulingGates: [Object.spec.schedulingGates{name: 'fluxion.flux-framework.org/gate'}]}}
{{- end }}
{{- if has "suspend" $modes }}
- name: suspend
  modes: [suspend]
  group: batch
  resource: jobs
  operation: CREATE
  conditions: {{ include "fluxion.admission.jobConditions" . | fromYamlArray | toJson }}
  mutation: >-
    Object{metadata: Object.metadata{annotations: {'{{ $label }}': 'suspend'}}, spec: Object.spec{suspend: true}}
- name: resume
  modes: [suspend]
  group: batch
  resource: jobs
  operation: UPDATE
  conditions: {{ include "fluxion.admission.resumeConditions" . | fromYamlArray | toJson }}
  mutation: >-
    Object{metadata: Object.metadata{annotations: {'{{ $label }}': 'resumed'}}}
{{- end }}
{{- end }}

{{- /* The rules of a change. */ -}}
{{- define "fluxion.admission.rules" -}}
- apiGroups: [{{ .group | quote }}]
  apiVersions: [v1]
  operations: [{{ .operation }}]
  resources: [{{ .resource }}]
{{- end }}
