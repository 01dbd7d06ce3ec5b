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
    /// Its Pods.
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
    /// Pointers to numbers in a description, which are multiplied; 1 where absent.
    pub(crate) counts: &'static [&'static str],
    /// Pointer to a number in a description that limits the last of them.
    pub(crate) at_most: Option<&'static str>,
    /// What is created later, once others are ready, can't be waited for.
    pub(crate) later: &'static [Later],
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
pub(crate) const KINDS: [Suspendable; 5] = [
    Suspendable {
        api_version: "jobset.x-k8s.io/v1alpha2",
        kind: "JobSet",
        plural: "jobsets",
        suspend: &["spec", "suspend"],
        sets: &[Sets {
            at: "/spec/replicatedJobs",
            form: SetForm::List,
            template: "/template/spec/template",
            counts: &["/replicas", "/template/spec/parallelism"],
            at_most: Some("/template/spec/completions"),
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
            counts: &["/replicas"],
            at_most: None,
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
            counts: &["/replicas"],
            at_most: None,
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
            ray("/spec/rayClusterSpec/workerGroupSpecs", SetForm::List, &["/replicas", "/numOfHosts"]),
        ],
    },
    Suspendable {
        api_version: "ray.io/v1",
        kind: "RayCluster",
        plural: "rayclusters",
        suspend: &["spec", "suspend"],
        sets: &[
            ray("/spec/headGroupSpec", SetForm::One, &[]),
            ray("/spec/workerGroupSpecs", SetForm::List, &["/replicas", "/numOfHosts"]),
        ],
    },
];

const fn ray(at: &'static str, form: SetForm, counts: &'static [&'static str]) -> Sets {
    Sets { at, form, template: "/template", counts, at_most: None, later: &[] }
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
