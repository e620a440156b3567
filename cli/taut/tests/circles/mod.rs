//! Which modules of a crate use each other in a circle. `tidy.rs` holds that there are none.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use proc_macro2::{TokenStream, TokenTree};
use syn::{Attribute, Item, UseTree, visit::Visit};

/// A module's or an item's path within its crate; the crate itself is empty.
type Name = Vec<String>;

/// What one file has and uses. Names in `uses`, `exports` and `globs` begin at the crate.
#[derive(Default)]
struct Module {
    items: BTreeSet<String>,
    uses: Vec<Name>,
    /// `pub use`: leads on, and is no use.
    exports: BTreeMap<String, Name>,
    globs: Vec<Name>,
}

/// The circles of a crate's modules, each with its members. What a module uses of those above it does not count: it is
/// a part of them.
pub fn circles(source: &Path) -> Vec<BTreeSet<String>> {
    let mut texts = BTreeMap::new();
    files(source, &mut Vec::new(), &mut texts);
    let names: BTreeSet<Name> = texts.keys().cloned().collect();
    let mut modules = BTreeMap::new();
    let mut tests = BTreeSet::new();
    for (name, text) in &texts {
        let file = syn::parse_file(text).unwrap_or_else(|error| panic!("{name:?}: {error}"));
        let mut reader = Reader { here: name.clone(), names: &names, module: Module::default(), tests: &mut tests };
        reader.visit_file(&file);
        modules.insert(name.clone(), reader.module);
    }
    let is_test = |name: &Name| (1..=name.len()).any(|end| tests.contains(&name[..end]));
    let mut edges: BTreeMap<&Name, BTreeSet<Name>> = BTreeMap::new();
    for (name, module) in modules.iter().filter(|(name, _)| !is_test(name)) {
        let used = module.uses.iter().map(|used| home(used, &modules, &mut BTreeSet::new()));
        edges.insert(name, used.filter(|used| !name.starts_with(used) && !is_test(used)).collect());
    }
    let reached: BTreeMap<&Name, BTreeSet<&Name>> = edges.keys().map(|name| (*name, reach(name, &edges))).collect();
    let mut found = BTreeSet::new();
    for (name, from) in &reached {
        let with = from.iter().filter(|other| reached.get(*other).is_some_and(|back| back.contains(name)));
        let circle: BTreeSet<String> = with.map(|other| other.join("::")).collect();
        if circle.len() > 1 {
            found.insert(circle);
        }
    }
    found.into_iter().collect()
}

fn files(folder: &Path, name: &mut Name, texts: &mut BTreeMap<Name, String>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let stem = path.file_stem().unwrap().to_str().unwrap().to_owned();
        name.push(stem.clone());
        if path.is_dir() {
            files(&path, name, texts);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let is_folder = ["mod", "lib", "main"].contains(&stem.as_str());
            let module = if is_folder { name[..name.len() - 1].to_vec() } else { name.clone() };
            texts.entry(module).or_default().push_str(&std::fs::read_to_string(&path).unwrap());
        }
        name.pop();
    }
}

/// All that is reached from a module.
fn reach<'a>(from: &Name, edges: &'a BTreeMap<&Name, BTreeSet<Name>>) -> BTreeSet<&'a Name> {
    let mut found = BTreeSet::new();
    let mut next: Vec<&Name> = edges.get(from).into_iter().flatten().collect();
    while let Some(name) = next.pop() {
        if found.insert(name) {
            next.extend(edges.get(name).into_iter().flatten());
        }
    }
    found
}

/// The module in which a name is at home, behind all `pub use`.
fn home(name: &[String], modules: &BTreeMap<Name, Module>, seen: &mut BTreeSet<Name>) -> Name {
    let known = (0..=name.len()).rev().find(|end| modules.contains_key(&name[..*end])).unwrap_or(0);
    let (module, rest) = name.split_at(known);
    let (Some(found), Some(item)) = (modules.get(module), rest.first()) else { return module.to_vec() };
    if !seen.insert(name.to_vec()) || found.items.contains(item) {
        return module.to_vec();
    }
    if let Some(to) = found.exports.get(item) {
        return home(&[to, &rest[1..]].concat(), modules, seen);
    }
    for to in &found.globs {
        let there = home(&[&to[..], rest].concat(), modules, seen);
        if modules.get(&there).is_some_and(|module| module.items.contains(item)) {
            return there;
        }
    }
    module.to_vec()
}

/// Reads one file.
struct Reader<'a> {
    /// Inline modules included.
    here: Name,
    names: &'a BTreeSet<Name>,
    module: Module,
    tests: &'a mut BTreeSet<Name>,
}

impl Reader<'_> {
    /// A path from the crate on; `None` where it leads out of the crate, or is a name of this file.
    fn resolved(&self, path: &[String]) -> Option<Name> {
        let up = path.iter().take_while(|part| *part == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([&self.here, &path[1..]].concat()),
            "super" => Some([&self.here[..self.here.len().saturating_sub(up)], &path[up..]].concat()),
            first => {
                let child = [&self.here[..], &[first.to_owned()]].concat();
                self.names.contains(&child).then(|| [&self.here, path].concat())
            }
        }
    }

    fn uses(&mut self, path: &[String]) {
        self.module.uses.extend(self.resolved(path));
    }

    fn tree(&mut self, tree: &UseTree, before: &[String], is_public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        let (path, alias) = match tree {
            UseTree::Path(path) => return self.tree(&path.tree, &with(&path.ident), is_public),
            UseTree::Group(group) => return group.items.iter().for_each(|item| self.tree(item, before, is_public)),
            UseTree::Glob(_) => (before.to_vec(), None),
            UseTree::Name(name) if name.ident == "self" => (before.to_vec(), before.last().cloned()),
            UseTree::Name(name) => (with(&name.ident), Some(name.ident.to_string())),
            UseTree::Rename(rename) => (with(&rename.ident), Some(rename.rename.to_string())),
        };
        let Some(path) = self.resolved(&path) else { return };
        match (is_public, alias) {
            (true, Some(alias)) => drop(self.module.exports.insert(alias, path)),
            (true, None) => self.module.globs.push(path),
            (false, _) => self.module.uses.push(path),
        }
    }
}

impl<'ast> Visit<'ast> for Reader<'_> {
    fn visit_item(&mut self, item: &'ast Item) {
        let (attributes, name) = parts(item);
        if attributes.iter().any(is_for_tests) {
            if let Item::Mod(module) = item {
                self.tests.insert([&self.here[..], &[module.ident.to_string()]].concat());
            }
            return;
        }
        self.module.items.extend(name);
        match item {
            Item::Use(tree) => {
                let is_public = !matches!(tree.vis, syn::Visibility::Inherited);
                self.tree(&tree.tree, &[], is_public);
            }
            Item::Mod(module) => {
                self.here.push(module.ident.to_string());
                module.content.iter().flat_map(|(_, items)| items).for_each(|item| self.visit_item(item));
                self.here.pop();
            }
            item => syn::visit::visit_item(self, item),
        }
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        let names: Name = path.segments.iter().map(|part| part.ident.to_string()).collect();
        if names.len() > 1 {
            self.uses(&names);
        }
        syn::visit::visit_path(self, path);
    }

    fn visit_macro(&mut self, called: &'ast syn::Macro) {
        self.visit_path(&called.path);
        let mut paths = Vec::new();
        paths_in(called.tokens.clone(), &mut paths);
        paths.iter().for_each(|path| self.uses(path));
    }
}

/// Paths of two names or more among tokens.
fn paths_in(tokens: TokenStream, found: &mut Vec<Name>) {
    let (mut path, mut colons): (Name, _) = (Vec::new(), 0);
    for token in tokens {
        match token {
            TokenTree::Ident(name) if colons == 2 || path.is_empty() => path.push(name.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == ':' && !path.is_empty() => {
                colons += 1;
                continue;
            }
            other => {
                found.extend(Some(std::mem::take(&mut path)).filter(|path| path.len() > 1));
                match other {
                    TokenTree::Ident(name) => path.push(name.to_string()),
                    TokenTree::Group(group) => paths_in(group.stream(), found),
                    _ => {}
                }
            }
        }
        colons = 0;
    }
    found.extend(Some(path).filter(|path| path.len() > 1));
}

fn is_for_tests(attribute: &Attribute) -> bool {
    let syn::Meta::List(list) = &attribute.meta else { return attribute.path().is_ident("test") };
    let condition = list.tokens.to_string();
    list.path.is_ident("cfg") && (condition == "test" || condition.starts_with("all (test"))
}

/// An item's attributes, and its name where it is one that others use.
fn parts(item: &Item) -> (&[Attribute], Option<String>) {
    match item {
        Item::Const(item) => (&item.attrs, Some(item.ident.to_string())),
        Item::Enum(item) => (&item.attrs, Some(item.ident.to_string())),
        Item::Fn(item) => (&item.attrs, Some(item.sig.ident.to_string())),
        Item::Macro(item) => (&item.attrs, item.ident.as_ref().map(ToString::to_string)),
        Item::Static(item) => (&item.attrs, Some(item.ident.to_string())),
        Item::Struct(item) => (&item.attrs, Some(item.ident.to_string())),
        Item::Trait(item) => (&item.attrs, Some(item.ident.to_string())),
        Item::Type(item) => (&item.attrs, Some(item.ident.to_string())),
        Item::Union(item) => (&item.attrs, Some(item.ident.to_string())),
        Item::Impl(item) => (&item.attrs, None),
        Item::Mod(item) => (&item.attrs, None),
        Item::Use(item) => (&item.attrs, None),
        _ => (&[], None),
    }
}
