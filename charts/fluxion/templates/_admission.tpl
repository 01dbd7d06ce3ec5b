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
Kinds besides Job that can be suspended: where the field is (the parent of `suspend`), and their Pod templates. The
inspector's table of them is in inspector/src/kube/suspendable.rs.
*/ -}}
{{- define "fluxion.admission.kinds" -}}
- kind: JobSet
  group: jobset.x-k8s.io
  version: v1alpha2
  resource: jobsets
  field: spec
  templates: >-
    has(object.spec.replicatedJobs) ? object.spec.replicatedJobs.map(one, one.template.spec.template) : []
- kind: MPIJob
  group: kubeflow.org
  version: v2beta1
  resource: mpijobs
  field: spec.runPolicy
  templates: >-
    has(object.spec.mpiReplicaSpecs) ? object.spec.mpiReplicaSpecs.map(name, object.spec.mpiReplicaSpecs[name]).filter(one,
    has(one.template)).map(one, one.template) : []
- kind: PyTorchJob
  group: kubeflow.org
  version: v1
  resource: pytorchjobs
  field: spec.runPolicy
  templates: >-
    has(object.spec.pytorchReplicaSpecs) ? object.spec.pytorchReplicaSpecs.map(name,
    object.spec.pytorchReplicaSpecs[name]).filter(one, has(one.template)).map(one, one.template) : []
- kind: RayJob
  group: ray.io
  version: v1
  resource: rayjobs
  field: spec
  templates: >-
    [object.spec.rayClusterSpec.headGroupSpec.template] + (has(object.spec.rayClusterSpec.workerGroupSpecs) ?
    object.spec.rayClusterSpec.workerGroupSpecs.map(one, one.template) : [])
  # KubeRay rejects others that are suspended.
  condition: >-
    has(object.spec.rayClusterSpec) && has(object.spec.shutdownAfterJobFinishes) && object.spec.shutdownAfterJobFinishes
- kind: RayCluster
  group: ray.io
  version: v1
  resource: rayclusters
  field: spec
  templates: >-
    [object.spec.headGroupSpec.template] + (has(object.spec.workerGroupSpecs) ?
    object.spec.workerGroupSpecs.map(one, one.template) : [])
- kind: TrainJob
  group: trainer.kubeflow.org
  version: v1alpha1
  resource: trainjobs
  field: spec
  # They are in its runtime.
  templates: "[]"
{{- end }}

{{- /* Whether the object (`of`: object or oldObject) is suspended, by the field's parent. */ -}}
{{- define "fluxion.admission.suspended" -}}
has({{ .of }}.spec){{ if eq .field "spec.runPolicy" }} && has({{ .of }}.spec.runPolicy){{ end }} && has({{ .of }}.{{ .field }}.suspend) && {{ .of }}.{{ .field }}.suspend
{{- end }}

{{- /* What is changed of one of these kinds. */ -}}
{{- define "fluxion.admission.kindChanges" -}}
{{- $label := include "fluxion.admission.label" .root -}}
{{- $annotations := "(has(object.metadata.annotations) ? [] : [JSONPatch{op: 'add', path: '/metadata/annotations', value: {}}])" -}}
{{- $annotation := printf "'/metadata/annotations/' + jsonpatch.escapeKey('%s')" $label -}}
{{- $kind := .kind -}}
- name: suspend-{{ $kind.resource }}
  path: suspend
  modes: [suspend]
  group: {{ $kind.group }}
  version: {{ $kind.version }}
  resource: {{ $kind.resource }}
  operation: CREATE
  conditions:
  {{- with $kind.condition }}
  - name: can-be-suspended
    expression: {{ . | quote }}
  {{- end }}
  - name: of-these-schedulers
    expression: >-
      ({{ $kind.templates }}).all(pod, !has(pod.spec) || !has(pod.spec.schedulerName) ||
      pod.spec.schedulerName in {{ toJson .root.Values.admission.schedulerNames }})
  - name: not-suspended-by-its-user
    expression: "!({{ include "fluxion.admission.suspended" (dict "of" "object" "field" $kind.field) }})"
  - name: run-by-its-controller
    expression: "!has(object.spec.managedBy) || !object.spec.managedBy.startsWith('kueue.x-k8s.io/')"
  - name: without-a-controller
    expression: >-
      !has(object.metadata.ownerReferences) || !object.metadata.ownerReferences.exists(owner,
      has(owner.controller) && owner.controller)
  patch: >-
    {{ $annotations }} + {{ if eq $kind.field "spec.runPolicy" }}(has(object.spec.runPolicy) ? [] :
    [JSONPatch{op: 'add', path: '/spec/runPolicy', value: {}}]) + {{ end }}[
    JSONPatch{op: 'add', path: {{ $annotation }}, value: 'suspend'},
    JSONPatch{op: 'add', path: '/{{ $kind.field | replace "." "/" }}/suspend', value: true}]
- name: resume-{{ $kind.resource }}
  path: resume
  modes: [suspend]
  group: {{ $kind.group }}
  version: {{ $kind.version }}
  resource: {{ $kind.resource }}
  operation: UPDATE
  conditions:
  - name: resumed
    expression: >-
      {{ include "fluxion.admission.suspended" (dict "of" "oldObject" "field" $kind.field) }} &&
      !({{ include "fluxion.admission.suspended" (dict "of" "object" "field" $kind.field) }})
  - name: suspended-when-created
    expression: >-
      has(object.metadata.annotations) && '{{ $label }}' in object.metadata.annotations &&
      object.metadata.annotations['{{ $label }}'] == 'suspend'
  patch: >-
    [JSONPatch{op: 'add', path: {{ $annotation }}, value: 'resumed'}]
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
{{- $root := . }}
{{- range include "fluxion.admission.kinds" . | fromYamlArray }}
{{- if has .kind $root.Values.admission.suspendKinds }}
{{ include "fluxion.admission.kindChanges" (dict "root" $root "kind" .) }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{- /* The rules of a change. */ -}}
{{- define "fluxion.admission.rules" -}}
- apiGroups: [{{ .group | quote }}]
  apiVersions: [{{ .version | default "v1" }}]
  operations: [{{ .operation }}]
  resources: [{{ .resource }}]
{{- end }}
