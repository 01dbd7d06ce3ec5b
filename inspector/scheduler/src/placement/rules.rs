//! Constraints between Pods at the moment of a search: whether one more slot may be on a node, considering the Pods
//! that are there then and the slots chosen so far.
//!
//! Each rule is that of kube-scheduler's filter of the same constraint, so slots added one after the other, each allowed
//! by its rules, could have been placed by it in that order. Which Pods are there is taken from the planned ends of
//! holders. Reservations keep others away by their anti-affinity, and count for affinity and spread only at a planned
//! start during them: whatever is planned is decided again when it starts.

mod volumes;

use std::collections::BTreeMap;
use std::sync::Arc;

use super::availability::Availability;
use super::counting::{Counting, Counts};
use super::denied::Denied;
use super::plan::{Plan, PlannedShape};
use super::tally::Tally;
use crate::constraint::{Peer, PodSelector};
use crate::inventory::{NodeId, Selection, Topology};
use volumes::VolumeRules;

/// A rule for the slots of one shape.
#[derive(Clone, Debug)]
enum Rule {
    /// The node is in a domain.
    Domain { key: Arc<str>, topology: Arc<Topology> },
    /// In each tally, there is a Pod in the node's domain; or nowhere, and the Pod would be the one (`own`).
    Near { tallies: Vec<(Arc<str>, usize)>, own: bool },
    /// There is no Pod in the node's domain; because of the shape's `own` anti-affinity, or that of others.
    Apart { tally: usize, own: bool },
    /// There are not too many Pods in the node's domain.
    Spread { key: Arc<str>, tally: usize, max_skew: u32, min_domains: u32, own: u32 },
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    tallies: Vec<Tally>,
    /// By shape of the plan.
    rules: Vec<Vec<Rule>>,
    volumes: Option<VolumeRules>,
}

impl Rules {
    /// No rules.
    pub(super) fn none(plan: &Plan<'_>) -> Self {
        Self { tallies: Vec::new(), rules: vec![Vec::new(); plan.shapes.len()], volumes: None }
    }

    /// The rules at this moment; none if no constraint applies.
    pub(crate) fn new(plan: &Plan<'_>, availability: &Availability<'_>) -> Option<Self> {
        if !plan.constrained {
            return None;
        }
        let mut rules = Self::none(plan);
        let counting = Counting::new(plan, availability);
        for (at, shape) in plan.shapes.iter().enumerate() {
            if let Some(peer) = shape.peer {
                Building { counting: &counting, rules: &mut rules, at, peer }.all(shape);
            }
        }
        rules.volumes = VolumeRules::new(plan, availability);
        (rules.volumes.is_some() || rules.rules.iter().any(|rules| !rules.is_empty())).then_some(rules)
    }

    /// Whether one more slot of the shape may be on the node.
    pub(crate) fn check(&self, shape: usize, id: NodeId) -> Result<(), Denied> {
        self.rules[shape].iter().try_for_each(|rule| self.one(rule, id))?;
        self.volumes.as_ref().map_or(Ok(()), |volumes| volumes.check(shape, id))
    }

    /// Whether a denial stays one, whatever else is placed.
    pub(super) fn is_final(denied: &Denied) -> bool {
        !matches!(denied, Denied::Affinity | Denied::Spread(_))
    }

    fn one(&self, rule: &Rule, id: NodeId) -> Result<(), Denied> {
        match rule {
            Rule::Domain { key, topology } => match topology.of(id) {
                Some(_) => Ok(()),
                None => Err(Denied::NoDomain(key.clone())),
            },
            Rule::Near { tallies, own } => {
                let mut there = true;
                for (key, tally) in tallies {
                    let tally = &self.tallies[*tally];
                    let domain = tally.domain(id).ok_or_else(|| Denied::NoDomain(key.clone()))?;
                    there &= tally.count(domain) > 0;
                }
                // The first of a series of Pods that have affinity to each other.
                let first = *own && tallies.iter().all(|(_, tally)| self.tallies[*tally].is_empty());
                if there || first { Ok(()) } else { Err(Denied::Affinity) }
            }
            Rule::Apart { tally, own } => {
                let tally = &self.tallies[*tally];
                match tally.domain(id) {
                    Some(domain) if tally.count(domain) > 0 => {
                        Err(if *own { Denied::AntiAffinity } else { Denied::OthersAntiAffinity })
                    }
                    _ => Ok(()),
                }
            }
            Rule::Spread { key, tally, max_skew, min_domains, own } => {
                let tally = &self.tallies[*tally];
                let domain = tally.domain(id).ok_or_else(|| Denied::NoDomain(key.clone()))?;
                let Some(least) = tally.least(*min_domains) else { return Ok(()) };
                let then = u64::from(tally.count(domain)) + u64::from(*own);
                let most = u64::from(least) + u64::from(*max_skew);
                if then <= most { Ok(()) } else { Err(Denied::Spread(key.clone())) }
            }
        }
    }

    /// Counts a slot of the shape on the node.
    pub(super) fn add(&mut self, shape: usize, id: NodeId) {
        for tally in &mut self.tallies {
            tally.add(id, tally.adds[shape]);
        }
        if let Some(volumes) = &mut self.volumes {
            volumes.add(shape, id);
        }
    }

    /// Takes back a slot that was counted.
    pub(super) fn remove(&mut self, shape: usize, id: NodeId) {
        for tally in &mut self.tallies {
            tally.remove(id, tally.adds[shape]);
        }
        if let Some(volumes) = &mut self.volumes {
            volumes.remove(shape, id);
        }
    }

    /// The domains of a node in every topology with several nodes in a domain: nodes for which these are equal are
    /// equal for most rules.
    pub(super) fn signature(&self, id: NodeId) -> Vec<Option<usize>> {
        let shared = self.tallies.iter().filter(|tally| !tally.topology().singles);
        shared.map(|tally| tally.domain(id)).collect()
    }

    /// Whether taking the first allowed nodes places as many slots as possible: slots of the only shape don't depend on
    /// each other, or only by keeping each other out of a domain.
    pub(super) fn greedy_is_exact(&self) -> bool {
        let [rules] = self.rules.as_slice() else { return false };
        if self.volumes.as_ref().is_some_and(|volumes| !volumes.greedy_is_exact()) {
            return false;
        }
        let simple = rules.iter().all(|rule| match rule {
            Rule::Domain { .. } | Rule::Apart { .. } => true,
            Rule::Near { tallies, .. } => tallies.iter().all(|(_, tally)| !self.tallies[*tally].grows()),
            Rule::Spread { tally, .. } => !self.tallies[*tally].grows(),
        });
        let mut growing = self.tallies.iter().filter(|tally| tally.grows()).map(Tally::topology);
        let first = growing.next();
        // Tallies of one topology have the same domains.
        simple && growing.all(|topology| first == Some(topology))
    }
}

/// Adds the rules of one shape.
struct Building<'a> {
    counting: &'a Counting<'a>,
    rules: &'a mut Rules,
    /// Index of the shape in the plan.
    at: usize,
    peer: &'a Peer,
}

impl Building<'_> {
    fn all(mut self, shape: &PlannedShape<'_>) {
        self.others_anti_affinity();
        let Some(terms) = self.peer.terms.clone() else { return };
        for term in &terms.anti_affinity {
            let selection = vec![term.selector.clone()];
            let tally = self.counting.tally(&selection, &term.topology, Counts::InTheWay, None);
            let tally = self.push(tally);
            self.rules.rules[self.at].push(Rule::Apart { tally, own: true });
        }
        if self.counting.availability.is_upper_bound() {
            // Other Pods may come and go; only the nodes' labels are certain.
            let affinity = terms.affinity.iter().map(|term| &term.topology);
            for key in affinity.chain(terms.spread.iter().map(|spread| &spread.topology)) {
                let topology = self.counting.inventory().topology(key);
                self.rules.rules[self.at].push(Rule::Domain { key: key.clone(), topology });
            }
            return;
        }
        if !terms.affinity.is_empty() {
            let selection: Selection = terms.affinity.iter().map(|term| term.selector.clone()).collect();
            let mut tallies: Vec<(Arc<str>, usize)> = Vec::new();
            for term in &terms.affinity {
                if tallies.iter().all(|(key, _)| *key != term.topology) {
                    let tally = self.counting.tally(&selection, &term.topology, Counts::There, None);
                    tallies.push((term.topology.clone(), self.push(tally)));
                }
            }
            let own = self.counting.selects(&selection, Some(self.peer));
            self.rules.rules[self.at].push(Rule::Near { tallies, own });
        }
        for spread in &terms.spread {
            let (tally, own) = self.counting.spread(spread, &terms.spread, shape);
            let tally = self.push(tally);
            self.rules.rules[self.at].push(Rule::Spread {
                key: spread.topology.clone(),
                tally,
                max_skew: spread.max_skew,
                min_domains: spread.min_domains,
                own,
            });
        }
    }

    /// Where required anti-affinity of Pods that are there, promised, or part of the request keeps this shape away.
    fn others_anti_affinity(&mut self) {
        let Counting { plan, availability, promised } = self.counting;
        let inventory = plan.inventory;
        let mut tallies: BTreeMap<Arc<str>, Tally> = BTreeMap::new();
        let shapes = plan.shapes.len();
        let new = |key: &Arc<str>| Tally::new(inventory.topology(key), vec![0; shapes]);
        for (term, found) in inventory.kept_away_by(self.peer) {
            let tally = tallies.entry(term.topology.clone()).or_insert_with_key(new);
            for found in found.iter().filter(|found| availability.counts(found).1) {
                tally.add(found.node, 1);
            }
        }
        let selects = |selector: &PodSelector| self.peer.is_selected(selector, inventory.namespaces());
        for (id, peer, count, _) in promised {
            for term in peer.anti_affinity().iter().filter(|term| selects(&term.selector)) {
                tallies.entry(term.topology.clone()).or_insert_with_key(new).add(*id, *count);
            }
        }
        for (at, shape) in plan.shapes.iter().enumerate() {
            let terms = shape.peer.map_or(&[][..], Peer::anti_affinity);
            for term in terms.iter().filter(|term| selects(&term.selector)) {
                tallies.entry(term.topology.clone()).or_insert_with_key(new).adds[at] += 1;
            }
        }
        for tally in tallies.into_values().filter(|tally| tally.grows() || !tally.is_empty()) {
            let tally = self.push(tally);
            self.rules.rules[self.at].push(Rule::Apart { tally, own: false });
        }
    }

    fn push(&mut self, tally: Tally) -> usize {
        self.rules.tallies.push(tally);
        self.rules.tallies.len() - 1
    }
}
