//! Tests that one directory of links finds what was found in the lists that it replaces.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use proctrace_libsearch::{Cache, Capabilities, Elf, Files, Found, Identity, Linker, Root, Tokens};
use proctrace_replay::{Exec, MountTable};
use proctrace_wire::layout::ExecFixed;
use proptest::prelude::*;
use zerocopy::FromZeros;

use crate::System;
use crate::farm::{FARM, Farm, FarmPlan};
use crate::merge::merged;
use crate::mounts::Mounts;
use crate::starts::{Kind, Starts, searched_later};
use crate::uses::{Dlopened, Uses};
use crate::views::Views;

const MACHINE: u16 = 62;
const OTHER_MACHINE: u16 = 183;
/// Programs for either machine.
const PROGRAMS: [&str; 2] = ["/bin/program", "/bin/other"];

/// Files that exist only here, without symbolic links.
#[derive(Clone, Default)]
struct Memory(BTreeMap<PathBuf, Found>);

/// A path without "." and "..".
fn plain(path: &[u8]) -> PathBuf {
    let mut plain = PathBuf::from("/");
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => drop(plain.pop()),
            name => plain.push(String::from_utf8_lossy(name).as_ref()),
        }
    }
    plain
}

impl Files for Memory {
    fn at(&self, path: &[u8]) -> Found {
        let path = plain(path);
        match self.0.get(&path) {
            Some(found) => found.clone(),
            None if self.0.keys().any(|known| known.starts_with(&path)) => Found::Directory,
            None => Found::Nothing,
        }
    }

    fn real(&self, path: &[u8]) -> Option<Vec<u8>> {
        let real = plain(path).into_os_string().into_encoded_bytes();
        self.at(&real).exists().then_some(real)
    }

    fn names(&self, path: &[u8]) -> Option<Vec<Vec<u8>>> {
        let path = plain(path);
        let inside = self.0.keys().filter_map(|known| known.strip_prefix(&path).ok());
        let first = |path: &std::path::Path| Some(path.iter().next()?.as_encoded_bytes().to_vec());
        let mut names: Vec<Vec<u8>> = inside.filter_map(first).collect();
        names.dedup();
        (self.at(path.as_os_str().as_encoded_bytes()) == Found::Directory).then_some(names)
    }
}

impl Memory {
    /// The programs and their dynamic linkers.
    fn new() -> Self {
        let mut memory = Self::default();
        for (path, machine) in PROGRAMS.into_iter().zip([MACHINE, OTHER_MACHINE]) {
            let linker = format!("/lib/ld-{machine}.so");
            let interpreter = Some(linker.clone().into_bytes());
            memory.add(&linker, Elf { machine, ..Elf::default() });
            memory.add(path, Elf { machine, interpreter, is_executable: true, ..Elf::default() });
        }
        memory
    }

    fn add(&mut self, path: &str, elf: Elf) {
        let elf = Elf { is_64: true, is_dynamic: true, ..elf };
        let found = Found::Object((1, self.0.len() as u64), Arc::new(elf));
        self.0.insert(PathBuf::from(path), found);
    }

    fn with(mut self, path: &str) -> Self {
        self.add(path, Elf { machine: MACHINE, ..Elf::default() });
        self
    }

    fn with_runpath(mut self, path: &str, runpath: &str) -> Self {
        let runpath = Some(runpath.as_bytes().to_vec());
        self.add(path, Elf { machine: MACHINE, runpath, ..Elf::default() });
        self
    }
}

fn linker() -> Linker {
    let capabilities = Capabilities { hwcaps: vec![b"v3".to_vec()], legacy: vec![b"tls".to_vec()] };
    let tokens = Tokens { origin: None, lib: b"lib64".to_vec(), platform: b"x".to_vec() };
    Linker { capabilities, default_directories: vec![b"/lib".to_vec()], tokens }
}

fn exec(program: &str, list: &str) -> Exec {
    Exec {
        record: ExecFixed::new_zeroed(),
        path: program.into(),
        interpreter: None,
        exe: program.into(),
        cwd: b"/work".to_vec(),
        argv: Vec::new(),
        argv_truncated: false,
        environment: Some(Arc::new(vec![(b"LD_LIBRARY_PATH".to_vec(), list.into())])),
    }
}

/// Starts of these programs with each of these lists, which have failed to open some libraries later, and the farm that merges them.
fn with_merged<T>(
    files: &dyn Files,
    programs: &[&str],
    lists: &[&str],
    failed: &[&str],
    check: impl FnOnce(System<'_>, &Uses<'_>, &Farm<'_>) -> T,
) -> T {
    let (linker, cache) = (linker(), Cache::default());
    let make = |_| -> Arc<dyn Files> { Arc::new(Root::new("/")) };
    let views = Views::new(Mounts::default(), MountTable::parse(0, b""), &make);
    let system = System { linker: &linker, cache: &cache, files, views: &views };
    let mut starts = Starts::new(system);
    let mut dlopened = Dlopened::default();
    for list in lists {
        for program in programs {
            let start = starts.of(&exec(program, list), None).expect("a start");
            for name in failed {
                dlopened.take(&start, format!("/somewhere/{name}").as_bytes());
            }
        }
    }
    let uses = Uses::of(&starts, &dlopened);
    let farm = merged(&uses);
    check(system, &uses, &farm)
}

fn plan(files: &dyn Files, lists: &[&str], failed: &[&str]) -> FarmPlan {
    with_merged(files, &PROGRAMS[..1], lists, failed, |_, _, farm| farm.plan.clone())
}

fn names<'a>(all: impl IntoIterator<Item = &'a Vec<u8>>) -> Vec<String> {
    all.into_iter().map(|name| String::from_utf8_lossy(name).into_owned()).collect()
}

/// The target of a link.
fn target(plan: &FarmPlan, name: &str) -> Option<String> {
    let link = plan.links.iter().find(|link| link.name == name.as_bytes())?;
    Some(String::from_utf8_lossy(&link.target).into_owned())
}

fn kept(plan: &FarmPlan) -> Vec<String> {
    names(plan.kept.iter().map(|kept| &kept.entry))
}

#[test]
fn each_name_leads_to_the_first_file_of_the_list() {
    let mut files = Memory::new().with("/b/one.so").with("/a/two.so").with("/b/two.so.1");
    for name in ["/a/x.rootmap", "/a/notes.txt", "/a/y.so"] {
        files.0.insert(name.into(), Found::Other);
    }
    files = files.with("/b/two.so").with("/b/y.so");
    let plan = plan(&files, &["/a/:/none:/b"], &[]);
    let links: Vec<_> = plan.links.iter().map(|link| names([&link.name, &link.target])).collect();
    assert_eq!(
        links,
        [
            ["one.so", "/b/one.so"],
            ["two.so", "/a/two.so"],
            ["two.so.1", "/b/two.so.1"],
            ["x.rootmap", "/a/x.rootmap"],
            ["y.so", "/a/y.so"],
        ]
    );
    assert_eq!(names(&plan.replaced), ["/a/", "/none", "/b"]);
    assert!(plan.kept.is_empty() && plan.conflicts.is_empty() && plan.stops.is_empty());
    assert_eq!(plan.list(b"/links", b"/b:/other;/a/::/b:/a"), b"/links:/other::/a");
    assert_eq!(plan.list(b"/links", b""), b"/links");
}

#[test]
fn entries_that_mean_several_directories_stay() {
    let files = Memory::new().with("/a/one.so");
    let plan = plan(&files, &["/a:.:$ORIGIN/lib:/b/$LIB:"], &[]);
    assert_eq!(kept(&plan), [".", "$ORIGIN/lib", "/b/$LIB", ""]);
    assert_eq!(names(&plan.replaced), ["/a"]);
}

#[test]
fn a_library_for_certain_cpus_keeps_its_directory() {
    for sub in ["glibc-hwcaps/v3", "glibc-hwcaps/of-another-cpu", "tls"] {
        let files = Memory::new().with("/a/one.so").with("/c/one.so").with("/c/two.so");
        let files = files.with(&format!("/b/{sub}/one.so")).with(&format!("/b/{sub}/two.so"));
        let plan = plan(&files, &["/a:/b:/c"], &[]);
        // What /a has is found before; the other is found in /b by some CPUs, in /c by all others.
        assert_eq!(target(&plan, "one.so").as_deref(), Some("/a/one.so"), "{sub}");
        assert_eq!(target(&plan, "two.so"), None, "{sub}");
        assert_eq!(kept(&plan), ["/b", "/c"], "{sub}");
    }
}

#[test]
fn a_library_for_another_architecture_is_passed_over() {
    let mut files = Memory::new();
    files.add("/a/one.so", Elf { machine: OTHER_MACHINE, ..Elf::default() });
    files.add("/a/other.so", Elf { machine: OTHER_MACHINE, ..Elf::default() });
    let files = files.with("/b/one.so").with("/c/two.so");
    let plan = plan(&files, &["/a:/b:/c"], &[]);
    assert_eq!(kept(&plan), ["/a", "/b"]);
    assert_eq!(target(&plan, "one.so"), None);
    assert_eq!(target(&plan, "other.so").as_deref(), Some("/a/other.so"));
}

#[test]
fn a_library_that_depends_on_its_place_stays_there() {
    for (runpath, stays) in [
        ("/priv:/a/priv", false),
        ("$ORIGIN", false),
        ("$ORIGIN/../b", false),
        ("${ORIGIN}/none", false),
        ("$ORIGIN/priv", true),
        ("/none:$ORIGIN/../priv", true),
    ] {
        let files = Memory::new().with("/a/priv/x.so").with("/priv/x.so").with("/b/two.so");
        let files = files.with_runpath("/a/one.so", runpath);
        let plan = plan(&files, &["/a:/b"], &[]);
        assert_eq!(target(&plan, "one.so").is_none(), stays, "{runpath}");
        assert_eq!(kept(&plan), if stays { vec!["/a"] } else { vec![] }, "{runpath}");
        assert!(target(&plan, "two.so").is_some());
    }
    // RPATH comes before the list.
    let mut files = Memory::new().with("/b/two.so");
    let rpath = Some(b"$ORIGIN/../b".to_vec());
    files.add("/a/one.so", Elf { machine: MACHINE, rpath, ..Elf::default() });
    assert_eq!(kept(&plan(&files, &["/a:/b"], &[])), ["/a"]);
    let mut files = Memory::new().with("/a/priv/x.so");
    let needed = vec![b"$ORIGIN/priv/x.so".to_vec()];
    files.add("/a/one.so", Elf { machine: MACHINE, needed, ..Elf::default() });
    assert_eq!(kept(&plan(&files, &["/a"], &[])), ["/a"]);
}

#[test]
fn names_that_were_found_nowhere_end_the_search() {
    let files = Memory::new().with("/a/one.so").with("/lib/system.so");
    let with_system = plan(&files, &["/a:/b"], &["none.so", "one.so", "system.so"]);
    assert_eq!(names(&with_system.stops), ["none.so"]);
    assert_eq!(target(&with_system, "system.so").as_deref(), Some("/lib/system.so"));
    assert_eq!(target(&plan(&files, &["/a:/b"], &[]), "system.so"), None);
}

#[test]
fn lists_that_differ_are_reported() {
    let files = Memory::new().with("/a/one.so").with("/b/one.so").with("/b/two.so");
    let plan = plan(&files, &["/b", "/a:/b", "/a:/b"], &["one.so"]);
    let [conflict] = &plan.conflicts[..] else { panic!("{:?}", plan.conflicts) };
    assert_eq!(names([&conflict.name, &conflict.chosen.path]), ["one.so", "/a/one.so"]);
    assert_eq!(names(conflict.lost.iter().map(|lost| &lost.path)), ["/b/one.so"]);
    assert_eq!((conflict.chosen.starts, conflict.lost[0].starts), (2, 1));
    assert_eq!(names(&conflict.lost[0].programs), PROGRAMS[..1]);
}

/// The files that a start loads with libraries that it opens later.
fn loaded(kind: &Kind, list: &[u8], opened: &[&str], system: System<'_>) -> Vec<Identity> {
    let opened: Vec<Vec<u8>> = opened.iter().map(|name| name.as_bytes().to_vec()).collect();
    let search = searched_later(kind, Some(list), &opened, system).expect("a start");
    let identity = |path: &Vec<u8>| match system.files.at(path) {
        Found::Object(identity, _) => Some(identity),
        _ => None,
    };
    search.loaded.iter().filter_map(identity).collect()
}

const NAMES: [&str; 4] = ["a.so", "b.so", "c.so", "d.so"];

fn object() -> impl Strategy<Value = Elf> {
    let own = ["$ORIGIN", "$ORIGIN/../d1", "$ORIGIN/priv", "/d2", "$ORIGIN/none"];
    let own = || proptest::option::weighted(0.3, proptest::sample::select(own.to_vec()));
    let needed = proptest::collection::vec(proptest::sample::select(NAMES.to_vec()), 0..2);
    let is_other = proptest::bool::weighted(0.1);
    (needed, own(), own(), is_other).prop_map(|(needed, rpath, runpath, is_other)| Elf {
        machine: if is_other { OTHER_MACHINE } else { MACHINE },
        needed: needed.into_iter().map(|name| name.as_bytes().to_vec()).collect(),
        rpath: rpath.filter(|_| runpath.is_none()).map(|list| list.as_bytes().to_vec()),
        runpath: runpath.map(|list| list.as_bytes().to_vec()),
        ..Elf::default()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(5000))]

    /// The links find what was found by the list, for any directories.
    #[test]
    fn what_was_found_is_found(
        objects in proptest::collection::btree_map(
            (
                proptest::sample::select(vec!["/d0", "/d1", "/d2", "/d3", "/lib"]),
                proptest::sample::select(vec!["", "", "", "", "/priv", "/tls", "/glibc-hwcaps/v3"]),
                proptest::sample::select(NAMES.to_vec()),
            ),
            object(),
            0..14,
        ),
        list in proptest::sample::subsequence(vec!["/d0", "/d1", "/d2", "/d3"], 1..=4)
            .prop_shuffle(),
        failed in proptest::sample::subsequence(NAMES.to_vec(), 0..=4),
    ) {
        let mut files = Memory::new();
        for ((directory, sub, name), mut elf) in objects {
            // A link to a library of the system comes before RUNPATH. Those of libraries in no list are not
            // known, unless they were recorded.
            if !list.contains(&directory) {
                elf.runpath = None;
            }
            files.add(&format!("{directory}{sub}/{name}"), elf);
        }
        with_merged(&files, &PROGRAMS, &[&list.join(":")], &failed, |system, uses, farm| {
            for used in uses.all() {
                let kind = &used.start.kind;
                let was = kind.library_path().unwrap_or_default();
                let becomes = farm.plan.list(FARM, was);
                let changed = System { files: farm, ..system };
                for opened in NAMES.iter().map(std::slice::from_ref).chain([&failed[..]]) {
                    let before = loaded(kind, was, opened, system);
                    let after = loaded(kind, &becomes, opened, changed);
                    prop_assert_eq!(before, after, "{:?} of {:?}", opened, farm.plan);
                }
            }
            Ok(())
        })?;
    }
}
