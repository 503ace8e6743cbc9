//! No two modules of a crate use each other, neither directly nor through others.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use syn::visit::{self, Visit};
use syn::{Attribute, Item, UseTree, Visibility};

/// Names from the root of a crate to a module or an item in it.
type Names = Vec<String>;

/// Modules by the sibling modules that use them, with an example for each pair.
type Uses = BTreeMap<Names, BTreeMap<Names, String>>;

/// The modules of a crate, and the names that each passes on from others.
#[derive(Default)]
struct Modules {
    files: BTreeMap<Names, (PathBuf, syn::File)>,
    passed_on: BTreeMap<Names, Names>,
}

impl Modules {
    fn of(sources: &Path) -> Self {
        let mut modules = Self::default();
        modules.read(sources, &Vec::new());
        let mut passed_on = BTreeMap::new();
        for (at, (_, file)) in &modules.files {
            let uses = file.items.iter().filter_map(|item| match item {
                Item::Use(it) if !matches!(it.vis, Visibility::Inherited) => Some(&it.tree),
                _ => None,
            });
            for path in uses.flat_map(paths_of) {
                if let (Some(name), Some(target)) = (path.last(), modules.rooted(at, &path)) {
                    passed_on.insert(joined(at, name), target);
                }
            }
        }
        modules.passed_on = passed_on;
        let of_tests = |(at, (_, file)): (&Names, &(PathBuf, syn::File))| {
            let tests = file.items.iter().filter_map(|item| match item {
                Item::Mod(it) if is_of_tests(&it.attrs) => Some(joined(at, &it.ident.to_string())),
                _ => None,
            });
            tests.collect::<Vec<_>>()
        };
        let tests: Vec<_> = modules.files.iter().flat_map(of_tests).collect();
        modules.files.retain(|at, _| !tests.iter().any(|test| at.starts_with(test)));
        modules
    }

    fn read(&mut self, directory: &Path, at: &Names) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            if path.is_dir() {
                self.read(&path, &joined(at, &name));
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let is_root = ["lib", "main", "mod"].contains(&&*name);
                let module = if is_root { at.clone() } else { joined(at, &name) };
                let text = std::fs::read_to_string(&path).unwrap();
                self.files.insert(module, (path, syn::parse_file(&text).unwrap()));
            }
        }
    }

    /// A path that a module names, from the root of the crate; `None` if it begins elsewhere.
    fn rooted(&self, at: &Names, path: &[String]) -> Option<Names> {
        let ups = path.iter().take_while(|name| *name == "super").count();
        let (base, rest) = match path.first()?.as_str() {
            "crate" => (&[][..], &path[1..]),
            "self" => (&at[..], &path[1..]),
            "super" => (&at[..at.len().checked_sub(ups)?], &path[ups..]),
            child => (self.files.contains_key(&joined(at, child)).then_some(&at[..])?, path),
        };
        Some([base, rest].concat())
    }

    /// The module that has what a path from the root names.
    fn owner(&self, path: Names) -> Names {
        let mut path = path;
        // A name is passed on a few times at most.
        for _ in 0..8 {
            let module = |len: &usize| self.files.contains_key(&path[..*len]);
            let len = (0..=path.len()).rev().find(module).unwrap_or(0);
            match path.get(..=len).and_then(|name| self.passed_on.get(name)) {
                Some(target) => drop(path.splice(..=len, target.iter().cloned())),
                None => path.truncate(len),
            }
        }
        path
    }

    fn uses(&self) -> Uses {
        let mut uses = Uses::new();
        for (at, (file, syntax)) in &self.files {
            let mut found = Paths::default();
            found.visit_file(syntax);
            for path in found.0 {
                let Some(target) = self.rooted(at, &path) else { continue };
                let owner = self.owner(target);
                let common = at.iter().zip(&owner).take_while(|(a, b)| a == b).count();
                // Otherwise one contains the other.
                if let (Some(from), Some(to)) = (at.get(..=common), owner.get(..=common)) {
                    let example = format!("{} uses {}", file.display(), path.join("::"));
                    let from = uses.entry(from.to_vec()).or_default();
                    from.entry(to.to_vec()).or_insert(example);
                }
            }
        }
        uses
    }
}

/// Paths outside tests.
#[derive(Default)]
struct Paths(BTreeSet<Names>);

impl<'ast> Visit<'ast> for Paths {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes: &[Attribute] = match item {
            Item::Mod(it) => &it.attrs,
            Item::Fn(it) => &it.attrs,
            Item::Use(it) => &it.attrs,
            Item::Impl(it) => &it.attrs,
            _ => &[],
        };
        if is_of_tests(attributes) {
            return;
        }
        if let Item::Use(it) = item {
            self.0.extend(paths_of(&it.tree));
        }
        visit::visit_item(self, item);
    }

    fn visit_path(&mut self, path: &'ast syn::Path) {
        if path.segments.len() > 1 {
            self.0.insert(path.segments.iter().map(|it| it.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
}

fn is_of_tests(attributes: &[Attribute]) -> bool {
    attributes.iter().any(|it| {
        let condition = it.path().is_ident("cfg").then(|| it.parse_args::<syn::Path>());
        condition.is_some_and(|it| it.is_ok_and(|it| it.is_ident("test")))
    })
}

fn joined(names: &Names, name: &str) -> Names {
    [&names[..], &[name.to_owned()]].concat()
}

/// Paths that a `use` names.
fn paths_of(tree: &UseTree) -> Vec<Names> {
    match tree {
        UseTree::Path(it) => {
            let below = paths_of(&it.tree).into_iter();
            below.map(|path| [vec![it.ident.to_string()], path].concat()).collect()
        }
        UseTree::Name(it) => vec![vec![it.ident.to_string()]],
        UseTree::Rename(it) => vec![vec![it.ident.to_string()]],
        UseTree::Glob(_) => vec![Vec::new()],
        UseTree::Group(it) => it.items.iter().flat_map(paths_of).collect(),
    }
}

/// A circle that a module is part of: an example of each step.
fn circle(uses: &Uses, begin: &Names) -> Option<Vec<String>> {
    let mut came_from: BTreeMap<&Names, (&Names, &String)> = BTreeMap::new();
    let mut next = vec![begin];
    while let Some(at) = next.pop() {
        for (to, example) in uses.get(at).into_iter().flatten() {
            if to != begin && !came_from.contains_key(to) {
                next.push(to);
            }
            came_from.entry(to).or_insert((at, example));
        }
    }
    let (mut at, last) = *came_from.get(begin)?;
    let mut steps = vec![last.clone()];
    while at != begin {
        let (before, example) = came_from[at];
        steps.push(example.clone());
        at = before;
    }
    steps.reverse();
    Some(steps)
}

fn circles(sources: &Path) -> Vec<Vec<String>> {
    let uses = Modules::of(sources).uses();
    uses.keys().filter_map(|module| circle(&uses, module)).collect()
}

#[test]
fn no_modules_use_each_other() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let mut crates: Vec<PathBuf> =
        ["xtask", "bench", "fixtures", "analysis"].iter().map(|name| root.join(name)).collect();
    for wing in ["crates", "analysis"] {
        let entries = std::fs::read_dir(root.join(wing)).unwrap().map(|it| it.unwrap().path());
        crates.extend(entries.filter(|path| path.join("Cargo.toml").exists()));
    }
    assert!(crates.len() > 30, "{crates:?}");
    let found: Vec<_> = crates.iter().flat_map(|it| circles(&it.join("src"))).collect();
    assert!(found.is_empty(), "{found:#?}");
}

#[test]
fn circles_through_others_and_through_names_that_are_passed_on_are_found() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = directory.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    write("lib.rs", "mod a; mod b; mod c; pub use c::Last; pub fn root() {}");
    write("a/mod.rs", "pub mod inner; fn f() { crate::root() }");
    write("a/inner.rs", "use super::super::b::{self, Some}; use super::f;");
    write("b.rs", "use crate::Last; #[cfg(test)] mod tests { use crate::a::inner; }");
    write("c.rs", "pub struct Last;");
    assert_eq!(circles(directory.path()), Vec::<Vec<String>>::new());
    write("c.rs", "pub struct Last; fn f(of: crate::a::inner::It) {}");
    let found = circles(directory.path());
    assert_eq!(found.iter().map(Vec::len).collect::<Vec<_>>(), [3, 3, 3], "{found:?}");
}
