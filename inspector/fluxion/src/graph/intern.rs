//! Interned strings and paths. The hash function is fixed and the hash tables are never iterated over, so
//! results do not depend on the hash order.

use std::sync::Arc;

use super::ids::{PathId, Sym};

/// An open-addressing table of positions in an arena, which holds the keys.
#[derive(Clone, Debug, Default)]
struct Slots {
    /// Position plus one; 0 is free. The length is a power of two.
    slots: Vec<u32>,
    used: usize,
}

impl Slots {
    fn find(&self, hash: u64, is: impl Fn(u32) -> bool) -> Option<u32> {
        if self.slots.is_empty() {
            return None;
        }
        let mask = self.slots.len() - 1;
        let mut at = fold(hash) & mask;
        while self.slots[at] != 0 {
            if is(self.slots[at] - 1) {
                return Some(self.slots[at] - 1);
            }
            at = (at + 1) & mask;
        }
        None
    }

    /// Adds a position that is not in the table; `hash_of` answers for those that are.
    fn insert(&mut self, hash: u64, position: u32, hash_of: impl Fn(u32) -> u64) {
        if (self.used + 1) * 4 > self.slots.len() * 3 {
            let grown = vec![0; (self.slots.len() * 2).max(64)];
            for old in std::mem::replace(&mut self.slots, grown) {
                if old != 0 {
                    self.place(hash_of(old - 1), old);
                }
            }
        }
        self.place(hash, position + 1);
        self.used += 1;
    }

    fn place(&mut self, hash: u64, value: u32) {
        let mask = self.slots.len() - 1;
        let mut at = fold(hash) & mask;
        while self.slots[at] != 0 {
            at = (at + 1) & mask;
        }
        self.slots[at] = value;
    }
}

/// The part of a hash that picks a slot.
#[allow(clippy::cast_possible_truncation, reason = "the low bits are all that is wanted")]
fn fold(hash: u64) -> usize {
    (hash ^ (hash >> 32)) as usize
}

/// Eight bytes at a time, each multiplied in full, so that every bit reaches every other.
fn hash_text(text: &str) -> u64 {
    const KEYS: [u64; 2] = [0xa076_1d64_78bd_642f, 0xe703_7ed1_a0b4_28db];
    let mix = |a: u64, b: u64| {
        let product = u128::from(a) * u128::from(b);
        let (low, high) = (product & u128::from(u64::MAX), product >> 64);
        u64::try_from(low ^ high).unwrap_or(0)
    };
    let (chunks, rest) = text.as_bytes().as_chunks::<8>();
    let mut hash = KEYS[0] ^ text.len() as u64;
    for &chunk in chunks {
        hash = mix(hash ^ u64::from_le_bytes(chunk), KEYS[1]);
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    mix(hash ^ u64::from_le_bytes(last), KEYS[1])
}

fn hash_link(parent: u32, component: Sym) -> u64 {
    let key = (u64::from(parent) << 32) | u64::from(component.0);
    key.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

/// Each distinct string once.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    strings: Vec<Arc<str>>,
    index: Slots,
}

impl Interner {
    /// The symbol of a string, which is stored if it is new.
    pub fn intern(&mut self, text: &str) -> Sym {
        let hash = hash_text(text);
        if let Some(known) = self.index.find(hash, |at| *self.strings[at as usize] == *text) {
            return Sym(known);
        }
        let sym = Sym::from_index(self.strings.len());
        self.index.insert(hash, sym.0, |at| hash_text(&self.strings[at as usize]));
        self.strings.push(Arc::from(text));
        sym
    }

    /// The symbol of a string that is already stored.
    pub fn find(&self, text: &str) -> Option<Sym> {
        self.index.find(hash_text(text), |at| *self.strings[at as usize] == *text).map(Sym)
    }

    /// The string of a symbol.
    #[inline]
    pub fn text(&self, sym: Sym) -> &str {
        &self.strings[sym.index()]
    }

    /// Number of distinct strings.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether no string is stored.
    pub fn is_empty(&self) -> bool {
        self.strings.is_empty()
    }
}

/// One path: its parent and its last component.
#[derive(Clone, Copy, Debug)]
struct Link {
    parent: u32,
    component: Sym,
    depth: u32,
}

/// The parent number of a path of one component.
const TOP: u32 = u32::MAX;

/// Paths, each stored as its parent and last component. `/a/b` and `a/b` are different paths.
#[derive(Clone, Debug, Default)]
pub struct PathTable {
    links: Vec<Link>,
    index: Slots,
}

impl PathTable {
    /// The id of a path, which is stored if it is new.
    pub fn intern(&mut self, strings: &mut Interner, path: &str) -> PathId {
        let mut parent = TOP;
        for (depth, component) in (1_u32..).zip(path.split('/')) {
            let component = strings.intern(component);
            parent = self.child(parent, component, depth).0;
        }
        PathId(parent)
    }

    /// The id of the path one component below another, which is stored if it is new.
    pub fn join(&mut self, parent: PathId, component: Sym) -> PathId {
        let depth = self.links[parent.index()].depth.saturating_add(1);
        self.child(parent.0, component, depth)
    }

    fn child(&mut self, parent: u32, component: Sym, depth: u32) -> PathId {
        if let Some(known) = self.find_child(parent, component) {
            return PathId(known);
        }
        let id = PathId::from_index(self.links.len());
        let links = &self.links;
        self.index.insert(hash_link(parent, component), id.0, |at| {
            let link = links[at as usize];
            hash_link(link.parent, link.component)
        });
        self.links.push(Link { parent, component, depth });
        id
    }

    fn find_child(&self, parent: u32, component: Sym) -> Option<u32> {
        self.index.find(hash_link(parent, component), |at| {
            let link = self.links[at as usize];
            link.parent == parent && link.component == component
        })
    }

    /// The id of a path that is already stored.
    pub fn find(&self, strings: &Interner, path: &str) -> Option<PathId> {
        let mut parent = TOP;
        for component in path.split('/') {
            parent = self.find_child(parent, strings.find(component)?)?;
        }
        Some(PathId(parent))
    }

    /// The path without its last component; none for a path with one component.
    pub fn parent(&self, path: PathId) -> Option<PathId> {
        let parent = self.links[path.index()].parent;
        (parent != TOP).then_some(PathId(parent))
    }

    /// The number of slashes in the path.
    pub fn slashes(&self, path: PathId) -> u32 {
        self.links[path.index()].depth - 1
    }

    /// Number of paths stored, including prefixes of paths.
    pub fn len(&self) -> usize {
        self.links.len()
    }

    /// Whether no path is stored.
    pub fn is_empty(&self) -> bool {
        self.links.is_empty()
    }

    /// Appends the text of a path.
    pub fn write(&self, strings: &Interner, path: PathId, out: &mut String) {
        let link = self.links[path.index()];
        if link.parent == TOP {
            out.push_str(strings.text(link.component));
            return;
        }
        let mut parts = vec![link.component];
        let mut at = link.parent;
        while at != TOP {
            let link = self.links[at as usize];
            parts.push(link.component);
            at = link.parent;
        }
        for (position, &component) in parts.iter().rev().enumerate() {
            if position > 0 {
                out.push('/');
            }
            out.push_str(strings.text(component));
        }
    }

    /// The length in bytes of the text of a path.
    pub fn text_len(&self, strings: &Interner, path: PathId) -> usize {
        let mut len = 0;
        let mut at = path.0;
        while at != TOP {
            let link = self.links[at as usize];
            len += strings.text(link.component).len() + usize::from(link.parent != TOP);
            at = link.parent;
        }
        len
    }
}
