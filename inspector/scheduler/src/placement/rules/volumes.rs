//! Volumes at the moment of a search: claims for one Pod at a time, disks, the number of volumes on a node, and free
//! volumes for claims that have none.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::constraint::Labels;
use crate::constraint::volumes::{
    ClaimKey, Disk, PersistentVolume, Storage, UnboundClaim, VolumeNeeds, accessible, assign,
};
use crate::inventory::NodeId;
use crate::placement::availability::Availability;
use crate::placement::denied::Denied;
use crate::placement::plan::Plan;

/// Volumes of one driver on a node.
#[derive(Clone, Debug, Default)]
struct Attached {
    limit: u32,
    /// Volumes in use by their handles, with the number of Pods.
    handles: BTreeMap<Arc<str>, u32>,
    /// Volumes of one Pod each that was placed or is promised.
    own: u32,
    /// Other volumes that are attached.
    others: u32,
    /// Volumes of Pods that are there now, for an upper bound that does not count these: they can be shared.
    passing: BTreeSet<Arc<str>>,
}

/// Where volumes for equal claims come from, by node.
#[derive(Clone, Debug)]
struct Source {
    claim: UnboundClaim,
    /// Free volumes by node, smallest first; those accessible from all nodes are in `everywhere`.
    near: BTreeMap<NodeId, Vec<(u64, Arc<str>)>>,
    everywhere: Vec<(u64, Arc<str>)>,
    /// Where a volume can be created; else, whether only room is lacking.
    provisioned: BTreeMap<NodeId, Result<(), bool>>,
}

/// What one shape needs.
#[derive(Clone, Debug, Default)]
struct ShapeVolumes {
    needs: Arc<VolumeNeeds>,
    /// Indices of sources, one for each claim.
    sources: Vec<usize>,
}

/// See the module documentation.
#[derive(Clone, Debug)]
pub(super) struct VolumeRules {
    shapes: Vec<Option<ShapeVolumes>>,
    /// Where drivers are installed that have to be.
    installed: BTreeMap<Arc<str>, BTreeSet<NodeId>>,
    attached: BTreeMap<NodeId, BTreeMap<Arc<str>, Attached>>,
    /// Number of Pods that use a claim for one Pod.
    in_use: BTreeMap<ClaimKey, u32>,
    disks: BTreeMap<NodeId, BTreeMap<Disk, u32>>,
    sources: Vec<Source>,
    /// Volumes given to slots.
    taken: BTreeSet<Arc<str>>,
    /// By slot, those of claims that no other slot uses.
    given: BTreeMap<(usize, NodeId), Vec<Vec<Arc<str>>>>,
    /// By source, the volume of a claim that slots share, or none if it will be created, and the number of these slots.
    shared: BTreeMap<usize, (Option<Arc<str>>, u32)>,
}

impl VolumeRules {
    /// The rules at this moment; none if no shape has volumes to which any applies.
    pub(super) fn new(plan: &Plan<'_>, availability: &Availability<'_>) -> Option<Self> {
        let needs = |peer: Option<&crate::constraint::Peer>| peer.and_then(|peer| peer.volumes.clone());
        let shapes: Vec<_> = plan.shapes.iter().map(|shape| needs(shape.peer)).collect();
        if shapes.iter().all(Option::is_none) {
            return None;
        }
        let mut rules = Self {
            shapes: Vec::new(),
            installed: BTreeMap::new(),
            attached: BTreeMap::new(),
            in_use: BTreeMap::new(),
            disks: BTreeMap::new(),
            sources: Vec::new(),
            taken: BTreeSet::new(),
            given: BTreeMap::new(),
            shared: BTreeMap::new(),
        };
        for needs in shapes {
            let shape = needs.map(|needs| {
                let sources =
                    if availability.is_upper_bound() { Vec::new() } else { rules.sources_of(plan, &needs) };
                ShapeVolumes { needs, sources }
            });
            rules.shapes.push(shape);
        }
        // Drivers can still be installed.
        if !availability.is_upper_bound() {
            rules.find_installed(plan);
        }
        rules.count_attached(plan, availability);
        rules.count_exclusive(plan, availability);
        rules.count_disks(plan, availability);
        rules.count_needing(plan, availability);
        rules.count_promised(availability);
        rules.leave_free(plan, availability);
        Some(rules)
    }

    fn all_needs(&self) -> impl Iterator<Item = &VolumeNeeds> {
        self.shapes.iter().flatten().map(|shape| shape.needs.as_ref())
    }

    fn sources_of(&mut self, plan: &Plan<'_>, needs: &VolumeNeeds) -> Vec<usize> {
        let mut found = Vec::with_capacity(needs.unbound.len());
        for claim in &needs.unbound {
            let known = self.sources.iter().position(|source| source.claim == *claim);
            found.push(known.unwrap_or_else(|| {
                self.sources.push(Source::new(plan, claim));
                self.sources.len() - 1
            }));
        }
        found
    }

    fn find_installed(&mut self, plan: &Plan<'_>) {
        let drivers = self.all_needs().flat_map(|needs| needs.installed.iter().cloned());
        let drivers: BTreeSet<Arc<str>> = drivers.collect();
        for driver in drivers {
            let nodes = plan.inventory.storage().nodes().filter(|node| node.installed.contains(&driver));
            let ids = nodes.filter_map(|node| plan.inventory.id(&node.node)).collect();
            self.installed.insert(driver, ids);
        }
    }

    /// Volumes on nodes, of the drivers that matter.
    fn count_attached(&mut self, plan: &Plan<'_>, availability: &Availability<'_>) {
        let own = self.all_needs().flat_map(|needs| needs.own.keys());
        let drivers: BTreeSet<Arc<str>> = own
            .chain(self.all_needs().flat_map(|needs| needs.shared.iter().map(|(driver, _)| driver)))
            .cloned()
            .collect();
        if drivers.is_empty() {
            return;
        }
        let inventory = plan.inventory;
        let storage = inventory.storage();
        for node in storage.nodes() {
            let Some(id) = inventory.id(&node.node) else { continue };
            for (driver, limit) in node.limits.iter().filter(|(driver, _)| drivers.contains(*driver)) {
                let attached = Attached { limit: *limit, ..Attached::default() };
                self.attached.entry(id).or_default().insert(driver.clone(), attached);
            }
        }
        for (claim, holders) in inventory.mounted() {
            let id = storage.claim(claim).and_then(|claim| storage.volume_of(claim));
            let Some((driver, handle)) = id.filter(|(driver, _)| drivers.contains(driver)) else { continue };
            for (_, found) in holders {
                let on = self.attached.get_mut(&found.node).and_then(|on| on.get_mut(&driver));
                let Some(attached) = on else { continue };
                if availability.counts(found).1 {
                    *attached.handles.entry(handle.clone()).or_default() += 1;
                } else if availability.is_upper_bound() {
                    attached.passing.insert(handle.clone());
                }
            }
        }
        if availability.planned_start().is_none() && !availability.is_upper_bound() {
            for (node, (driver, handle)) in storage.attached() {
                let id = inventory.id(node);
                let on = id.and_then(|id| self.attached.get_mut(&id)).and_then(|on| on.get_mut(driver));
                if let Some(attached) = on.filter(|attached| !attached.handles.contains_key(handle)) {
                    attached.others += 1;
                }
            }
        }
    }

    fn count_exclusive(&mut self, plan: &Plan<'_>, availability: &Availability<'_>) {
        let claims: BTreeSet<ClaimKey> =
            self.all_needs().flat_map(|needs| needs.exclusive.iter()).cloned().collect();
        for claim in claims {
            let users =
                plan.inventory.mounting(&claim).filter(|(_, found)| availability.counts(found).1).count();
            self.in_use.insert(claim, u32::try_from(users).unwrap_or(u32::MAX));
        }
    }

    fn count_disks(&mut self, plan: &Plan<'_>, availability: &Availability<'_>) {
        if self.all_needs().all(|needs| needs.disks.is_empty()) {
            return;
        }
        for (id, disk, found) in plan.inventory.disks() {
            if availability.counts(&found).1 {
                *self.disks.entry(id).or_default().entry(disk.clone()).or_default() += 1;
            }
        }
    }

    /// Slots that are held for Pods that don't hold them themselves yet.
    fn count_needing(&mut self, plan: &Plan<'_>, availability: &Availability<'_>) {
        for (found, needs) in plan.inventory.needing().filter(|(found, _)| availability.counts(found).1) {
            self.count(needs, found.node, 1, true);
        }
    }

    fn count_promised(&mut self, availability: &Availability<'_>) {
        for (id, peer, count, _) in availability.promised_peers() {
            if let Some(needs) = &peer.volumes {
                self.count(needs, id, count, true);
            }
        }
    }

    /// Free volumes that are left to claims of others, which keep them after their Pods' end.
    fn leave_free(&mut self, plan: &Plan<'_>, availability: &Availability<'_>) {
        let classes: BTreeSet<&Arc<str>> = self.sources.iter().map(|source| &source.claim.class).collect();
        if classes.is_empty() {
            return;
        }
        let storage = plan.inventory.storage();
        let mut candidates: BTreeMap<&UnboundClaim, Vec<&Arc<PersistentVolume>>> = BTreeMap::new();
        let mut claims: Vec<(Vec<Arc<str>>, bool)> = Vec::new();
        let mut shared: BTreeMap<&UnboundClaim, usize> = BTreeMap::new();
        let needing = plan.inventory.needing().map(|(found, needs)| (found.node, needs, 1));
        let promised = availability.all_promised_peers();
        let promised = promised.filter_map(|(id, peer, count)| Some((id, peer.volumes.as_deref()?, count)));
        for (id, needs, count) in needing.chain(promised) {
            let Some(book) = plan.inventory.book(id) else { continue };
            let labels: &Labels = &book.facts.labels;
            // No other claim can get a volume that is reserved for one.
            let contended =
                |claim: &&UnboundClaim| claim.reserved.is_none() && classes.contains(&claim.class);
            for claim in needs.unbound.iter().filter(contended) {
                let all = candidates.entry(claim).or_insert_with(|| claim.candidates(storage));
                let names: Vec<_> = all
                    .iter()
                    .filter(|volume| accessible(volume, labels))
                    .map(|volume| volume.name.clone())
                    .collect();
                let created = claim.provisioned_for(labels, storage).is_ok();
                if let Some(at) = shared.get(claim) {
                    claims[*at].0.retain(|name| names.contains(name));
                    continue;
                }
                if claim.shared.is_some() {
                    shared.insert(claim, claims.len());
                }
                let count = if claim.shared.is_some() { 1 } else { count as usize };
                claims.extend(std::iter::repeat_n((names, !created), count));
            }
        }
        self.taken.extend(assign(&claims).0.into_iter().flatten());
    }

    /// Whether one more slot of the shape may be on the node.
    pub(super) fn check(&self, shape: usize, id: NodeId) -> Result<(), Denied> {
        let Some(shape) = &self.shapes[shape] else { return Ok(()) };
        let needs = &shape.needs;
        if let Some(claim) =
            needs.exclusive.iter().find(|claim| self.in_use.get(claim).is_some_and(|users| *users > 0))
        {
            return Err(Denied::ClaimInUse(claim.1.clone()));
        }
        let lacks = |driver: &&Arc<str>| self.installed.get(*driver).is_some_and(|on| !on.contains(&id));
        if let Some(driver) = needs.installed.iter().find(lacks) {
            return Err(Denied::NoDriver(driver.clone()));
        }
        let there = self.disks.get(&id);
        if needs
            .disks
            .iter()
            .any(|disk| there.is_some_and(|there| there.keys().any(|other| disk.clashes(other))))
        {
            return Err(Denied::Disk);
        }
        for (driver, attached) in self.attached.get(&id).into_iter().flatten() {
            let own = needs.own.get(driver).copied().unwrap_or(0);
            let there = |handle: &Arc<str>| {
                attached.handles.contains_key(handle) || attached.passing.contains(handle)
            };
            let new = |(of, handle): &&(Arc<str>, Arc<str>)| of == driver && !there(handle);
            let new = needs.shared.iter().filter(new).count() as u64 + u64::from(own);
            let there = attached.handles.len() as u64 + u64::from(attached.own) + u64::from(attached.others);
            if new > 0 && there + new > u64::from(attached.limit) {
                return Err(Denied::VolumeLimit(driver.clone()));
            }
        }
        self.choose(shape, id).map(drop)
    }

    /// Volumes for the shape's claims on the node, in the order of its sources: of free ones, the smallest that fits each;
    /// none for a volume that will be created.
    fn choose(&self, shape: &ShapeVolumes, id: NodeId) -> Result<Vec<Option<Arc<str>>>, Denied> {
        let mut chosen: Vec<Option<Arc<str>>> = Vec::with_capacity(shape.sources.len());
        for at in &shape.sources {
            let source = &self.sources[*at];
            let class = &source.claim.class;
            let near = source.near.get(&id).into_iter().flatten();
            let provisioned = source.provisioned.get(&id).copied().unwrap_or(Err(false));
            if let Some((volume, _)) = self.shared.get(at) {
                let usable = match volume {
                    Some(volume) => near.chain(&source.everywhere).any(|(_, name)| name == volume),
                    // There is room for it: where its first slot is.
                    None => provisioned != Err(false),
                };
                if !usable {
                    return Err(Denied::NoVolume(class.clone()));
                }
                chosen.push(volume.clone());
                continue;
            }
            let free = |(_, name): &&(u64, Arc<str>)| {
                !self.taken.contains(name) && !chosen.iter().flatten().any(|other| other == name)
            };
            let mut near = near.filter(free);
            let mut everywhere = source.everywhere.iter().filter(free);
            let found = if source.claim.shared.is_some() {
                // The other slots have to be able to use it.
                everywhere.next().or_else(|| near.next())
            } else {
                near.next().into_iter().chain(everywhere.next()).min()
            };
            match (found, provisioned) {
                (Some((_, name)), _) => chosen.push(Some(name.clone())),
                (None, Ok(())) => chosen.push(None),
                (None, Err(true)) => return Err(Denied::NoStorage(class.clone())),
                (None, Err(false)) => return Err(Denied::NoVolume(class.clone())),
            }
        }
        Ok(chosen)
    }

    /// Counts a slot of the shape on the node.
    pub(super) fn add(&mut self, shape: usize, id: NodeId) {
        let Some(volumes) = self.shapes[shape].clone() else { return };
        self.count(&volumes.needs, id, 1, true);
        if volumes.sources.is_empty() {
            return;
        }
        let mut own = Vec::new();
        for (source, volume) in volumes.sources.iter().zip(self.choose(&volumes, id).unwrap_or_default()) {
            self.taken.extend(volume.clone());
            if self.sources[*source].claim.shared.is_some() {
                self.shared.entry(*source).or_insert((volume, 0)).1 += 1;
            } else {
                own.extend(volume);
            }
        }
        self.given.entry((shape, id)).or_default().push(own);
    }

    /// Takes back a slot that was counted.
    pub(super) fn remove(&mut self, shape: usize, id: NodeId) {
        let Some(volumes) = self.shapes[shape].clone() else { return };
        self.count(&volumes.needs, id, 1, false);
        for name in self.given.get_mut(&(shape, id)).and_then(Vec::pop).unwrap_or_default() {
            self.taken.remove(&name);
        }
        for source in &volumes.sources {
            let Some((volume, slots)) = self.shared.get_mut(source) else { continue };
            *slots = slots.saturating_sub(1);
            if *slots == 0 {
                if let Some(volume) = volume {
                    self.taken.remove(volume);
                }
                self.shared.remove(source);
            }
        }
    }

    /// Counts so many slots with these needs on the node, or takes them back.
    fn count(&mut self, needs: &VolumeNeeds, id: NodeId, slots: u32, up: bool) {
        let moved =
            |count: u32, by: u32| if up { count.saturating_add(by) } else { count.saturating_sub(by) };
        for claim in &needs.exclusive {
            if let Some(users) = self.in_use.get_mut(claim) {
                *users = moved(*users, slots);
            }
        }
        if !needs.disks.is_empty() {
            let there = self.disks.entry(id).or_default();
            for disk in &needs.disks {
                let count = there.entry(disk.clone()).or_default();
                *count = moved(*count, slots);
            }
            there.retain(|_, count| *count > 0);
        }
        let Some(on) = self.attached.get_mut(&id) else { return };
        for (driver, own) in &needs.own {
            if let Some(attached) = on.get_mut(driver) {
                attached.own = moved(attached.own, own.saturating_mul(slots));
            }
        }
        for (driver, handle) in &needs.shared {
            let Some(attached) = on.get_mut(driver) else { continue };
            let users = attached.handles.entry(handle.clone()).or_default();
            *users = moved(*users, slots);
            if *users == 0 {
                attached.handles.remove(handle);
            }
        }
    }

    /// Whether slots of the only shape don't depend on which free volumes others were given.
    pub(super) fn greedy_is_exact(&self) -> bool {
        self.sources.iter().all(|source| {
            source.near.is_empty() && source.everywhere.is_empty() && source.claim.shared.is_none()
        })
    }
}

impl Source {
    fn new(plan: &Plan<'_>, claim: &UnboundClaim) -> Self {
        let storage: &Storage = plan.inventory.storage();
        let mut source = Self {
            claim: claim.clone(),
            near: BTreeMap::new(),
            everywhere: Vec::new(),
            provisioned: BTreeMap::new(),
        };
        // Volumes that are local to a node name its label, by which they are found.
        let mut local: BTreeMap<Arc<str>, BTreeMap<Arc<str>, Vec<usize>>> = BTreeMap::new();
        let mut wide = Vec::new();
        let candidates = claim.candidates(storage);
        for (at, volume) in candidates.iter().enumerate() {
            match volume.affinity.as_deref() {
                None => source.everywhere.push((volume.size, volume.name.clone())),
                Some([term]) if term.fields.is_empty() && !term.labels.is_empty() => {
                    match term.labels.iter().find(|one| one.operator == crate::constraint::Operator::In) {
                        Some(one) => {
                            let by_value = local.entry(one.key.clone()).or_default();
                            for value in &one.values {
                                by_value.entry(value.clone()).or_default().push(at);
                            }
                        }
                        None => wide.push(at),
                    }
                }
                Some(_) => wide.push(at),
            }
        }
        for id in plan.inventory.order() {
            let Some(book) = plan.inventory.book(*id) else { continue };
            let labels: &Labels = &book.facts.labels;
            let found = local.iter().filter_map(|(key, by_value)| by_value.get(labels.get(key)?)).flatten();
            let mut here: Vec<usize> = found.chain(&wide).copied().collect();
            here.sort_unstable();
            here.dedup();
            let near = here.into_iter().map(|at| candidates[at]).filter(|volume| accessible(volume, labels));
            let near: Vec<_> = near.map(|volume| (volume.size, volume.name.clone())).collect();
            if !near.is_empty() {
                source.near.insert(*id, near);
            }
            source.provisioned.insert(*id, claim.provisioned_for(labels, storage));
        }
        source
    }
}
