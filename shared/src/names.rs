//! Names: the API group and version, and job references.

use std::fmt;
use std::str::FromStr;

/// The API group of everything the inspector serves.
pub const GROUP: &str = "fluxion.flux-framework.org";
/// The version of the API group.
pub const VERSION: &str = "v1alpha1";
/// `GROUP/VERSION`, as in `apiVersion`.
pub const API_VERSION: &str = "fluxion.flux-framework.org/v1alpha1";

/// A job reference as specified by a user: `KIND/NAME`, `KIND.NAME`, `NAMESPACE/KIND/NAME`, or `NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobRef {
    /// Set only if the reference includes a namespace.
    pub namespace: Option<String>,
    /// Lowercase, e.g. `job`, `podgroup`, `pod`, `group`; kinds outside core, batch and apps include
    /// their API group (`jobset.jobset.x-k8s.io`). `None` if only a name was specified.
    pub kind: Option<String>,
    pub name: String,
}

/// Invalid job reference.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid job '{0}': must be KIND/NAME as printed by `kubectl fluxion queue` (job/lammps), NAMESPACE/KIND/NAME, or NAME"
)]
pub struct BadJobRef(pub String);

impl FromStr for JobRef {
    type Err = BadJobRef;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts: Vec<&str> = text.split('/').collect();
        if parts.iter().any(|part| part.is_empty()) {
            return Err(BadJobRef(text.to_owned()));
        }
        let (namespace, kind, name) = match parts.as_slice() {
            [name] => (None, None, *name),
            [kind, name] => (None, Some(kind.to_lowercase()), *name),
            [namespace, kind, name] => (Some((*namespace).to_owned()), Some(kind.to_lowercase()), *name),
            _ => return Err(BadJobRef(text.to_owned())),
        };
        Ok(Self { namespace, kind, name: name.to_owned() })
    }
}

impl fmt::Display for JobRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(namespace) = &self.namespace {
            write!(f, "{namespace}/")?;
        }
        if let Some(kind) = &self.kind {
            write!(f, "{kind}/")?;
        }
        f.write_str(&self.name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_job_reference() {
        let full: JobRef = "team/Job/lammps".parse().unwrap();
        assert_eq!(
            (full.namespace.as_deref(), full.kind.as_deref(), full.name.as_str()),
            (Some("team"), Some("job"), "lammps")
        );
        let bare: JobRef = "job.lammps".parse().unwrap();
        assert_eq!((bare.kind, bare.name.as_str()), (None, "job.lammps"));
        for bad in ["", "/", "job/", "/x", "a/b/c/d"] {
            assert_eq!(bad.parse::<JobRef>(), Err(BadJobRef(bad.to_owned())));
        }
    }
}
