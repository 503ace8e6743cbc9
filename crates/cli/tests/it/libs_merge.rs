//! One directory of links in place of a list: what it leaves against what was predicted, that programs find
//! what they found before, and that it is renewed.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Recorded, Recorder, payload, proctrace, text, u64_of};
use proctrace_fixtures::libraries::{LIBRARIES, Libraries};
use serde_json::Value;

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn found(trace: &Path, options: &[&str]) -> Value {
    let json = ran(proctrace().args(["libs", "--json"]).args(options).arg(trace));
    serde_json::from_str(&json).unwrap()
}

fn predicted(found: &Value, figure: &str) -> u64 {
    let remedies = found["remedies"].as_array().unwrap();
    u64_of(&remedies.iter().find(|one| one["name"] == "merge").unwrap()[figure])
}

/// Failed look-ups at starts, and by dlopen(3), of a recording in which all are explained.
fn misses(trace: &Path) -> (u64, u64) {
    let found = found(trace, &[]);
    assert_eq!(found["predicted_library_misses"], found["confirmed_library_misses"], "{found:#}");
    assert_eq!(found["unexplained_library_misses"], 0, "{found:#}");
    let causes = found["causes"].as_array().unwrap().iter();
    let later = causes.filter(|cause| cause["kind"] == "dlopen");
    let later = later.map(|cause| u64_of(&cause["misses"])).sum();
    (u64_of(&found["confirmed_library_misses"]), later)
}

/// A program that opens the libraries it is given, and fails unless they are there as told: "+name" is, and
/// "-name" is not.
const OPENER: &str = r#"
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (!dlopen(argv[i] + 1, RTLD_NOW) != (argv[i][0] == '-')) {
            fprintf(stderr, "%s: %s\n", argv[i], dlerror());
            return 1;
        }
    return 0;
}
"#;

struct Setting {
    place: tempfile::TempDir,
    fixture: Libraries,
    /// All directories of the fixture and some that do not exist.
    list: String,
}

impl Setting {
    fn make() -> Self {
        let place = tempfile::tempdir().unwrap();
        let fixture = Libraries::make(place.path(), &[]);
        let list = format!("/no/such:{}:/no/other", Libraries::list(place.path()));
        let set = Self { place, fixture, list };
        fs::write(set.at("opener.c"), OPENER).unwrap();
        let opener = set.at("opener");
        ran(Command::new("cc").arg("-o").arg(opener).arg(set.at("opener.c")));
        set
    }

    fn at(&self, path: &str) -> PathBuf {
        self.place.path().join(path)
    }

    /// A directory whose name a shell has to quote.
    fn links(&self) -> PathBuf {
        self.at("it's a \"farm\" of `links`")
    }

    /// A shared library with this function, compiled with these further arguments.
    fn library(&self, path: &str, function: &str, arguments: &[&str]) {
        let library = self.at(path);
        fs::create_dir_all(library.parent().unwrap()).unwrap();
        let name = library.file_name().unwrap().display().to_string();
        ran(Command::new("cc")
            .args(["-shared", "-fPIC", "lib.c", "-Wl,--no-as-needed", "-o"])
            .arg(library)
            .arg(format!("-DNAME={function}"))
            .arg(format!("-Wl,-soname,{name}"))
            .args(arguments)
            .current_dir(self.place.path()));
    }

    /// The program of the fixture and the opener with these arguments are recorded with a list.
    fn recorded(&self, list: &str, opened: &[&str]) -> Recorded {
        let (program, opener) = (self.fixture.program(), self.at("opener"));
        let script = "program=$1; opener=$2; shift 2; \"$program\" && exec \"$opener\" \"$@\"";
        let words = ["sh", "-c", script, "sh", program.to_str().unwrap(), opener.to_str().unwrap()];
        let recorder = Recorder::new().env("LD_LIBRARY_PATH", list);
        let recorded = recorder.run([&words[..], opened].concat());
        recorded.sound(0);
        recorded
    }

    fn merge(&self, trace: &Path) -> Value {
        found(trace, &["--merge", "--farm", self.links().to_str().unwrap()])["farm"].clone()
    }

    /// The list that env.sh makes of another, sourced twice.
    fn sourced(&self, list: &str) -> String {
        let script = ". \"$1\"; . \"$1\"; printf %s \"$LD_LIBRARY_PATH\"";
        ran(Command::new("sh")
            .args(["-euc", script, "sh"])
            .arg(self.links().join("env.sh"))
            .env("LD_LIBRARY_PATH", list))
    }

    /// The libraries that the program takes with a list, by name, without links.
    fn taken(&self, program: &Path, list: &str) -> BTreeMap<String, PathBuf> {
        let lines = ran(Command::new("ldd").arg(program).env("LD_LIBRARY_PATH", list));
        let pair = |line: &str| {
            let (name, rest) = line.trim().split_once(" => ")?;
            let path = rest.rsplit_once(" (")?.0;
            Some((name.to_owned(), Path::new(path).canonicalize().unwrap()))
        };
        lines.lines().filter_map(pair).collect()
    }
}

fn names<'a>(list: &'a Value, key: &str) -> Vec<&'a str> {
    list.as_array().unwrap().iter().map(|one| text(&one[key])).collect()
}

#[test]
fn links_in_place_of_the_list_leave_what_was_predicted() {
    let set = Setting::make();
    set.library("d3/libelse.so", "elsewhere", &[]);
    let opened = ["+libfix7.so", "-libnowhere.so", "+libz.so.1", "-libnowhere.so.2"];
    let before = set.recorded(&set.list, &opened);
    let today = found(&before.trace(), &[]);
    let made = set.merge(&before.trace());
    let links = names(&made["links"], "name");
    assert_eq!(links.iter().filter(|name| name.starts_with("libfix")).count(), LIBRARIES);
    // No program has asked for it.
    assert!(links.contains(&"libelse.so"), "{made:#}");
    assert!(links.contains(&"libc.so.6") && links.contains(&"libz.so.1"), "{made:#}");
    assert_eq!(made["stops"], serde_json::json!(["libnowhere.so", "libnowhere.so.2"]));
    assert_eq!((&made["kept"], &made["conflicts"]), (&Value::Array(vec![]), &Value::Array(vec![])));
    let list = set.sourced(&set.list);
    assert_eq!(list, set.links().display().to_string());
    let expected =
        (predicted(&today, "predicted_misses"), predicted(&today, "predicted_dlopen_misses"));
    let (starts, later) = misses(&before.trace());
    // What is nowhere is searched in the default directories in any case.
    assert!(expected.0 * 5 < starts && expected.1 < later, "{expected:?} {starts} {later}");
    assert_eq!(misses(&set.recorded(&list, &opened).trace()), expected);
    // Behind the links the old directories are not searched, neither for what is there nor for what is
    // nowhere.
    let longer = set.recorded(&format!("{list}:{}", set.list), &opened);
    assert_eq!(misses(&longer.trace()), expected);
    // What only a later run asks for is found as well.
    set.recorded(&list, &["+libelse.so", "+libfix29.so", "-libnowhere.so"]);
    let (program, opener) = (set.fixture.program(), set.at("opener"));
    for program in [program, opener] {
        assert_eq!(set.taken(&program, &list), set.taken(&program, &set.list));
    }
}

#[test]
fn the_entries_that_are_replaced_leave_any_list() {
    let set = Setting::make();
    set.merge(&set.recorded(&set.list, &[]).trace());
    let links = set.links().display().to_string();
    for (list, expected) in [
        ("", links.clone()),
        (&*set.list, links.clone()),
        (&*links, links.clone()),
        (&*format!("{}:/new", set.list), format!("{links}:/new")),
        (&*format!("/new::{}:{}:/*", set.list, set.list), format!("{links}:/new::/*")),
        (&*format!("{}:", set.list), format!("{links}:")),
        (&*format!("{}/", set.at("d1").display()), format!("{links}:{}/", set.at("d1").display())),
    ] {
        assert_eq!(set.sourced(list), expected, "{list}");
    }
}

/// glibc takes $ORIGIN of an object for the directory of the link by which it was opened.
#[test]
fn a_library_that_depends_on_its_place_is_found_there() {
    let set = Setting::make();
    set.library("d4/priv/libpriv.so", "priv", &[]);
    let priv_needed = |name: &str, runpath: &str| {
        let path = set.at(name);
        ran(Command::new("patchelf").args(["--add-needed", "libpriv.so"]).arg(&path));
        ran(Command::new("patchelf").args(["--set-rpath", runpath]).arg(&path));
    };
    priv_needed("d4/libfix4.so", "$ORIGIN/priv");
    // This one finds what it needs by the list as well.
    ran(Command::new("patchelf")
        .args(["--set-rpath", "$ORIGIN/../d6"])
        .arg(set.at("d5/libfix5.so")));
    let before = set.recorded(&set.list, &["-libnowhere.so"]);
    let today = found(&before.trace(), &[]);
    let made = set.merge(&before.trace());
    let directory = set.at("d4").display().to_string();
    assert_eq!(names(&made["kept"], "entry"), [&*directory]);
    assert!(text(&made["kept"][0]["why"]).contains("relative to its own place"), "{made:#}");
    assert_eq!(made["failing"], Value::Array(Vec::new()));
    let links = names(&made["links"], "name");
    assert!(!links.contains(&"libfix4.so") && links.contains(&"libfix24.so"), "{made:#}");
    assert!(links.contains(&"libfix5.so"), "{made:#}");
    let list = set.sourced(&set.list);
    assert_eq!(list, format!("{}:{directory}", set.links().display()));
    let after = set.recorded(&list, &["-libnowhere.so"]);
    let expected =
        (predicted(&today, "predicted_misses"), predicted(&today, "predicted_dlopen_misses"));
    assert_eq!(misses(&after.trace()), expected);
    let program = set.fixture.program();
    assert_eq!(set.taken(&program, &list), set.taken(&program, &set.list));
    assert!(set.taken(&program, &list).contains_key("libpriv.so"));
    // Of a farm, which links to it, this is reported: the program would not start.
    let farm = set.at("farm");
    let farm = found(&before.trace(), &["--farm", farm.to_str().unwrap()])["farm"].clone();
    assert_eq!(farm["failing"], serde_json::json!([program]));
}

#[test]
fn a_library_for_certain_cpus_is_found_there() {
    let set = Setting::make();
    // One that this CPU takes, and one that it does not.
    set.library("d2/glibc-hwcaps/x86-64-v2/libfix2.so", "fix2", &[]);
    set.library("d3/glibc-hwcaps/of-another-cpu/libfix3.so", "fix3", &[]);
    let made = set.merge(&set.recorded(&set.list, &[]).trace());
    let kept = ["d2", "d3"].map(|directory| set.at(directory).display().to_string());
    assert_eq!(names(&made["kept"], "entry"), kept);
    let links = names(&made["links"], "name");
    assert!(!links.contains(&"libfix2.so") && !links.contains(&"libfix3.so"), "{made:#}");
    let (program, list) = (set.fixture.program(), set.sourced(&set.list));
    let taken = set.taken(&program, &list);
    assert_eq!(taken, set.taken(&program, &set.list));
    assert_eq!(taken["libfix22.so"], set.fixture.library(22).canonicalize().unwrap());
    let text = ran(proctrace()
        .args(["libs", "--merge", "--farm"])
        .arg(set.links())
        .arg(set.recorded(&set.list, &[]).trace()));
    assert!(text.contains("Entries of LD_LIBRARY_PATH that stay\n"), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
}

#[test]
fn links_are_renewed_from_all_directories() {
    let set = Setting::make();
    let before = set.recorded(&set.list, &["-libnowhere.so"]);
    let made = set.merge(&before.trace());
    let all = names(&made["links"], "name").len() + 1;
    assert_eq!(made["renewed"], all as u64, "{made:#}");
    let again = set.merge(&before.trace());
    assert_eq!((&again["renewed"], &again["removed"]), (&0.into(), &0.into()), "{again:#}");
    assert_eq!((&again["links"], &again["stops"]), (&made["links"], &made["stops"]));
    assert_eq!(again["dangling"], Value::Array(Vec::new()));
    // A library more, the one that was nowhere among them, and one less that no program needs.
    set.library("d9/libnew.so", "fresh", &[]);
    set.library("d9/libnowhere.so", "somewhere", &[]);
    let renewed = set.merge(&before.trace());
    assert_eq!((&renewed["renewed"], &renewed["removed"]), (&2.into(), &0.into()), "{renewed:#}");
    assert_eq!(renewed["stops"], Value::Array(Vec::new()));
    fs::remove_file(set.at("d9/libnew.so")).unwrap();
    let renewed = set.merge(&before.trace());
    assert_eq!((&renewed["renewed"], &renewed["removed"]), (&0.into(), &1.into()), "{renewed:#}");
    assert_eq!(names(&renewed["dangling"], "name"), ["libnew.so"]);
    // As a farm, the same directory has fewer links, and replaces nothing.
    let links = set.links();
    let farm = found(&before.trace(), &["--farm", links.to_str().unwrap()])["farm"].clone();
    assert!(u64_of(&farm["removed"]) > 0, "{farm:#}");
    assert_eq!(set.sourced("/a:/b"), format!("{}:/a:/b", links.display()));
    // A recording that was made with it does not tell what was in the others.
    set.merge(&before.trace());
    let with_it = set.recorded(links.to_str().unwrap(), &[]);
    let output = proctrace()
        .args(["libs", "--merge", "--farm"])
        .arg(&links)
        .arg(with_it.trace())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("from a recording without it"), "{said}");
}

#[test]
fn a_directory_of_others_is_left_alone() {
    let set = Setting::make();
    fs::create_dir(set.links()).unwrap();
    symlink("/lib", set.links().join("libfix2.so")).unwrap();
    let trace = set.recorded(&set.list, &[]);
    let output = proctrace()
        .args(["libs", "--merge", "--farm"])
        .arg(set.links())
        .arg(trace.trace())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read_dir(set.links()).unwrap().count(), 1);
}

#[test]
fn lists_with_different_libraries_of_one_name_are_reported() {
    let set = Setting::make();
    fs::create_dir(set.at("rare")).unwrap();
    fs::copy(set.fixture.library(6), set.at("rare").join(Libraries::name(6))).unwrap();
    let program = set.fixture.program().display().to_string();
    let rare = format!("{}:{}", set.at("rare").display(), set.list);
    let script = "\"$1\"; \"$1\"; LD_LIBRARY_PATH=$2 \"$1\"";
    let recorded = Recorder::new()
        .env("LD_LIBRARY_PATH", &set.list)
        .run(["sh", "-c", script, "sh", &program, &rare]);
    recorded.sound(0);
    let made = set.merge(&recorded.trace());
    let [conflict] = &made["conflicts"].as_array().unwrap()[..] else { panic!("{made:#}") };
    assert_eq!(conflict["name"], "libfix6.so");
    assert_eq!(conflict["chosen"]["path"], set.fixture.library(6).to_str().unwrap());
    assert_eq!(
        (&conflict["chosen"]["starts"], &conflict["lost"][0]["starts"]),
        (&2.into(), &1.into())
    );
    assert_eq!(set.sourced(&rare), set.links().display().to_string());
}

/// The result of `libs try`.
fn tried(command: &mut Command) -> Value {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{said}");
    serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"))
}

#[test]
fn it_is_tried() {
    let set = Setting::make();
    let trial = tried(
        proctrace()
            .args(["libs", "try", "--json", "--remedy", "merge", "--"])
            .arg(set.at("opener"))
            .args(["+libfix9.so", "-libnowhere.so"])
            .env("LD_LIBRARY_PATH", &set.list),
    );
    let after = &trial["after"];
    assert_eq!(after["misses"], trial["predicted_misses"], "{trial:#}");
    assert_eq!(after["dlopen_misses"], trial["predicted_dlopen_misses"], "{trial:#}");
    assert_eq!(after["lookups_failed"], trial["predicted_lookups_failed"], "{trial:#}");
    assert!(u64_of(&after["dlopen_misses"]) < u64_of(&trial["before"]["dlopen_misses"]));
    assert_eq!((&trial["unreached_starts"], &trial["repeated_starts"]), (&0.into(), &0.into()));
}

/// Its programs search 48 directories, to which the payload adds whatever list it is given, for libraries of
/// the system and for one that is nowhere.
#[test]
fn it_frees_a_workflow_of_nearly_all_failed_lookups() {
    let work = tempfile::tempdir().unwrap();
    let trial = tried(
        proctrace()
            .args(["libs", "try", "--json", "--remedy", "merge", "--"])
            .arg(payload())
            .args(["run", "alice-o2-before", "--quiet", "--scale", "0.01", "--work-factor", "0"])
            .args(["--inherit-library-path", "--reuse", "--work"])
            .arg(work.path()),
    );
    for (figure, predicted) in [
        ("misses", "predicted_misses"),
        ("dlopen_misses", "predicted_dlopen_misses"),
        ("lookups_failed", "predicted_lookups_failed"),
    ] {
        let [before, after] = ["before", "after"].map(|run| u64_of(&trial[run][figure]));
        // dlopen(3) of what is nowhere still searches the directories of the system, on newer CPUs with more
        // subdirectories of each (glibc-hwcaps).
        let saved = if figure == "dlopen_misses" { 8 } else { 10 };
        assert!(before > 50_000 && after * saved <= before, "{figure}: {trial:#}");
        assert!(after.abs_diff(u64_of(&trial[predicted])) * 50 <= after, "{figure}: {trial:#}");
    }
    assert_eq!((&trial["unreached_starts"], &trial["starts_not_modelled"]), (&0.into(), &0.into()));
    assert!(u64_of(&trial["repeated_starts"]) > 300, "{trial:#}");
}
