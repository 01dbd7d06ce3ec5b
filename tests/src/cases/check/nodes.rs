//! Checks of nodes: the inspector's books, and what the API server says stands on the node.

use std::collections::BTreeMap;

use anyhow::{Result, bail};
use k8s_openapi::api::core::v1::{Node, Pod};
use kube::api::ListParams;
use kube::{Api, ResourceExt as _};

use super::super::model::Check;
use super::{World, amounts, pods};

/// One node.
pub(super) async fn holds(world: &World<'_>, name: &str, check: &Check) -> Result<()> {
    if let Some(wanted) = check.exists {
        let nodes: Api<Node> = Api::all(world.client.clone());
        let found = nodes.get_opt(name).await?.is_some();
        let known = world.inspector.node(name).await.is_ok();
        if found != wanted || known != wanted {
            bail!("in the API server: {found}, in the inspector: {known}");
        }
    }
    let of_node = [&check.allocated, &check.foreign, &check.free, &check.deficit];
    if of_node.iter().any(|wanted| wanted.is_some()) {
        let status = world.inspector.node(name).await?.status;
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

/// Whether exactly the named Pods stand on the node.
async fn adds_up(world: &World<'_>, node: &str, wanted: &[String]) -> Result<()> {
    let all: Api<Pod> = Api::all(world.client.clone());
    let on_node = all.list(&ListParams::default().fields(&format!("spec.nodeName={node}"))).await?;
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for pod in on_node.items.iter().filter(|pod| !pods::ended(pod)) {
        *found.entry(called(pod)).or_default() += 1;
    }
    let wanted = parse(wanted);
    if found == wanted { Ok(()) } else { bail!("on it stand {found:?}") }
}

/// `NAMESPACE:KIND/NAME` of the controller, or of the Pod itself.
fn called(pod: &Pod) -> String {
    let namespace = pod.namespace().unwrap_or_default();
    let owner = pod.owner_references().iter().find(|owner| owner.controller == Some(true));
    match owner {
        Some(owner) => format!("{namespace}:{}/{}", owner.kind, owner.name),
        None => format!("{namespace}:Pod/{}", pod.name_any()),
    }
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
}
