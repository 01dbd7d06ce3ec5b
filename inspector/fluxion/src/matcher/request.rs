//! A jobspec made ready for matching: types as numbers, entries in an arena, and what every entry needs
//! below it at least.

use thiserror::Error;

use super::filter::Filters;
use crate::flux_constraint::Constraint;
use crate::graph::{Graph, TypeId};
use crate::jobspec::{Count, Jobspec, Resource};

/// How many ways to fill in alternatives are tried at most.
const MAX_VARIANTS: usize = 1000;

/// There are more ways to fill in the alternatives than anybody would try.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the request has more than {MAX_VARIANTS} combinations of alternatives: simplify it")]
pub(crate) struct TooManyVariants;

/// The position of an entry in a request.
pub(super) type EntryId = u32;

/// Amounts per type.
pub(super) type Needs = Vec<(TypeId, u64)>;

/// One entry of a request.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub type_id: TypeId,
    pub count: Count,
    pub exclusive: Option<bool>,
    pub label: Option<String>,
    pub with: Vec<EntryId>,
    pub is_slot: bool,
    /// The least of each tracked type that must be below one of it.
    pub needs: Needs,
}

/// A request.
#[derive(Clone, Debug)]
pub(super) struct Request {
    entries: Vec<Entry>,
    /// The ways to ask, best first; more than one only with alternatives.
    pub variants: Vec<Vec<EntryId>>,
    /// The least of each tracked type for the whole job.
    pub demand: Needs,
    /// Types of which some entry says that it is exclusive.
    pub exclusive_types: Vec<TypeId>,
    pub constraint: Option<Constraint>,
}

/// The amount of a type in a list of needs.
pub(super) fn amount_of(needs: &[(TypeId, u64)], of: TypeId) -> u64 {
    needs.iter().find(|(known, _)| *known == of).map_or(0, |(_, amount)| *amount)
}

/// What compiling needs to look things up.
struct Compiler<'a> {
    graph: &'a Graph,
    filters: &'a Filters,
    flexible: bool,
    slot: TypeId,
    xor_slot: TypeId,
    entries: Vec<Entry>,
    exclusive_types: Vec<TypeId>,
}

impl Request {
    /// Makes a jobspec ready. `flexible` reads several slots in one list as alternatives and expands
    /// `xor_slot`. Every type must be known to the graph.
    pub(crate) fn compile(
        spec: &Jobspec,
        graph: &Graph,
        filters: &Filters,
        flexible: bool,
    ) -> Result<Self, TooManyVariants> {
        let built_in = |name| graph.find_type(name).unwrap_or(TypeId(u32::MAX));
        let mut compiler = Compiler {
            graph,
            filters,
            flexible,
            slot: built_in("slot"),
            xor_slot: built_in("xor_slot"),
            entries: Vec::new(),
            exclusive_types: Vec::new(),
        };
        let (top, demand) = compiler.list(&spec.resources);
        let variants = if flexible { compiler.expand(&top)? } else { vec![top] };
        Ok(Self {
            entries: compiler.entries,
            variants,
            demand,
            exclusive_types: compiler.exclusive_types,
            constraint: spec.constraint.clone(),
        })
    }

    /// An entry.
    #[inline]
    pub(crate) fn entry(&self, id: EntryId) -> &Entry {
        &self.entries[id as usize]
    }

    /// Whether a visit to a vertex may leave a label there.
    pub(crate) fn has_labels(&self) -> bool {
        self.entries
            .iter()
            .any(|entry| !entry.is_slot && entry.label.as_ref().is_some_and(|label| !label.is_empty()))
    }

    /// Entries of a list.
    pub(crate) fn list<'a>(&'a self, ids: &'a [EntryId]) -> impl Iterator<Item = &'a Entry> + 'a {
        ids.iter().map(|&id| self.entry(id))
    }
}

impl Compiler<'_> {
    fn list(&mut self, resources: &[Resource]) -> (Vec<EntryId>, Needs) {
        let mut ids = Vec::with_capacity(resources.len());
        let mut needs = Needs::new();
        for resource in resources {
            let id = self.entry(resource);
            ids.push(id);
            let entry = &self.entries[id as usize];
            let least = u64::from(entry.count.min);
            if self.flexible && (entry.is_slot || entry.type_id == self.xor_slot) {
                alternative(&mut needs, &entry.needs, least);
                continue;
            }
            if self.filters.is_tracked(entry.type_id) {
                add(&mut needs, entry.type_id, least);
            }
            for &(of, amount) in &entry.needs {
                add(&mut needs, of, amount.saturating_mul(least));
            }
        }
        (ids, needs)
    }

    fn entry(&mut self, resource: &Resource) -> EntryId {
        // A type that is not known matches no vertex.
        let type_id = self.graph.find_type(&resource.type_name).unwrap_or(TypeId(u32::MAX));
        if resource.exclusive == Some(true) && !self.exclusive_types.contains(&type_id) {
            self.exclusive_types.push(type_id);
        }
        let (with, needs) = self.list(&resource.with);
        self.push(Entry {
            type_id,
            count: resource.count,
            exclusive: resource.exclusive,
            label: resource.label.clone(),
            with,
            is_slot: type_id == self.slot,
            needs,
        })
    }

    fn push(&mut self, entry: Entry) -> EntryId {
        let id = EntryId::try_from(self.entries.len()).expect("jobspecs are limited in size");
        self.entries.push(entry);
        id
    }

    /// All ways to write a list without `xor_slot`.
    fn expand(&mut self, list: &[EntryId]) -> Result<Vec<Vec<EntryId>>, TooManyVariants> {
        let mut variants: Vec<Vec<EntryId>> = vec![Vec::new()];
        let mut alternatives: Vec<EntryId> = Vec::new();
        for &id in list {
            let ways = self.variants_of(id)?;
            if self.entries[id as usize].type_id == self.xor_slot {
                alternatives.extend(ways);
                bounded(alternatives.len())?;
            } else {
                variants = cross(&variants, &ways)?;
            }
        }
        if alternatives.is_empty() { Ok(variants) } else { cross(&variants, &alternatives) }
    }

    fn variants_of(&mut self, id: EntryId) -> Result<Vec<EntryId>, TooManyVariants> {
        let entry = self.entries[id as usize].clone();
        let lists = self.expand(&entry.with)?;
        let xor = entry.type_id == self.xor_slot;
        if !xor && lists.len() == 1 && lists[0] == entry.with {
            return Ok(vec![id]);
        }
        let mut ways = Vec::with_capacity(lists.len());
        for with in lists {
            let mut way = Entry { with, ..entry.clone() };
            if xor {
                way.type_id = self.slot;
                way.is_slot = true;
            }
            ways.push(self.push(way));
        }
        Ok(ways)
    }
}

fn bounded(count: usize) -> Result<(), TooManyVariants> {
    if count > MAX_VARIANTS { Err(TooManyVariants) } else { Ok(()) }
}

fn cross(lists: &[Vec<EntryId>], last: &[EntryId]) -> Result<Vec<Vec<EntryId>>, TooManyVariants> {
    bounded(lists.len().saturating_mul(last.len()))?;
    let with = |list: &Vec<EntryId>, &id: &EntryId| list.iter().copied().chain([id]).collect();
    Ok(lists.iter().flat_map(|list| last.iter().map(move |id| with(list, id))).collect())
}

fn add(needs: &mut Needs, of: TypeId, amount: u64) {
    match needs.iter_mut().find(|(known, _)| *known == of) {
        Some((_, sum)) => *sum = sum.saturating_add(amount),
        None => needs.push((of, amount)),
    }
}

/// Lowers needs to what one more alternative can do with.
fn alternative(needs: &mut Needs, slot: &[(TypeId, u64)], least: u64) {
    for &(of, amount) in slot {
        let amount = amount.saturating_mul(least);
        match needs.iter_mut().find(|(known, _)| *known == of) {
            Some((_, sum)) => *sum = amount.min(*sum),
            None => needs.push((of, amount)),
        }
    }
    for (of, sum) in needs.iter_mut() {
        if !slot.iter().any(|(known, _)| known == of) {
            *sum = 0;
        }
    }
}
