//! The modules of one crate, and what each takes from others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::Visit;

/// A path to a module from the top of the crate; the top itself is empty.
type Module = Vec<String>;

/// A name that a module imports: the path as written, and whether it is handed on to others.
struct Import {
    name: String,
    path: Vec<String>,
    public: bool,
}

#[derive(Default)]
struct Source {
    defined: BTreeSet<String>,
    public_types: BTreeSet<String>,
    imports: Vec<Import>,
    /// Modules of which everything is imported.
    globs: Vec<Vec<String>>,
    /// Paths and names in the code itself.
    paths: Vec<Vec<String>>,
}

/// A crate's modules.
pub(crate) struct Crate(BTreeMap<Module, Source>);

impl Crate {
    /// Reads the file at the top, and all modules below it except those for tests.
    pub(crate) fn read(top: &Path) -> Self {
        let mut modules = BTreeMap::new();
        read_module(top, Vec::new(), &mut modules);
        Self(modules)
    }

    /// Which module uses which, and the names that it takes.
    pub(crate) fn uses(&self) -> BTreeMap<(String, String), BTreeSet<String>> {
        let mut uses: BTreeMap<(String, String), BTreeSet<String>> = BTreeMap::new();
        for (module, source) in &self.0 {
            let mentioned: BTreeSet<&String> = source.paths.iter().filter_map(|path| path.first()).collect();
            let imports =
                source.imports.iter().filter(|import| !import.public || mentioned.contains(&import.name));
            let imported = imports.map(|import| &import.path);
            for path in imported.chain(&source.paths) {
                let Some((target, name)) = self.resolve(module, path, 0) else { continue };
                if target != *module {
                    uses.entry((shown(module), shown(&target))).or_default().insert(name);
                }
            }
        }
        uses
    }

    /// Where each public type is defined.
    pub(crate) fn public_types(&self) -> BTreeMap<String, Vec<String>> {
        let mut all: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (module, source) in &self.0 {
            for name in &source.public_types {
                all.entry(name.clone()).or_default().push(shown(module));
            }
        }
        all
    }

    /// The module that defines what a path leads to, and its name there; none outside the crate.
    fn resolve(&self, from: &Module, path: &[String], depth: u32) -> Option<(Module, String)> {
        if depth > 16 {
            return None;
        }
        let mut module = from.clone();
        let mut rest = path;
        let mut relative = true;
        while let Some(first) = rest.first() {
            match first.as_str() {
                "crate" => module.clear(),
                "self" => {}
                "super" => drop(module.pop()),
                _ => break,
            }
            relative = false;
            rest = &rest[1..];
        }
        let (name, _) = rest.split_first()?;
        let child: Module = module.iter().chain([name]).cloned().collect();
        if self.0.contains_key(&child) {
            let below: Vec<String> =
                ["self".to_owned()].into_iter().chain(rest[1..].iter().cloned()).collect();
            return if rest.len() > 1 { self.resolve(&child, &below, depth + 1) } else { None };
        }
        let source = self.0.get(&module)?;
        if source.defined.contains(name) {
            return Some((module, name.clone()));
        }
        // What this module imports itself counts as its import already.
        if relative
            && depth == 0
            && source.imports.iter().any(|import| import.name == *name && import.path == path)
        {
            return None;
        }
        if let Some(import) = source.imports.iter().find(|import| import.name == *name && import.path != path)
        {
            let whole: Vec<String> = import.path.iter().chain(&rest[1..]).cloned().collect();
            return self.resolve(&module, &whole, depth + 1);
        }
        source.globs.iter().find_map(|glob| {
            let whole: Vec<String> = glob.iter().chain(rest).cloned().collect();
            self.resolve(&module, &whole, depth + 1)
        })
    }
}

fn shown(module: &Module) -> String {
    if module.is_empty() { "the top".to_owned() } else { module.join("::") }
}

fn read_module(file: &Path, module: Module, modules: &mut BTreeMap<Module, Source>) {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let mut source = Source::default();
    for item in &parsed.items {
        if is_for_tests(item) {
            continue;
        }
        match item {
            syn::Item::Mod(inner) if inner.content.is_none() => {
                let name = inner.ident.to_string();
                let below: Module = module.iter().cloned().chain([name.clone()]).collect();
                read_module(&place(file, &module, &name), below, modules);
            }
            syn::Item::Use(item) => {
                let public = !matches!(item.vis, syn::Visibility::Inherited);
                source.read_use(&item.tree, &mut Vec::new(), public);
            }
            item => {
                source.define(item);
                source.visit_item(item);
            }
        }
    }
    modules.insert(module, source);
}

/// Where the file of a module is, by the one of its parent.
fn place(file: &Path, parent: &Module, name: &str) -> PathBuf {
    let folder = file.parent().expect("a file is in a folder");
    let folder = parent.last().map_or_else(|| folder.to_owned(), |parent| folder.join(parent));
    folder.join(format!("{name}.rs"))
}

fn is_for_tests(item: &syn::Item) -> bool {
    let attributes = match item {
        syn::Item::Mod(item) => &item.attrs,
        syn::Item::Use(item) => &item.attrs,
        syn::Item::Fn(item) => &item.attrs,
        syn::Item::Impl(item) => &item.attrs,
        syn::Item::Struct(item) => &item.attrs,
        _ => return false,
    };
    attributes.iter().any(|attribute| {
        attribute.path().is_ident("cfg")
            && attribute.parse_args::<syn::Ident>().is_ok_and(|argument| argument == "test")
    })
}

impl Source {
    fn define(&mut self, item: &syn::Item) {
        let (name, visibility) = match item {
            syn::Item::Struct(item) => (&item.ident, Some(&item.vis)),
            syn::Item::Enum(item) => (&item.ident, Some(&item.vis)),
            syn::Item::Union(item) => (&item.ident, Some(&item.vis)),
            syn::Item::Trait(item) => (&item.ident, Some(&item.vis)),
            syn::Item::Type(item) => (&item.ident, Some(&item.vis)),
            syn::Item::Fn(item) => (&item.sig.ident, None),
            syn::Item::Const(item) => (&item.ident, None),
            syn::Item::Static(item) => (&item.ident, None),
            syn::Item::Macro(syn::ItemMacro { ident: Some(ident), .. }) => (ident, None),
            _ => return,
        };
        self.defined.insert(name.to_string());
        if visibility.is_some_and(|visibility| !matches!(visibility, syn::Visibility::Inherited)) {
            self.public_types.insert(name.to_string());
        }
    }

    fn read_use(&mut self, tree: &syn::UseTree, before: &mut Vec<String>, public: bool) {
        match tree {
            syn::UseTree::Path(path) => {
                before.push(path.ident.to_string());
                self.read_use(&path.tree, before, public);
                before.pop();
            }
            syn::UseTree::Group(group) => {
                group.items.iter().for_each(|tree| self.read_use(tree, before, public));
            }
            syn::UseTree::Name(name) => self.import(name.ident.to_string(), &name.ident, before, public),
            syn::UseTree::Rename(name) => self.import(name.rename.to_string(), &name.ident, before, public),
            syn::UseTree::Glob(_) => self.globs.push(before.clone()),
        }
    }

    fn import(&mut self, name: String, last: &syn::Ident, before: &[String], public: bool) {
        let own = last == "self";
        let name = if own && name == "self" { before.last().cloned().unwrap_or_default() } else { name };
        let more = (!own).then(|| last.to_string());
        self.imports.push(Import { name, path: before.iter().cloned().chain(more).collect(), public });
    }
}

impl<'a> Visit<'a> for Source {
    fn visit_path(&mut self, path: &'a syn::Path) {
        self.paths.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        syn::visit::visit_path(self, path);
    }
}
