//! Makes the graph that a GRUG recipe describes.
//!
//! A depth-first search over the generators, in document order: an edge to a generator not seen yet
//! makes its vertices before the search descends. The stack of scales that child numbers wrap by is
//! popped whenever a generator is left, also one that pushed nothing; numbers of vertices depend on it.

use std::collections::BTreeMap;

use super::recipe::{Generator, Method, Recipe, Rule, bad};
use crate::formats::error::ReadError;
use crate::graph::{Graph, GraphError, PathId, Subsystem, VertexId, VertexSpec};

/// Candidates that associations may look at in all, so that a small recipe can't ask for hours.
const MAX_CANDIDATES: u64 = 40_000_000;

struct Expansion<'a> {
    graph: &'a mut Graph,
    recipe: &'a Recipe,
    /// Vertices made (or found) for each generator.
    made: Vec<Vec<VertexId>>,
    /// Scales of the multiplications passed; the nearest is last.
    scales: Vec<i64>,
    next_rank: i32,
    candidates: u64,
    associated: usize,
}

pub(super) fn expand(graph: &mut Graph, recipe: &Recipe) -> Result<(), ReadError> {
    for generator in &recipe.generators {
        graph.intern_type(&generator.type_name);
    }
    let mut outgoing = vec![Vec::new(); recipe.generators.len()];
    for (index, rule) in recipe.rules.iter().enumerate() {
        outgoing[rule.source].push(index);
    }
    let mut expansion = Expansion {
        graph,
        recipe,
        made: vec![Vec::new(); recipe.generators.len()],
        scales: Vec::new(),
        next_rank: 0,
        candidates: 0,
        associated: 0,
    };
    let mut seen = vec![false; recipe.generators.len()];
    for start in 0..recipe.generators.len() {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut stack = vec![(start, 0)];
        while let Some((generator, next)) = stack.last_mut() {
            let Some(&index) = outgoing[*generator].get(*next) else {
                stack.pop();
                expansion.scales.pop();
                continue;
            };
            *next += 1;
            let rule = &recipe.rules[index];
            if std::mem::replace(&mut seen[rule.target], true) {
                continue;
            }
            expansion.tree_edge(rule)?;
            stack.push((rule.target, 0));
        }
    }
    Ok(())
}

impl Expansion<'_> {
    fn tree_edge(&mut self, rule: &Rule) -> Result<(), ReadError> {
        let source = &self.recipe.generators[rule.source];
        if source.root && self.made[rule.source].is_empty() {
            let root = self.root(source)?;
            self.made[rule.source].push(root);
        }
        self.made[rule.target].clear();
        match rule.method {
            Method::Multiply => self.multiply(rule),
            Method::AssociateIn | Method::AssociateByPathIn => self.associate(rule),
            Method::Nothing => Ok(()),
        }
    }

    fn root(&mut self, generator: &Generator) -> Result<VertexId, ReadError> {
        let subsystem = self.graph.intern_subsystem(&generator.subsystem)?;
        if let Some(known) = self.graph.root(subsystem) {
            return Ok(known);
        }
        let name = format!("{}0", generator.basename);
        let path = self.graph.intern_path(&format!("/{name}"));
        let root = self.vertex(generator, &name, 0)?;
        self.graph.set_path(root, subsystem, path);
        self.graph.set_root(subsystem, root)?;
        Ok(root)
    }

    fn vertex(&mut self, generator: &Generator, name: &str, id: i64) -> Result<VertexId, ReadError> {
        let rank = if generator.type_name == "node" {
            self.next_rank += 1;
            self.next_rank - 1
        } else {
            -1
        };
        let spec = VertexSpec {
            type_name: &generator.type_name,
            basename: &generator.basename,
            name,
            id,
            rank,
            size: generator.size,
            unit: &generator.unit,
            ..VertexSpec::default()
        };
        Ok(self.graph.add_vertex(&spec)?)
    }

    fn multiply(&mut self, rule: &Rule) -> Result<(), ReadError> {
        let generator = &self.recipe.generators[rule.target];
        let of_vertex = self.graph.intern_subsystem(&generator.subsystem)?;
        let of_edge = self.graph.intern_subsystem(&rule.subsystem)?;
        let asked = (self.made[rule.source].len() as u128) * u128::from(rule.multi_scale.unsigned_abs());
        let limit = self.graph.limit();
        if rule.multi_scale > 0 && asked + self.graph.vertex_count() as u128 > limit as u128 {
            return Err(GraphError::TooLarge(limit).into());
        }
        let parents = std::mem::take(&mut self.made[rule.source]);
        let mut children = Vec::new();
        for (index, &parent) in (0..).zip(&parents) {
            for count in 0..rule.multi_scale {
                let id = self.child_id(rule, index, count).ok_or_else(|| bad("vertex number overflow"))?;
                let name = if rule.id_scope < 0 {
                    generator.basename.clone()
                } else {
                    format!("{}{id}", generator.basename)
                };
                let child = self.vertex(generator, &name, id)?;
                let path = self.path_below(parent, of_vertex, &name);
                self.graph.set_path(child, of_vertex, path);
                self.graph.add_edge(parent, child, of_edge)?;
                children.push(child);
            }
        }
        self.made[rule.source] = parents;
        self.made[rule.target] = children;
        self.scales.push(rule.multi_scale);
        Ok(())
    }

    /// The number of the `count`-th child of the `index`-th vertex of the source.
    fn child_id(&self, rule: &Rule, index: i64, count: i64) -> Option<i64> {
        if rule.id_scope < 0 {
            return Some(-1);
        }
        if rule.id_scope == 0 {
            return rule.id_start.checked_add(count);
        }
        let scope = usize::try_from(rule.id_scope).unwrap_or(usize::MAX).min(self.scales.len());
        let mut width = 1_i64;
        for scale in self.scales.iter().rev().take(scope) {
            width = width.checked_mul(*scale)?;
        }
        let wrapped = index.checked_rem(width)?;
        let before = wrapped.checked_mul(rule.multi_scale)?.checked_mul(rule.id_stride)?;
        let own = count.checked_mul(rule.id_stride)?;
        rule.id_start.checked_add(before)?.checked_add(own)
    }

    fn path_below(&mut self, parent: VertexId, subsystem: Subsystem, name: &str) -> PathId {
        match self.graph.vertex(parent).path(subsystem) {
            Some(path) => self.graph.join_path(path, name),
            None => self.graph.intern_path(&format!("/{name}")),
        }
    }

    fn associate(&mut self, rule: &Rule) -> Result<(), ReadError> {
        let type_id = self.graph.intern_type(&self.recipe.generators[rule.target].type_name);
        let of_edge = self.graph.intern_subsystem(&rule.subsystem)?;
        let compared = self.graph.intern_subsystem(&rule.target_subsystem)?;
        let candidates = self.graph.of_type(type_id).to_vec();
        let parents = std::mem::take(&mut self.made[rule.source]);
        let by_path = rule.method == Method::AssociateByPathIn;
        // Paths that this very association changes are compared anew each time.
        let changing = by_path && compared == of_edge;
        let mut by_prefix: BTreeMap<Option<PathId>, Vec<VertexId>> = BTreeMap::new();
        if by_path && !changing {
            for &child in &candidates {
                by_prefix.entry(self.prefix(child, compared, rule.target_up)).or_default().push(child);
            }
        }
        let mut found = Vec::new();
        for &parent in &parents {
            let mine: &[VertexId] = if by_path && !changing {
                let prefix = self.prefix(parent, compared, rule.source_up);
                by_prefix.get(&prefix).map_or(&[], Vec::as_slice)
            } else {
                &candidates
            };
            self.candidates += mine.len() as u64;
            if self.candidates > MAX_CANDIDATES {
                return Err(bad("too many vertex pairs to associate: use a smaller recipe"));
            }
            for &child in mine {
                if changing
                    && self.prefix(child, compared, rule.target_up)
                        != self.prefix(parent, compared, rule.source_up)
                {
                    continue;
                }
                self.associated += 1;
                if self.associated > self.graph.limit() {
                    return Err(GraphError::TooLarge(self.graph.limit()).into());
                }
                let name = self.graph.text(self.graph.vertex(child).name).to_owned();
                let path = self.path_below(parent, of_edge, &name);
                self.graph.set_path(child, of_edge, path);
                self.graph.add_edge(parent, child, of_edge)?;
                found.push(child);
            }
        }
        self.made[rule.source] = parents;
        self.made[rule.target] = found;
        Ok(())
    }

    /// The path of a vertex without its last `up` components; none when nothing is left.
    fn prefix(&self, of: VertexId, subsystem: Subsystem, up: i64) -> Option<PathId> {
        let mut path = self.graph.vertex(of).path(subsystem)?;
        if up >= i64::from(self.graph.path_table().slashes(path)) {
            return None;
        }
        for _ in 0..up {
            path = self.graph.path_table().parent(path)?;
        }
        Some(path)
    }
}
