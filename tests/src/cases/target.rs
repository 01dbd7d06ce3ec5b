//! Objects as steps and checks name them: `kind/name`, `kind.group/name` or `pods:SELECTOR`.

use anyhow::{Context, Result};
use kube::core::GroupVersionKind;

/// What a step acts on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Target {
    /// One object.
    Object(GroupVersionKind, String),
    /// All Pods that a label selector matches.
    Pods(String),
}

/// Kinds that cases name; where a kind is written without a group, the first of that name is meant.
const KINDS: [(&str, &str, &str); 19] = [
    ("", "v1", "Node"),
    ("", "v1", "Pod"),
    ("", "v1", "Namespace"),
    ("", "v1", "ConfigMap"),
    ("batch", "v1", "Job"),
    ("batch", "v1", "CronJob"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "StatefulSet"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "DaemonSet"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy"),
    ("admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding"),
    ("scheduling.k8s.io", "v1beta1", "PodGroup"),
    ("scheduling.x-k8s.io", "v1alpha1", "PodGroup"),
    ("scheduling.k8s.io", "v1", "PriorityClass"),
    ("node.k8s.io", "v1", "RuntimeClass"),
];

impl Target {
    pub(super) fn parse(text: &str) -> Result<Self> {
        if let Some(selector) = text.strip_prefix("pods:") {
            return Ok(Self::Pods(selector.to_owned()));
        }
        let (kind, name) = text.split_once('/').with_context(|| format!("'{text}' is not kind/name"))?;
        let (kind, group) = match kind.split_once('.') {
            Some((kind, group)) => (kind, Some(group)),
            None => (kind, None),
        };
        let found = KINDS
            .iter()
            .find(|(of, _, name)| name.eq_ignore_ascii_case(kind) && group.is_none_or(|group| group == *of));
        let (group, version, kind) = found.with_context(|| format!("'{text}' is of no known kind"))?;
        Ok(Self::Object(GroupVersionKind::gvk(group, version, kind), name.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_named_by_kind_group_and_name() {
        let object = |text| match Target::parse(text).unwrap() {
            Target::Object(kind, name) => (kind.group, kind.kind, name),
            Target::Pods(selector) => panic!("{selector}"),
        };
        assert_eq!(object("job.batch/waiting"), ("batch".into(), "Job".into(), "waiting".into()));
        assert_eq!(object("pod/a"), (String::new(), "Pod".into(), "a".into()));
        let group = "podgroup.scheduling.x-k8s.io/train";
        assert_eq!(object(group), ("scheduling.x-k8s.io".into(), "PodGroup".into(), "train".into()));
        let policy = "validatingadmissionpolicybinding.admissionregistration.k8s.io/no";
        assert_eq!(object(policy).1, "ValidatingAdmissionPolicyBinding");
        assert_eq!(Target::parse("pods:a=b").unwrap(), Target::Pods("a=b".into()));
        assert!(Target::parse("widget/a").is_err());
    }
}
