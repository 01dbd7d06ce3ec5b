//! Finds jobs by reference, and suggests similar names if there is no match.

use std::collections::BTreeSet;

use fluxion_api::client::{Client, Error, Selection};
use fluxion_api::{Exit, FluxionJob, JobRef};

use crate::cli::Scope;
use crate::connect::Server;
use crate::failure::Failure;

/// The selected namespace; `None` for all namespaces.
pub fn namespaces(server: &Server, scope: &Scope) -> Option<String> {
    if scope.all_namespaces {
        return None;
    }
    Some(scope.namespace.clone().unwrap_or_else(|| server.namespace.clone()))
}

/// Finds the job `wanted`, in its own namespace if specified, otherwise in `namespace` (`None` for all).
pub async fn find(client: &Client, namespace: Option<&str>, wanted: &JobRef) -> Result<FluxionJob, Failure> {
    let wanted = canonical(wanted);
    let namespace = wanted.namespace.as_deref().or(namespace);
    if let (Some(namespace), Some(name)) = (namespace, direct_name(&wanted)) {
        match client.object::<FluxionJob>(Some(namespace), &name).await {
            Err(Error::NotFound { .. }) => {}
            other => return Ok(other?),
        }
    }
    let selection = Selection { namespace: namespace.map(str::to_owned), ..Selection::default() };
    let jobs = client.list::<FluxionJob>(&selection).await?.items;
    Ok(pick(jobs, namespace, &wanted)?)
}

/// Finds the job `wanted` in the selected namespace or, if the user did not specify one, in the only namespace that
/// contains it.
pub async fn find_anywhere(server: &Server, scope: &Scope, wanted: &JobRef) -> Result<FluxionJob, Failure> {
    let namespace = namespaces(server, scope);
    let failure = match find(&server.client, namespace.as_deref(), wanted).await {
        Err(failure) if failure.exit == Exit::NotFound => failure,
        other => return other,
    };
    if namespace.is_none() || scope.namespace.is_some() || wanted.namespace.is_some() {
        return Err(failure);
    }
    // Who may not look there learns what there is here.
    let Ok(all) = server.client.list::<FluxionJob>(&Selection::default()).await else { return Err(failure) };
    let here = |job: &FluxionJob| job.metadata.namespace == namespace;
    let jobs: Vec<FluxionJob> = all.items.into_iter().filter(|job| !here(job)).collect();
    match pick(jobs, None, &canonical(wanted)) {
        Err(Missed { several: false, .. }) => Err(failure),
        other => Ok(other?),
    }
}

/// No job or multiple jobs match.
struct Missed {
    several: bool,
    failure: Failure,
}

impl From<Missed> for Failure {
    fn from(missed: Missed) -> Self {
        missed.failure
    }
}

/// The name of the API object, if it can be derived without listing.
fn direct_name(wanted: &JobRef) -> Option<String> {
    match &wanted.kind {
        Some(kind) => Some(format!("{kind}.{}", wanted.name)),
        None => wanted.name.contains('.').then(|| wanted.name.clone()),
    }
}

/// Normalizes kubectl's alternative notations: plurals, short names, and kinds with a group that job
/// references omit (`job.batch/x`, `fluxionjob.fluxion.flux-framework.org/job.x`).
fn canonical(wanted: &JobRef) -> JobRef {
    let Some(kind) = &wanted.kind else { return wanted.clone() };
    let kind = ["batch", "apps"]
        .iter()
        .find_map(|group| kind.strip_suffix(group)?.strip_suffix('.'))
        .unwrap_or(kind);
    let kind = match kind {
        "fj" | "fluxionjob" | "fluxionjobs" => None,
        other if other.ends_with(fluxion_api::GROUP) => None,
        "jobs" => Some("job"),
        "po" | "pods" => Some("pod"),
        "podgroups" | "pg" => Some("podgroup"),
        "groups" => Some("group"),
        "jobsets" => Some("jobset"),
        other => Some(other),
    };
    JobRef { namespace: wanted.namespace.clone(), kind: kind.map(str::to_owned), name: wanted.name.clone() }
}

/// Selects the job from `jobs`, or returns a helpful error.
fn pick(jobs: Vec<FluxionJob>, namespace: Option<&str>, wanted: &JobRef) -> Result<FluxionJob, Missed> {
    let missed =
        |several: bool, text: String| Missed { several, failure: Failure::new(Exit::NotFound, text) };
    let fits = |job: &FluxionJob, loose: bool| {
        let own = job.reference();
        match &wanted.kind {
            Some(kind) => {
                let own_kind = own.kind.as_deref().unwrap_or_default();
                let same_kind = own_kind == kind || own_kind.split('.').next() == Some(kind);
                same_kind && own.name == wanted.name
            }
            None => {
                own.name == wanted.name
                    || job.metadata.name == wanted.name
                    || loose && job.spec.group.name == wanted.name
            }
        }
    };
    let mut found: Vec<usize> = (0..jobs.len()).filter(|at| fits(&jobs[*at], false)).collect();
    if found.is_empty() {
        found = (0..jobs.len()).filter(|at| fits(&jobs[*at], true)).collect();
    }
    let written = |job: &FluxionJob| {
        let mut own = job.reference();
        if namespace.is_some() {
            own.namespace = None;
        }
        own.to_string()
    };
    let place =
        namespace.map_or_else(|| "any namespace".to_owned(), |namespace| format!("namespace {namespace}"));
    match found.as_slice() {
        [one] => jobs.into_iter().nth(*one).ok_or_else(|| missed(false, "no such job".to_owned())),
        [] => {
            let near = similar(&wanted.to_string(), jobs.iter().map(written));
            let help = if near.is_empty() {
                let wider = if namespace.is_some() { " -A" } else { "" };
                format!("run `kubectl fluxion jobs{wider}` to list jobs")
            } else {
                format!("did you mean {}?", near.join(", "))
            };
            Err(missed(false, format!("no job named {wanted} in {place}; {help}")))
        }
        several => {
            let names: Vec<String> = several.iter().take(5).map(|at| written(&jobs[*at])).collect();
            let more = if several.len() > names.len() { " …" } else { "" };
            Err(missed(
                true,
                format!(
                    "{} jobs in {place} are named {wanted}; specify one of {}{more}",
                    several.len(),
                    names.join(", ")
                ),
            ))
        }
    }
}

/// Up to three of `names` that are similar to `wanted`, most similar first.
fn similar(wanted: &str, names: impl Iterator<Item = String>) -> Vec<String> {
    let bare = |text: &str| text.rsplit('/').next().unwrap_or_default().to_owned();
    let target = bare(wanted);
    let near: BTreeSet<(usize, String)> = names
        .filter_map(|name| {
            let candidate = bare(&name);
            let apart = distance(&target, &candidate);
            let contains = target.len() >= 3 && (candidate.contains(&target) || target.contains(&candidate));
            (contains || apart <= target.chars().count() / 3).then_some((apart, name))
        })
        .collect();
    near.into_iter().take(3).map(|(_, name)| name).collect()
}

/// Edit distance (insert, delete, replace, transpose) between two texts. Only the first 64 characters are
/// compared.
fn distance(a: &str, b: &str) -> usize {
    let a: Vec<char> = a.chars().take(64).collect();
    let b: Vec<char> = b.chars().take(64).collect();
    let mut rows = vec![vec![0; b.len() + 1]; a.len() + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        row[0] = i;
    }
    for (j, cell) in rows[0].iter_mut().enumerate() {
        *cell = j;
    }
    for i in 1..=a.len() {
        for j in 1..=b.len() {
            let replace = rows[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
            let mut best = replace.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                best = best.min(rows[i - 2][j - 2] + 1);
            }
            rows[i][j] = best;
        }
    }
    rows[a.len()][b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn job(kind: &str, name: &str) -> FluxionJob {
        let mut job = FluxionJob::default();
        job.metadata.name = format!("{}.{name}", kind.to_lowercase());
        job.metadata.namespace = Some("default".to_owned());
        job.spec.group.kind = kind.to_owned();
        name.clone_into(&mut job.spec.group.name);
        job
    }

    fn some() -> Vec<FluxionJob> {
        vec![job("Job", "lammps"), job("Pod", "lammps"), job("Job", "train"), job("group", "sim.v2")]
    }

    fn picked(text: &str) -> Result<String, Failure> {
        let wanted = canonical(&text.parse().unwrap());
        Ok(pick(some(), Some("default"), &wanted)?.metadata.name)
    }

    #[test]
    fn forms_of_a_name() {
        for (text, name) in [
            ("job/lammps", "job.lammps"),
            ("JOBS/lammps", "job.lammps"),
            ("job.batch/lammps", "job.lammps"),
            ("po/lammps", "pod.lammps"),
            ("train", "job.train"),
            ("job.train", "job.train"),
            ("sim.v2", "group.sim.v2"),
            ("default/group/sim.v2", "group.sim.v2"),
            ("fluxionjob.fluxion.flux-framework.org/job.train", "job.train"),
        ] {
            assert_eq!(picked(text), Ok(name.to_owned()), "{text}");
        }
    }

    #[test]
    fn a_name_that_several_carry() {
        let failure = picked("lammps").unwrap_err();
        assert_eq!(failure.exit, Exit::NotFound);
        assert_eq!(
            failure.message.unwrap(),
            "2 jobs in namespace default are named lammps; specify one of job/lammps, pod/lammps"
        );
    }

    #[test]
    fn a_name_that_nobody_carries() {
        assert_eq!(
            picked("job/trian").unwrap_err().message.unwrap(),
            "no job named job/trian in namespace default; did you mean job/train?"
        );
        assert!(picked("zzz").unwrap_err().message.unwrap().contains("kubectl fluxion jobs -A"));
    }

    #[test]
    fn distances() {
        assert_eq!(distance("train", "trian"), 1);
        assert_eq!(distance("", "abc"), 3);
        assert_eq!(distance("abc", "abd"), 1);
        assert_eq!(distance(&"x".repeat(10_000), &"x".repeat(9_000)), 0);
    }
}
