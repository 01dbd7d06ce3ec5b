//! Topology: nodes that share a value of a label. Nodes without the label belong to no domain; nodes with additional
//! domains belong to several.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Inventory;
use super::domain::Domains;
use super::id::NodeId;
use fluxion_text::natural_order;

impl Inventory {
    /// Adds a node to a further domain of a level, for as long as its name is known.
    pub(crate) fn join(&mut self, level: &Arc<str>, value: &Arc<str>, node: &str) {
        let Some(id) = self.id(node) else { return };
        let members = Arc::make_mut(&mut self.memberships).entry(level.clone()).or_default();
        members.push((value.clone(), id));
        self.graph += 1;
        self.free_anywhere();
        self.disturb(None);
    }

    /// Sets the labels that are shown as levels of each node.
    pub fn set_levels(&mut self, keys: impl IntoIterator<Item = Arc<str>>) {
        let mut keys: Vec<_> = keys.into_iter().collect();
        keys.sort();
        keys.dedup();
        if *self.levels != keys {
            self.levels = Arc::new(keys);
            self.revision += 1;
            self.all_changed = self.revision;
        }
    }

    /// The labels that are shown as levels of each node, in order.
    pub fn levels(&self) -> &[Arc<str>] {
        &self.levels
    }

    /// The domains of the level with the names of their nodes, in natural order.
    pub fn domains_of(&self, level: &str) -> Vec<(Arc<str>, Vec<Arc<str>>)> {
        let named = |(value, nodes): &(Arc<str>, Vec<NodeId>)| {
            (value.clone(), nodes.iter().map(|id| self.name(*id)).collect())
        };
        self.domains(level).members.iter().map(named).collect()
    }

    /// Caches the domains of the level until the graph changes.
    pub(crate) fn prepare_level(&mut self, level: &Arc<str>) {
        let domains = self.domains(level);
        self.domains.insert(level.clone(), (self.graph, domains));
    }

    pub(crate) fn domains(&self, level: &str) -> Arc<Domains> {
        if let Some((graph, domains)) = self.domains.get(level)
            && *graph == self.graph
        {
            return domains.clone();
        }
        let mut by_value: BTreeMap<&Arc<str>, Vec<(usize, NodeId)>> = BTreeMap::new();
        for (at, id) in self.order.iter().enumerate() {
            if let Some(value) = self.book(*id).and_then(|book| book.facts.labels.get(level)) {
                by_value.entry(value).or_default().push((at, *id));
            }
        }
        if let Some(joined) = self.memberships.get(level) {
            let places: BTreeMap<NodeId, usize> =
                self.order.iter().enumerate().map(|(at, id)| (*id, at)).collect();
            for (value, id) in joined {
                by_value.entry(value).or_default().extend(places.get(id).map(|at| (*at, *id)));
            }
            for nodes in by_value.values_mut() {
                nodes.sort_unstable();
                nodes.dedup();
            }
            by_value.retain(|_, nodes| !nodes.is_empty());
        }
        let ids = |nodes: Vec<(usize, NodeId)>| nodes.into_iter().map(|(_, id)| id).collect();
        let mut members: Vec<(Arc<str>, Vec<NodeId>)> =
            by_value.into_iter().map(|(value, nodes)| (value.clone(), ids(nodes))).collect();
        members.sort_by(|(a, _), (b, _)| natural_order(a, b));
        Arc::new(Domains { members })
    }
}
