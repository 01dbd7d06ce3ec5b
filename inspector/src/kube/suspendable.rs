//! Kinds of objects with a field that suspends them, besides `Job`: where that field is, and where the templates and
//! numbers of their Pods are. They are queued like suspended Jobs.
//!
//! A kind is added here, to the chart's `_admission.tpl` (which objects are suspended), and to its RBAC rules.

use serde_json::Value;

/// A kind.
#[derive(Debug)]
pub(crate) struct Suspendable {
    /// `group/version`.
    pub(crate) api_version: &'static str,
    pub(crate) kind: &'static str,
    pub(crate) plural: &'static str,
    /// Names of the fields that lead to the one that suspends it.
    pub(crate) suspend: &'static [&'static str],
    /// Its Pods; none if they are described by the object that it controls.
    pub(crate) sets: &'static [Sets],
}

/// Where sets of equal Pods are described.
#[derive(Debug)]
pub(crate) struct Sets {
    /// Pointer to a description, a list of them, or a map by name.
    pub(crate) at: &'static str,
    pub(crate) form: SetForm,
    /// Pointer to the Pod template in a description.
    pub(crate) template: &'static str,
    /// Numbers in a description, which are multiplied.
    pub(crate) counts: &'static [Count],
    /// Pointer to a field of a description without Pods if it is true.
    pub(crate) none_if: Option<&'static str>,
    /// What is created later, once others are ready, can't be waited for.
    pub(crate) later: &'static [Later],
}

/// Pointers to a number in a description, and to others that limit it.
#[derive(Debug)]
pub(crate) struct Count {
    /// 1 where absent.
    pub(crate) at: &'static str,
    pub(crate) at_least: Option<&'static str>,
    /// Applies last.
    pub(crate) at_most: Option<&'static str>,
    /// Only one is created at first, if the description or the object has this annotation.
    pub(crate) first_if: Option<Annotated>,
}

/// Whether there is an annotation.
#[derive(Debug)]
pub(crate) struct Annotated {
    pub(crate) with: &'static str,
    pub(crate) without: &'static str,
    /// Pointer to a description's metadata.
    pub(crate) at: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SetForm {
    One,
    List,
    Map,
}

/// Which Pods are created later than the first ones.
#[derive(Debug)]
pub(crate) enum Later {
    /// All but the first description, if this field of the object has this value.
    OthersIf(&'static str, &'static str),
    /// A description with this field.
    With(&'static str),
    /// The description of this name, if this field of the object has this value.
    NamedIf(&'static str, &'static str, &'static str),
}

/// All kinds.
pub(crate) const KINDS: [Suspendable; 6] = [
    Suspendable {
        api_version: "jobset.x-k8s.io/v1alpha2",
        kind: "JobSet",
        plural: "jobsets",
        suspend: &["spec", "suspend"],
        sets: &[Sets {
            at: "/spec/replicatedJobs",
            form: SetForm::List,
            template: "/template/spec/template",
            counts: &[
                Count::of("/replicas"),
                Count {
                    at_most: Some("/template/spec/completions"),
                    // JobSet's webhook rejects the other Pods of a Job until the first one has a node.
                    first_if: Some(Annotated {
                        with: "alpha.jobset.sigs.k8s.io/exclusive-topology",
                        without: "alpha.jobset.sigs.k8s.io/node-selector",
                        at: "/template/metadata",
                    }),
                    ..Count::of("/template/spec/parallelism")
                },
            ],
            none_if: None,
            later: &[
                Later::With("/dependsOn/0"),
                Later::OthersIf("/spec/startupPolicy/startupPolicyOrder", "InOrder"),
            ],
        }],
    },
    Suspendable {
        api_version: "kubeflow.org/v2beta1",
        kind: "MPIJob",
        plural: "mpijobs",
        suspend: &["spec", "runPolicy", "suspend"],
        sets: &[Sets {
            at: "/spec/mpiReplicaSpecs",
            form: SetForm::Map,
            template: "/template",
            counts: &[Count::of("/replicas")],
            none_if: None,
            later: &[Later::NamedIf("Launcher", "/spec/launcherCreationPolicy", "WaitForWorkersReady")],
        }],
    },
    Suspendable {
        api_version: "kubeflow.org/v1",
        kind: "PyTorchJob",
        plural: "pytorchjobs",
        suspend: &["spec", "runPolicy", "suspend"],
        sets: &[Sets {
            at: "/spec/pytorchReplicaSpecs",
            form: SetForm::Map,
            template: "/template",
            counts: &[Count::of("/replicas")],
            none_if: None,
            later: &[],
        }],
    },
    Suspendable {
        api_version: "ray.io/v1",
        kind: "RayJob",
        plural: "rayjobs",
        suspend: &["spec", "suspend"],
        sets: &[
            ray("/spec/rayClusterSpec/headGroupSpec", SetForm::One, &[]),
            ray("/spec/rayClusterSpec/workerGroupSpecs", SetForm::List, &WORKERS),
        ],
    },
    Suspendable {
        api_version: "ray.io/v1",
        kind: "RayCluster",
        plural: "rayclusters",
        suspend: &["spec", "suspend"],
        sets: &[
            ray("/spec/headGroupSpec", SetForm::One, &[]),
            ray("/spec/workerGroupSpecs", SetForm::List, &WORKERS),
        ],
    },
    Suspendable {
        api_version: "trainer.kubeflow.org/v1alpha1",
        kind: "TrainJob",
        plural: "trainjobs",
        suspend: &["spec", "suspend"],
        // Those of its JobSet, which is suspended with it.
        sets: &[],
    },
];

/// Of a group of workers of a Ray cluster.
const WORKERS: [Count; 2] = [
    Count { at_least: Some("/minReplicas"), at_most: Some("/maxReplicas"), ..Count::of("/replicas") },
    Count::of("/numOfHosts"),
];

const fn ray(at: &'static str, form: SetForm, counts: &'static [Count]) -> Sets {
    Sets { at, form, template: "/template", counts, none_if: Some("/suspend"), later: &[] }
}

impl Count {
    const fn of(at: &'static str) -> Self {
        Self { at, at_least: None, at_most: None, first_if: None }
    }
}

/// The kind, also in another version.
pub(crate) fn of(api_version: &str, kind: &str) -> Option<&'static Suspendable> {
    let group = |api_version: &str| api_version.split_once('/').map(|(group, _)| group.to_owned());
    KINDS.iter().find(|one| one.kind == kind && group(one.api_version) == group(api_version))
}

impl Suspendable {
    /// Whether the object is suspended.
    pub(crate) fn is_suspended(&self, object: &Value) -> bool {
        let field = self.suspend.iter().try_fold(object, |value, name| value.get(name));
        field.and_then(Value::as_bool) == Some(true)
    }
}
