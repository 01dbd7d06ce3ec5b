//! Checks of nodes: the inspector's books, and what the API server says stands on the node.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::{Node, Pod};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::api::{ListParams, TypeMeta};
use kube::core::GroupVersionKind;
use kube::{Api, ResourceExt as _};

use super::super::model::Check;
use super::{World, amounts, pods};
use crate::apply::Applier;

/// One node.
pub(super) async fn holds(world: &World<'_>, name: &str, check: &Check) -> Result<()> {
    if let Some(wanted) = check.exists {
        let nodes: Api<Node> = Api::all(world.client()?.clone());
        let found = nodes.get_opt(name).await?.is_some();
        let known = world.server.node(name).await.is_ok();
        if found != wanted || known != wanted {
            bail!("in the API server: {found}, in the inspector: {known}");
        }
    }
    let of_node = [&check.allocated, &check.foreign, &check.free, &check.deficit];
    if of_node.iter().any(|wanted| wanted.is_some()) {
        let status = world.server.node(name).await?.status;
        let all = [
            ("allocated", &check.allocated, &status.allocated),
            ("foreign", &check.foreign, &status.foreign),
            ("free", &check.free, &status.free),
            ("deficit", &check.deficit, &status.deficit),
        ];
        for (what, wanted, found) in all {
            if let Some(wanted) = wanted {
                amounts(what, wanted, found)?;
            }
        }
    }
    match &check.sum_of {
        Some(wanted) => adds_up(world, name, wanted).await,
        None => Ok(()),
    }
}

/// Whether exactly the named Pods stand on the node. A Pod counts under the owner that is named, however far up.
async fn adds_up(world: &World<'_>, node: &str, wanted: &[String]) -> Result<()> {
    let all: Api<Pod> = Api::all(world.client()?.clone());
    let on_node = all.list(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await?;
    let wanted = parse(wanted);
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for pod in on_node.items.iter().filter(|pod| !pods::ended(pod)) {
        *found.entry(called(&line(world.cluster()?, pod).await?, &wanted)).or_default() += 1;
    }
    if found == wanted { Ok(()) } else { bail!("on it stand {found:?}") }
}

/// The Pod and its controllers upwards, as `NAMESPACE:KIND/NAME`.
async fn line(cluster: &Applier, pod: &Pod) -> Result<Vec<String>> {
    let namespace = pod.namespace().unwrap_or_default();
    let mut names = vec![format!("{namespace}:Pod/{}", pod.name_any())];
    let mut owner = controller(pod.owner_references());
    while let Some(reference) = owner.take() {
        names.push(format!("{namespace}:{}/{}", reference.kind, reference.name));
        let kind = GroupVersionKind::try_from(&TypeMeta {
            api_version: reference.api_version,
            kind: reference.kind,
        })?;
        // One that is gone, or of a kind that is not served, is the last.
        let next = cluster.get(&kind, &namespace, &reference.name).await.unwrap_or_default();
        owner = next.and_then(|next| controller(next.owner_references()));
        if names.len() > 10 {
            bail!("the owners of {} have no end", names[0]);
        }
    }
    Ok(names)
}

fn controller(owners: &[OwnerReference]) -> Option<OwnerReference> {
    owners.iter().find(|owner| owner.controller == Some(true)).cloned()
}

/// The name of the line that is asked for; else that of its first controller, or of the Pod itself.
fn called(line: &[String], wanted: &BTreeMap<String, usize>) -> String {
    let asked = line.iter().find(|name| wanted.contains_key(*name));
    asked.or_else(|| line.get(1)).or_else(|| line.first()).cloned().unwrap_or_default()
}

/// `kube-system:Pod/cni-agent`, `Job/ring*2`: what stands there, and how many.
fn parse(wanted: &[String]) -> BTreeMap<String, usize> {
    let mut found = BTreeMap::new();
    for text in wanted {
        let (name, count) = match text.split_once('*') {
            Some((name, count)) => (name, count.parse().unwrap_or(0)),
            None => (text.as_str(), 1),
        };
        let name = if name.contains(':') { name.to_owned() } else { format!("default:{name}") };
        *found.entry(name).or_default() += count;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_adds_up_is_read() {
        let wanted = ["kube-system:Pod/cni", "Job/ring*2", "Pod/a"].map(str::to_owned);
        let expected = [("default:Job/ring", 2), ("default:Pod/a", 1), ("kube-system:Pod/cni", 1)];
        assert_eq!(parse(&wanted), expected.map(|(name, count)| (name.to_owned(), count)).into());
    }

    #[test]
    fn a_pod_counts_under_the_owner_that_is_named() {
        let line =
            ["default:Pod/web-1", "default:ReplicaSet/web-7f", "default:Deployment/web"].map(str::to_owned);
        let named = |names: &[&str]| {
            called(&line, &parse(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()))
        };
        assert_eq!(named(&["Deployment/web*2"]), "default:Deployment/web");
        assert_eq!(named(&["Pod/web-1"]), "default:Pod/web-1");
        assert_eq!(named(&["Pod/other"]), "default:ReplicaSet/web-7f");
        assert_eq!(called(&line[..1], &BTreeMap::new()), "default:Pod/web-1");
    }
}
