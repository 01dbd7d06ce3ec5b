//! Which preferences the nodes of a job's members meet.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraint::words::affinity;
use crate::constraint::{
    Expression, NodeConstraint, Peer, PodSelector, Preferences, discouraging_taints, term_matches,
};
use crate::inventory::{Inventory, NodeId, Selection, Topology};
use crate::placement::WEIGHT;

/// Maximum number of preferences listed.
const LISTED: usize = 128;

/// A member with its node.
#[derive(Clone, Debug)]
pub(crate) struct Placed<'a> {
    /// Its key as a holder, if it holds something.
    pub(crate) holder: Option<&'a str>,
    pub(crate) node: &'a str,
    pub(crate) constraint: &'a NodeConstraint,
    pub(crate) preferences: Option<&'a Preferences>,
    /// As others see it.
    pub(crate) peer: Peer,
}

/// A preference, and how many members are on nodes that meet it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PreferenceMet {
    /// What is preferred.
    pub text: String,
    /// 1 to 100.
    pub weight: u32,
    /// Members on nodes that meet it.
    pub met: u32,
    /// Members that have it.
    pub members: u32,
    /// It is about Pods of other namespaces as well.
    pub beyond_namespace: bool,
}

/// The preferences of these members, the greatest weight first.
pub(crate) fn preferences(inventory: &Inventory, members: &[Placed<'_>]) -> Vec<PreferenceMet> {
    let mut found = Found::default();
    let mut around = Around::new(inventory, members);
    for member in members {
        let Some(id) = inventory.id(member.node) else { continue };
        let Some(facts) = inventory.book(id).map(|book| &book.facts) else { continue };
        for taint in discouraging_taints(member.constraint, facts) {
            found.avoid(format!("no taint {taint}"));
        }
        for preferred in member.preferences.iter().flat_map(|preferences| &preferences.nodes) {
            let text = format!("node affinity to {}", affinity(std::slice::from_ref(&preferred.term)));
            found.add(text, preferred.weight, term_matches(&preferred.term, facts), false);
        }
        let Some(preferences) = member.preferences else { continue };
        let at = (member, id);
        let foreign = |selector: &PodSelector| {
            selector.namespace_selector.is_some()
                || selector.namespaces.iter().any(|name| *name != member.peer.namespace)
        };
        for preferred in &preferences.pods {
            let term = &preferred.term;
            let there = around.near(at, &term.selector, &term.topology);
            let what = if preferred.apart { "pod anti-affinity" } else { "pod affinity" };
            let text = format!("{what} to {} by {}", selected(&term.selector), term.topology);
            found.add(text, preferred.weight, there != preferred.apart, foreign(&term.selector));
        }
        for spread in &preferences.spread {
            let (selector, topology) = (&spread.selector, &spread.topology);
            let text =
                format!("spread of {} by {topology} (maxSkew {})", selected(selector), spread.max_skew);
            found.add(text, WEIGHT, around.even(at, selector, topology, spread.max_skew), false);
        }
    }
    found.list(members)
}

fn selected(selector: &PodSelector) -> String {
    let Some(labels) = &selector.labels else { return "no Pods".to_owned() };
    if labels.is_empty() {
        return "all Pods".to_owned();
    }
    let mut said: Vec<String> = labels.iter().take(5).map(Expression::to_string).collect();
    if labels.len() > said.len() {
        said.push(format!("{} more", labels.len() - said.len()));
    }
    said.join(", ")
}

/// The Pods around the members. What a selector selects is found once for all members.
struct Around<'a> {
    inventory: &'a Inventory,
    members: &'a [Placed<'a>],
    /// The members' keys as holders.
    holders: BTreeSet<&'a str>,
    counted: BTreeMap<(&'a PodSelector, &'a str), Counted>,
}

/// The Pods that a selector selects: of other jobs, and all members.
struct Counted {
    topology: Arc<Topology>,
    /// By domain.
    counts: Vec<u64>,
    /// The domains of members that hold something.
    held: BTreeMap<Arc<str>, Option<usize>>,
}

impl<'a> Around<'a> {
    fn new(inventory: &'a Inventory, members: &'a [Placed<'a>]) -> Self {
        let holders = members.iter().filter_map(|member| member.holder).collect();
        Self { inventory, members, holders, counted: BTreeMap::new() }
    }

    fn counted(&mut self, selector: &'a PodSelector, topology: &'a str) -> &Counted {
        let Self { inventory, members, holders, counted } = self;
        counted.entry((selector, topology)).or_insert_with(|| {
            let topology = inventory.topology(topology);
            let mut held = BTreeMap::new();
            let mut domains = Vec::new();
            let selection: Selection = vec![selector.clone()];
            for (holder, found) in inventory.selected_holders(&selection).filter(|(_, found)| found.there) {
                let domain = topology.of(found.node);
                domains.extend(domain);
                if holders.contains(&*holder) {
                    held.insert(holder, domain);
                }
            }
            let expected = members.iter().filter(|member| {
                member.holder.is_none() && member.peer.is_selected(selector, inventory.namespaces())
            });
            domains.extend(expected.filter_map(|member| topology.of(inventory.id(member.node)?)));
            let mut counts = vec![0_u64; topology.domains];
            for domain in domains {
                counts[domain] += 1;
            }
            Counted { topology, counts, held }
        })
    }

    /// Whether there is one of them besides the member in its domain.
    fn near(&mut self, at: (&Placed<'_>, NodeId), selector: &'a PodSelector, topology: &'a str) -> bool {
        let (member, id) = at;
        let itself = member.peer.is_selected(selector, self.inventory.namespaces());
        let counted = self.counted(selector, topology);
        let Some(own) = counted.topology.of(id) else { return false };
        counted.counts[own] > u64::from(counted.place(member, own, itself) == Some(own))
    }

    /// Whether the member's domain has at most that many Pods more than the one with the fewest.
    fn even(
        &mut self,
        (member, id): (&Placed<'_>, NodeId),
        selector: &'a PodSelector,
        topology: &'a str,
        max_skew: u32,
    ) -> bool {
        let itself = member.peer.is_selected(selector, self.inventory.namespaces());
        let counted = self.counted(selector, topology);
        let Some(own) = counted.topology.of(id) else { return false };
        let place = counted.place(member, own, itself);
        let count = |domain: usize| {
            let others = counted.counts[domain] - u64::from(place == Some(domain));
            others + u64::from(itself && domain == own)
        };
        let least = (0..counted.counts.len()).map(count).min().unwrap_or(0);
        count(own) <= least + u64::from(max_skew)
    }
}

impl Counted {
    /// The domain in which the member itself is counted, given its own and whether it is selected.
    fn place(&self, member: &Placed<'_>, own: usize, itself: bool) -> Option<usize> {
        match member.holder {
            Some(holder) => self.held.get(holder).copied().flatten(),
            None => itself.then_some(own),
        }
    }
}

#[derive(Default)]
struct Found {
    by_text: BTreeMap<(String, u32), PreferenceMet>,
    taints: BTreeMap<String, u32>,
}

impl Found {
    fn avoid(&mut self, text: String) {
        *self.taints.entry(text).or_default() += 1;
    }

    fn add(&mut self, text: String, weight: u32, met: bool, beyond_namespace: bool) {
        let new = || PreferenceMet { text: text.clone(), weight, met: 0, members: 0, beyond_namespace };
        let entry = self.by_text.entry((text.clone(), weight)).or_insert_with(new);
        entry.members += 1;
        entry.met += u32::from(met);
        entry.beyond_namespace |= beyond_namespace;
    }

    fn list(self, members: &[Placed<'_>]) -> Vec<PreferenceMet> {
        let all = u32::try_from(members.len()).unwrap_or(u32::MAX);
        let taints = self.taints.into_iter().map(|(text, count)| PreferenceMet {
            text,
            weight: WEIGHT,
            met: all.saturating_sub(count),
            members: all,
            beyond_namespace: false,
        });
        let mut list: Vec<PreferenceMet> = self.by_text.into_values().chain(taints).collect();
        list.sort_by(|a, b| b.weight.cmp(&a.weight).then_with(|| a.text.cmp(&b.text)));
        list.truncate(LISTED);
        list
    }
}

#[cfg(test)]
mod tests;
