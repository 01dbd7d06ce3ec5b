//! Interned strings and paths. Lookups go through ordered maps: nothing here depends on hash order.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::ids::{PathId, Sym};

/// Each distinct string once.
#[derive(Clone, Debug, Default)]
pub struct Interner {
    strings: Vec<Arc<str>>,
    index: BTreeMap<Arc<str>, Sym>,
}

impl Interner {
    /// The symbol of a string, which is stored when it is new.
    pub fn intern(&mut self, text: &str) -> Sym {
        if let Some(&sym) = self.index.get(text) {
            return sym;
        }
        let sym = Sym::from_index(self.strings.len());
        let text: Arc<str> = Arc::from(text);
        self.strings.push(Arc::clone(&text));
        self.index.insert(text, sym);
        sym
    }

    /// The symbol of a string that is already stored.
    pub fn find(&self, text: &str) -> Option<Sym> {
        self.index.get(text).copied()
    }

    /// The string of a symbol.
    #[inline]
    pub fn text(&self, sym: Sym) -> &str {
        &self.strings[sym.index()]
    }

    /// How many distinct strings there are.
    pub fn len(&self) -> usize {
        self.strings.len()
    }

    /// Whether there is no string at all.
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

/// Paths, each kept as its parent and its last component. `/a/b` and `a/b` are different paths.
#[derive(Clone, Debug, Default)]
pub struct PathTable {
    links: Vec<Link>,
    index: BTreeMap<(u32, Sym), PathId>,
}

impl PathTable {
    /// The id of a path, which is stored when it is new.
    pub fn intern(&mut self, strings: &mut Interner, path: &str) -> PathId {
        let mut parent = TOP;
        for (depth, component) in (1_u32..).zip(path.split('/')) {
            let component = strings.intern(component);
            parent = self.child(parent, component, depth).0;
        }
        PathId(parent)
    }

    /// The id of the path one component below another, stored when it is new.
    pub fn join(&mut self, parent: PathId, component: Sym) -> PathId {
        let depth = self.links[parent.index()].depth.saturating_add(1);
        self.child(parent.0, component, depth)
    }

    fn child(&mut self, parent: u32, component: Sym, depth: u32) -> PathId {
        let links = &mut self.links;
        *self.index.entry((parent, component)).or_insert_with(|| {
            let id = PathId::from_index(links.len());
            links.push(Link { parent, component, depth });
            id
        })
    }

    /// The id of a path that is already stored.
    pub fn find(&self, strings: &Interner, path: &str) -> Option<PathId> {
        let mut parent = TOP;
        for component in path.split('/') {
            parent = self.index.get(&(parent, strings.find(component)?))?.0;
        }
        Some(PathId(parent))
    }

    /// The path without its last component; none for a path of one component.
    pub fn parent(&self, path: PathId) -> Option<PathId> {
        let parent = self.links[path.index()].parent;
        (parent != TOP).then_some(PathId(parent))
    }

    /// The number of slashes in the path.
    pub fn slashes(&self, path: PathId) -> u32 {
        self.links[path.index()].depth - 1
    }

    /// How many paths are stored, prefixes of paths included.
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
