//! The labels and annotations that define groups of Pods, and parsing of sizes.

use std::ops::Bound;

use crate::model::{Marks, PodSpec, SharedStr};

/// On a Pod, its Job or its PodGroup: its planned duration.
pub const DURATION: &str = "fluxion.flux-framework.org/duration";
/// On a Pod, its Job or its PodGroup: its queue.
pub const QUEUE: &str = "fluxion.flux-framework.org/queue";
/// `"true"` on an owner: all its Pods are one gang.
pub const GANG: &str = "fluxion.flux-framework.org/gang";
/// Standalone mode: run time of the Pod.
pub const RUN_TIME: &str = "fluxion.flux-framework.org/run-time";
/// Standalone mode: when an object is submitted, relative to the server's first start.
pub const SUBMIT_AT: &str = "fluxion.flux-framework.org/submit-at";
/// On a Pod, as JSON: its allocation.
pub const ALLOCATION: &str = "fluxion.flux-framework.org/allocation";
/// On a claim: since when the node in `volume.kubernetes.io/selected-node` is our choice (epoch seconds).
pub const SELECTED_AT: &str = "fluxion.flux-framework.org/selected-at";
/// The scheduling gate of Pods that we place and kube-scheduler binds.
pub const GATE: &str = "fluxion.flux-framework.org/gate";
/// On a Namespace, a label: how what is created there is taken in. On a Job, an annotation: [`SUSPENDED`] or [`RESUMED`].
pub const ADMISSION: &str = "fluxion.flux-framework.org/admission";
/// Modes of namespaces.
pub const MODES: [&str; 3] = ["bind", "gate", SUSPENDED];
/// The Job was suspended when it was created, to be queued before it has Pods.
pub const SUSPENDED: &str = "suspend";
/// It was resumed since: from now on, its user decides.
pub const RESUMED: &str = "resumed";
/// The name of the scheduling.x-k8s.io PodGroup a Pod belongs to.
pub const SCHEDULER_PLUGINS_GROUP: [&str; 2] =
    ["scheduling.x-k8s.io/pod-group", "pod-group.scheduling.sigs.k8s.io/name"];
/// Its size if there is no PodGroup object.
pub const SCHEDULER_PLUGINS_SIZE: [&str; 2] =
    ["scheduling.x-k8s.io/min-available", "pod-group.scheduling.sigs.k8s.io/min-available"];

/// A family of keys for the name and size of a group.
pub struct Family {
    pub names: &'static [&'static str],
    pub sizes: &'static [&'static str],
}

/// In order of precedence: those used by existing manifests, then our own.
pub const FAMILIES: [Family; 4] = [
    Family {
        names: &[
            "fluence.pod-group",
            "fluence.flux-framework.org/pod-group",
            "fluence.flux-framework.org/group",
        ],
        sizes: &["fluence.group-size", "fluence.flux-framework.org/group-size"],
    },
    Family { names: &["fluxnetes.group-name"], sizes: &["fluxnetes.group-size"] },
    Family { names: &["fluxqueue.pod-group"], sizes: &["fluxqueue.group-size", "fluxqueue.pod-group-size"] },
    Family {
        names: &["fluxion.flux-framework.org/group"],
        sizes: &["fluxion.flux-framework.org/group-size"],
    },
];

/// Key prefixes of labels and annotations for this scheduler, or for those whose manifests it supports.
pub const PREFIXES: [&str; 4] = ["fluence.", "fluxion.flux-framework.org/", "fluxnetes.", "fluxqueue."];

/// Keys that are only supported as annotations. Those in [`FAMILIES`] may also be labels.
const ANNOTATIONS: [&str; 6] = [ALLOCATION, DURATION, GANG, QUEUE, RUN_TIME, SUBMIT_AT];

/// The keys in `marks` with one of our prefixes that are unknown, in order.
pub fn unknown(marks: &Marks, labels: bool) -> impl Iterator<Item = &SharedStr> {
    let ours = PREFIXES.iter().flat_map(|prefix| {
        marks
            .range::<str, _>((Bound::Included(*prefix), Bound::Unbounded))
            .map(|(key, _)| key)
            .take_while(|key| key.starts_with(*prefix))
    });
    ours.filter(move |key| {
        !known().any(|known| *known == ***key) || (labels && ANNOTATIONS.contains(&&***key))
    })
}

fn known() -> impl Iterator<Item = &'static str> {
    let families = FAMILIES.iter().flat_map(|family| family.names.iter().chain(family.sizes));
    families.chain(&ANNOTATIONS).chain([&ADMISSION]).copied()
}

/// A suggestion for a key that is [`unknown`].
pub fn advice(key: &str) -> String {
    let all = || known().filter(|known| *known != ALLOCATION);
    if all().any(|known| known == key) {
        return "it must be an annotation, not a label".to_owned();
    }
    let typed = shorten(key);
    let nearest = all().min_by_key(|known| strsim::osa_distance(known, &typed));
    let name = typed.rsplit(['/', '.']).next().unwrap_or_default().chars().count();
    match nearest {
        // A typo, not a different word.
        Some(known) if strsim::osa_distance(known, &typed) <= (name / 3).max(1) => {
            format!("did you mean {known}?")
        }
        _ => {
            let prefix =
                PREFIXES.iter().find(|prefix| key.starts_with(**prefix)).copied().unwrap_or_default();
            let known: Vec<&str> = all().filter(|known| known.starts_with(prefix)).collect();
            format!("valid names are {}", known.join(", "))
        }
    }
}

/// The first of `keys` that exists as a label or annotation, with its value.
pub fn find<'a>(pod: &'a PodSpec, keys: &[&'static str]) -> Option<(&'static str, &'a SharedStr)> {
    keys.iter()
        .find_map(|key| pod.labels.get(*key).or_else(|| pod.annotations.get(*key)).map(|value| (*key, value)))
}

/// Whether an owner or Pod requests that its Pods are one gang.
///
/// The error describes the valid values.
pub fn wants_gang(annotations: &Marks) -> Result<bool, String> {
    match annotations.get(GANG).map(|value| &**value) {
        Some("true") => Ok(true),
        None | Some("false") => Ok(false),
        Some(other) => Err(format!("invalid {GANG} '{}': must be \"true\" or \"false\"", shorten(other))),
    }
}

/// A group size: a whole number from 1 to `max`, in plain decimal digits.
///
/// The error contains the key and the valid values.
pub fn size(key: &str, text: &str, max: u32) -> Result<u32, String> {
    let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match text.parse::<u32>() {
        Ok(size) if plain && (1..=max).contains(&size) => Ok(size),
        _ => Err(format!("invalid {key} '{}': must be an integer between 1 and {max}", shorten(text))),
    }
}

/// At most 64 characters of untrusted text.
pub fn shorten(text: &str) -> String {
    fluxion_text::shorten(text, 64).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_key_is_told_from_known_ones_and_from_others() {
        let marks = |keys: &[&str]| keys.iter().map(|key| ((*key).into(), "x".into())).collect::<Marks>();
        let found = |keys: &[&str], labels| {
            unknown(&marks(keys), labels).map(ToString::to_string).collect::<Vec<_>>()
        };
        let all: Vec<&str> = known().collect();
        assert_eq!(found(&all, false), [""; 0]);
        let ours = ["fluxion.flux-framework.org/timelimit", "fluence.group-szie", "fluxqueue.x"];
        let others =
            ["app", "fluxion.example.org/duration", "fluxion.flux-framework.org", "scheduling.x-k8s.io/x"];
        assert_eq!(found(&[&ours[..], &others[..]].concat(), false), [ours[1], ours[0], ours[2]]);
        assert_eq!(found(&[DURATION, "fluence.group-size"], true), [DURATION], "a label is no annotation");
    }

    #[test]
    fn what_was_meant_is_named_where_it_is_near() {
        for (key, text) in [
            ("fluxion.flux-framework.org/durration", "did you mean fluxion.flux-framework.org/duration?"),
            ("fluxion.flux-framework.org/group_size", "did you mean fluxion.flux-framework.org/group-size?"),
            ("fluence.group-szie", "did you mean fluence.group-size?"),
            (DURATION, "it must be an annotation, not a label"),
            ("fluxnetes.x", "valid names are fluxnetes.group-name, fluxnetes.group-size"),
        ] {
            assert_eq!(advice(key), text);
        }
        let far = advice("fluxion.flux-framework.org/timelimit");
        assert!(
            far.starts_with("valid names are ") && far.contains(DURATION) && !far.contains("fluence"),
            "{far}"
        );
    }

    #[test]
    fn sizes_are_plain_whole_numbers() {
        assert_eq!(size("k", "3", 100), Ok(3));
        for bad in ["", "0", "-2", "three", "1.5", " 3 ", "+3", "2147483648", "99999999999999999999", "101"] {
            let error = size("group-size", bad, 100).unwrap_err();
            assert!(error.contains("group-size") && error.contains(bad), "{error}");
        }
    }
}
