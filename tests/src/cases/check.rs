//! Whether a check holds now; when not, what there is instead.

mod cancels;
mod impossible;
mod jobs;
mod nodes;
mod pods;
mod reasons;

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use kube::Client;

use super::model::{Amounts, Check, plain};
use super::quantity::nanos;
use super::target::Target;
use crate::apply::Applier;
use crate::plugin::{Plugin, Ran};
use crate::server::Server;

pub(super) use impossible::why as impossible;
pub(super) use pods::{ended, node as node_of};

/// What checks look at.
pub(super) struct World<'a> {
    /// The API server's word; standalone mode has none.
    pub(super) cluster: Option<&'a Applier>,
    pub(super) server: Server,
    pub(super) plugin: &'a Plugin,
    /// What each cancelling step was answered.
    pub(super) cancels: &'a BTreeMap<usize, Ran>,
}

impl World<'_> {
    fn cluster(&self) -> Result<&Applier> {
        self.cluster.context("only a real control plane can tell")
    }

    /// A client of the API server.
    fn client(&self) -> Result<&Client> {
        Ok(self.cluster()?.client())
    }
}

/// Looks once. `Err` says what is not as it should be.
pub(super) async fn holds(world: &World<'_>, check: &Check) -> Result<()> {
    if let Some(step) = check.cancel {
        let ran = world.cancels.get(&step).with_context(|| format!("step {step} cancelled nothing"))?;
        return cancels::holds(ran, check);
    }
    if let Some(object) = &check.object {
        return object_exists(world, object, check).await;
    }
    if let Some(object) = &check.event {
        return reasons::event(world, object, check).await;
    }
    if let Some(wanted) = &check.queue_order {
        return jobs::order(world, wanted).await;
    }
    if let Some(node) = &check.node {
        return nodes::holds(world, node, check).await;
    }
    if let Some(job) = &check.job {
        return jobs::holds(world, job, check).await;
    }
    if let Some(jobs) = &check.jobs {
        return jobs::count(world, jobs, check).await;
    }
    if let Some(pod) = &check.pod {
        return pods::one(world, pod, check).await;
    }
    if let Some(selector) = &check.pods {
        return pods::matching(world, selector, check).await;
    }
    bail!("this check names nothing to look at")
}

async fn object_exists(world: &World<'_>, object: &str, check: &Check) -> Result<()> {
    let Target::Object(kind, name) = Target::parse(object)? else {
        bail!("'{object}' names no single object")
    };
    let found = world.cluster()?.get(&kind, check.namespace(), &name).await?.is_some();
    let wanted = check.exists.unwrap_or(true);
    if found == wanted {
        Ok(())
    } else {
        bail!("{object} {}", if found { "exists" } else { "does not exist" })
    }
}

/// Compares the resources that are named; one that the answer lacks is 0. An empty wish means: none at all.
fn amounts(what: &str, wanted: &Amounts, found: &BTreeMap<String, String>) -> Result<()> {
    if wanted.is_empty() {
        return match found.iter().find(|(_, amount)| nanos(amount) != Some(0)) {
            None => Ok(()),
            Some((name, amount)) => bail!("{what} has {name}={amount}"),
        };
    }
    let mut wrong = Vec::new();
    for (name, amount) in wanted {
        let amount = plain(amount);
        let expected = nanos(&amount).with_context(|| format!("'{amount}' is no quantity"))?;
        let is = found.get(name).map_or("0", String::as_str);
        if nanos(is) != Some(expected) {
            wrong.push(format!("{what} {name} is {is}, not {amount}"));
        }
    }
    if wrong.is_empty() { Ok(()) } else { bail!("{}", wrong.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(text: &str) -> Amounts {
        serde_saphyr::from_str(text).unwrap()
    }

    #[test]
    fn amounts_are_compared_as_numbers() {
        let found =
            BTreeMap::from([("cpu".to_owned(), "4".to_owned()), ("memory".to_owned(), "1Gi".to_owned())]);
        amounts("free", &wanted("{cpu: 4000m, memory: '1073741824', pods: '0'}"), &found).unwrap();
        let wrong = amounts("free", &wanted("{cpu: 3, pods: 1}"), &found).unwrap_err().to_string();
        assert_eq!(wrong, "free cpu is 4, not 3; free pods is 0, not 1");
    }

    #[test]
    fn no_amounts_means_none() {
        amounts("deficit", &Amounts::new(), &BTreeMap::from([("cpu".to_owned(), "0".to_owned())])).unwrap();
        let found = BTreeMap::from([("nvidia.com/gpu".to_owned(), "2".to_owned())]);
        assert!(amounts("deficit", &Amounts::new(), &found).is_err());
    }
}
