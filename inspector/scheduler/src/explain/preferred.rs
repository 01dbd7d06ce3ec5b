//! Which preferences the nodes of a job's members meet.

use std::collections::BTreeMap;

use crate::constraint::words::affinity;
use crate::constraint::{
    Expression, NodeConstraint, Peer, PodSelector, Preferences, discouraging_taints, term_matches,
};
use crate::inventory::{Inventory, NodeId, Selection};
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
        let others = Others { inventory, members, member, id };
        let foreign = |selector: &PodSelector| {
            selector.namespace_selector.is_some()
                || selector.namespaces.iter().any(|name| *name != member.peer.namespace)
        };
        for preferred in &preferences.pods {
            let term = &preferred.term;
            let domain = inventory.topology(&term.topology).of(id);
            let there = domain.is_some() && others.near(&term.selector, &term.topology);
            let what = if preferred.apart { "pod anti-affinity" } else { "pod affinity" };
            let text = format!("{what} to {} by {}", selected(&term.selector), term.topology);
            found.add(text, preferred.weight, there != preferred.apart, foreign(&term.selector));
        }
        for spread in &preferences.spread {
            let (selector, topology) = (&spread.selector, &spread.topology);
            let text =
                format!("spread of {} by {topology} (maxSkew {})", selected(selector), spread.max_skew);
            found.add(text, WEIGHT, others.even(selector, topology, spread.max_skew), false);
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

/// Other Pods around one member.
struct Others<'a> {
    inventory: &'a Inventory,
    members: &'a [Placed<'a>],
    member: &'a Placed<'a>,
    id: NodeId,
}

impl Others<'_> {
    /// The nodes of the selected Pods: of other jobs, and of the other members.
    fn nodes(&self, selector: &PodSelector) -> Vec<NodeId> {
        let selection: Selection = vec![selector.clone()];
        let holders = self.inventory.selected_holders(&selection);
        let members = self.members.iter().filter(|other| !std::ptr::eq(*other, self.member));
        let expected = members.filter(|other| {
            other.holder.is_none() && other.peer.is_selected(selector, self.inventory.namespaces())
        });
        holders
            .filter(|(holder, found)| found.there && Some(&**holder) != self.member.holder)
            .map(|(_, found)| found.node)
            .chain(expected.filter_map(|other| self.inventory.id(other.node)))
            .collect()
    }

    fn near(&self, selector: &PodSelector, topology: &str) -> bool {
        let topology = self.inventory.topology(topology);
        let own = topology.of(self.id);
        self.nodes(selector).into_iter().any(|id| topology.of(id) == own)
    }

    /// Whether the member's domain has at most that many Pods more than the one with the fewest.
    fn even(&self, selector: &PodSelector, topology: &str, max_skew: u32) -> bool {
        let topology = self.inventory.topology(topology);
        let Some(own) = topology.of(self.id) else { return false };
        let mut counts = vec![0_u64; topology.domains];
        for id in self.nodes(selector) {
            if let Some(domain) = topology.of(id) {
                counts[domain] += 1;
            }
        }
        let itself = self.member.peer.is_selected(selector, self.inventory.namespaces());
        counts[own] += u64::from(itself);
        let least = counts.iter().min().copied().unwrap_or(0);
        counts[own] <= least + u64::from(max_skew)
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
