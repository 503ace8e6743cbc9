//! Remedies as they are carried out: what they leave against what was predicted, and what a directory of
//! links may overwrite.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::common::{Recorded, Recorder, payload, proctrace, text, u64_of};
use proctrace_fixtures::libraries::{LIBRARIES, Libraries};
use serde_json::Value;

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn libs(trace: &Path, options: &[&str]) -> String {
    ran(proctrace().arg("libs").args(options).arg(trace))
}

fn found(trace: &Path, options: &[&str]) -> Value {
    serde_json::from_str(&libs(trace, &[&["--json"], options].concat())).unwrap()
}

fn remedy<'a>(found: &'a Value, name: &str) -> &'a Value {
    found["remedies"].as_array().unwrap().iter().find(|one| one["name"] == name).unwrap()
}

fn predicted(found: &Value, name: &str) -> u64 {
    u64_of(&remedy(found, name)["predicted_misses"])
}

/// A recording of a program with a list.
fn recorded(program: &Path, list: &str) -> Recorded {
    let recorded = Recorder::new().env("LD_LIBRARY_PATH", list).run([program]);
    recorded.sound(0);
    recorded
}

/// The failed look-ups of a recording in which all are explained.
fn misses(trace: &Path) -> u64 {
    let found = found(trace, &[]);
    assert_eq!(found["predicted_library_misses"], found["confirmed_library_misses"], "{found:#}");
    assert_eq!(found["unexplained_library_misses"], 0, "{found:#}");
    u64_of(&found["confirmed_library_misses"])
}

/// Output of a shell that has this variable.
fn shell(variable: (&str, &str), script: &str, arguments: &[&str]) -> String {
    ran(Command::new("sh").env(variable.0, variable.1).args(["-euc", script, "sh"]).args(arguments))
}

struct Setting {
    place: tempfile::TempDir,
    fixture: Libraries,
    list: String,
    trace: Recorded,
}

/// The fixture, recorded with all of its directories and some that do not exist.
fn setting() -> Setting {
    let place = tempfile::tempdir().unwrap();
    let fixture = Libraries::make(place.path(), &[]);
    let list = format!("/no/such:{}:/no/other", Libraries::list(place.path()));
    let trace = recorded(&fixture.program(), &list);
    Setting { place, fixture, list, trace }
}

impl Setting {
    /// A directory whose name a shell has to quote.
    fn farm(&self) -> PathBuf {
        self.place.path().join("it's a \"farm\" of `links`")
    }

    fn make(&self, trace: &Path, options: &[&str]) -> Value {
        let farm = self.farm();
        let options = [&["--farm", farm.to_str().unwrap()], options].concat();
        found(trace, &options)["farm"].clone()
    }

    /// The list that env.sh makes of another.
    fn sourced(&self, list: &str) -> String {
        let script = ". \"$1\"; . \"$1\"; printf %s \"$LD_LIBRARY_PATH\"";
        let file = self.farm().join("env.sh");
        shell(("LD_LIBRARY_PATH", list), script, &[file.to_str().unwrap()])
    }

    fn link(&self, n: usize) -> PathBuf {
        self.farm().join(Libraries::name(n))
    }
}

#[test]
fn a_farm_leaves_what_was_predicted() {
    let set = setting();
    let (farm, list) = (set.farm().display().to_string(), &set.list);
    let today = found(&set.trace.trace(), &[]);
    for (options, name) in [(&[][..], "farm"), (&["--with-system"], "farm-system")] {
        let made = set.make(&set.trace.trace(), options);
        let links = made["links"].as_array().unwrap();
        let of_fixture = links.iter().filter(|link| text(&link["name"]).starts_with("libfix"));
        assert_eq!(of_fixture.count(), LIBRARIES);
        assert_eq!(links.len() > LIBRARIES, name == "farm-system");
        assert_eq!(fs::read_link(set.link(7)).unwrap(), set.fixture.library(7));
        let sourced = set.sourced(list);
        assert_eq!(sourced, format!("{farm}:{list}"));
        let after = recorded(&set.fixture.program(), &sourced);
        assert_eq!(misses(&after.trace()), predicted(&today, name), "{name}");
        // What was recorded with it finds the libraries in it: the links do not lead to themselves.
        let again = set.make(&after.trace(), options);
        assert_eq!((&again["renewed"], &again["removed"]), (&0.into(), &0.into()), "{again:#}");
        assert_eq!(again["links"], made["links"]);
        assert_eq!(again["dangling"], Value::Array(Vec::new()));
    }
}

#[test]
fn a_farm_is_put_first_once_whatever_the_list_is() {
    let set = setting();
    set.make(&set.trace.trace(), &[]);
    let farm = set.farm().display().to_string();
    for (list, expected) in [
        ("", farm.clone()),
        (&*farm, farm.clone()),
        ("/a:/b", format!("{farm}:/a:/b")),
        (&*format!("/a:{farm}:/b"), format!("{farm}:/a:/b")),
        (&*format!("{farm}:{farm}"), farm.clone()),
        ("/a::/*", format!("{farm}:/a::/*")),
        (&*format!("{farm}s"), format!("{farm}:{farm}s")),
    ] {
        assert_eq!(set.sourced(list), expected, "{list}");
    }
    let script = "unset LD_LIBRARY_PATH; . \"$1\"; printf %s \"$LD_LIBRARY_PATH\"";
    let file = set.farm().join("env.sh");
    assert_eq!(shell(("X", ""), script, &[file.to_str().unwrap()]), farm);
}

#[test]
fn a_farm_is_renewed() {
    let set = setting();
    let trace = set.trace.trace();
    assert_eq!(set.make(&trace, &[])["renewed"], LIBRARIES as u64);
    assert_eq!(set.make(&trace, &[])["renewed"], 0);
    let whole = set.make(&trace, &["--with-system"]);
    let system = u64_of(&whole["renewed"]);
    assert!(system >= 1, "{whole:#}");
    assert_eq!(set.make(&trace, &[])["removed"], system);
    // A link that leads elsewhere, one that is missing, what an interrupted attempt left, and a
    // library that is gone.
    fs::remove_file(set.link(1)).unwrap();
    symlink("/no/such/library", set.link(1)).unwrap();
    fs::remove_file(set.link(2)).unwrap();
    symlink("/no/such/library", set.farm().join(".proctrace-farm.new")).unwrap();
    fs::remove_file(set.fixture.library(3)).unwrap();
    let made = set.make(&trace, &[]);
    assert_eq!((&made["renewed"], &made["removed"]), (&2.into(), &1.into()), "{made:#}");
    assert_eq!(made["links"].as_array().unwrap().len(), LIBRARIES - 1);
    let dangling = made["dangling"].as_array().unwrap();
    assert_eq!(dangling.len(), 2, "{made:#}");
    assert_eq!(
        (&dangling[0]["name"], &dangling[0]["now"]),
        (&"libfix1.so".into(), &"replaced".into())
    );
    assert_eq!(
        (&dangling[1]["name"], &dangling[1]["now"]),
        (&"libfix3.so".into(), &"removed".into())
    );
    let program = set.fixture.program().display().to_string();
    assert_eq!(dangling[1]["programs"], serde_json::json!([program]));
    assert_eq!(fs::read_link(set.link(1)).unwrap(), set.fixture.library(1));
    assert!(fs::symlink_metadata(set.link(3)).is_err());
    let text = libs(&trace, &["--farm", set.farm().to_str().unwrap()]);
    assert!(text.contains("Libraries that are gone\n") && text.contains("libfix3.so"), "{text}");
}

fn refused(trace: &Path, directory: &str) -> Output {
    let output = proctrace().args(["libs", "--farm", directory]).arg(trace).output().unwrap();
    assert!(output.stdout.is_empty());
    output
}

#[test]
fn a_directory_of_others_is_refused() {
    let set = setting();
    let (trace, place) = (set.trace.trace(), set.place.path());
    let other = place.join("other");
    fs::create_dir(&other).unwrap();
    for (name, make) in [
        ("libfix1.so", (|path| fs::write(path, "mine").unwrap()) as fn(&Path)),
        ("env.sh", |path| fs::write(path, "mine").unwrap()),
        ("libfix2.so", |path| symlink("/lib", path).unwrap()),
        (".proctrace-farm", |path| fs::write(path, "libfix1.so\n").unwrap()),
        (".proctrace-farm.new", |path| fs::create_dir(path).unwrap()),
    ] {
        make(&other.join(name));
        let output = refused(&trace, other.to_str().unwrap());
        assert_eq!(output.status.code(), Some(1));
        let said = String::from_utf8(output.stderr).unwrap();
        assert!(said.contains(name) && said.contains("choose another directory"), "{said}");
        let left: Vec<_> = fs::read_dir(&other).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(left, [name]);
        fs::remove_dir_all(&other).unwrap();
        fs::create_dir(&other).unwrap();
    }
    // A link of ours that someone has replaced by a file.
    set.make(&trace, &[]);
    fs::remove_file(set.link(5)).unwrap();
    fs::write(set.link(5), "mine").unwrap();
    let output = refused(&trace, set.farm().to_str().unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(fs::read(set.link(5)).unwrap(), b"mine");
    // The dynamic linker would split or expand these.
    for name in ["a:b", "a;b", "a\nb", "$LIB"] {
        let output = refused(&trace, place.join(name).to_str().unwrap());
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(!place.join(name).exists());
    }
}

#[test]
fn different_libraries_of_one_name_are_pointed_out() {
    let places = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let [common, rare] = places.each_ref().map(|place| Libraries::make(place.path(), &[]));
    let script = "LD_LIBRARY_PATH=$1 $2; LD_LIBRARY_PATH=$1 $2; LD_LIBRARY_PATH=$3 $4";
    let words: Vec<String> = places
        .iter()
        .zip([&common, &rare])
        .flat_map(|(place, made)| {
            [Libraries::list(place.path()), made.program().display().to_string()]
        })
        .collect();
    let mut command = vec!["sh", "-c", script, "sh"];
    command.extend(words.iter().map(String::as_str));
    let recorded = Recorder::new().run(command);
    recorded.sound(0);
    let farm = recorded.directory.path().join("farm");
    let all = found(&recorded.trace(), &["--farm", farm.to_str().unwrap()]);
    let conflicts = all["farm"]["conflicts"].as_array().unwrap();
    assert_eq!(conflicts.len(), LIBRARIES);
    for conflict in conflicts {
        let n = text(&conflict["name"]).trim_start_matches("libfix").trim_end_matches(".so");
        let n: usize = n.parse().unwrap();
        let file = |made: &Libraries, starts: u64| {
            serde_json::json!({
                "path": made.library(n), "starts": starts, "programs": [made.program()],
            })
        };
        assert_eq!(conflict["chosen"], file(&common, 2));
        assert_eq!(conflict["lost"], serde_json::json!([file(&rare, 1)]));
        assert_eq!(fs::read_link(farm.join(Libraries::name(n))).unwrap(), common.library(n));
    }
}

/// Its commands are carried out by the real patchelf, on the program as well as on a library that needs
/// another.
#[test]
fn absolute_names_leave_what_was_predicted() {
    let set = setting();
    let library = set.fixture.library(4);
    ran(Command::new("patchelf").args(["--add-needed", "libfix25.so"]).arg(&library));
    let trace = recorded(&set.fixture.program(), &set.list);
    let today = found(&trace.trace(), &[]);
    let script = libs(&trace.trace(), &["--patchelf"]);
    assert!(script.contains("\n# Risk: "), "{script}");
    for line in script.lines().filter(|line| line.starts_with('#')) {
        assert!(line.len() <= 80, "{line}");
    }
    ran(Command::new("sh").args(["-c", &script]));
    let needs = ran(Command::new("patchelf").arg("--print-needed").arg(&library));
    assert!(needs.contains(set.fixture.library(25).to_str().unwrap()), "{needs}");
    let after = recorded(&set.fixture.program(), &set.list);
    let after = misses(&after.trace());
    assert_eq!(after, predicted(&today, "needed"));
    assert!(after < predicted(&today, "none"));
}

#[test]
fn a_clean_list_leaves_what_was_predicted() {
    let set = setting();
    let today = found(&set.trace.trace(), &[]);
    let script = libs(&set.trace.trace(), &["--env"]);
    assert!(script.contains("# 1 start: program\n"), "{script}");
    let print = "eval \"$1\"; printf %s \"$LD_LIBRARY_PATH\"";
    let list = shell(("LD_LIBRARY_PATH", &set.list), print, &[&script]);
    assert!(!list.contains("/no/"), "{list}");
    let after = recorded(&set.fixture.program(), &list);
    assert_eq!(misses(&after.trace()), predicted(&today, "clean"));
    assert!(predicted(&today, "clean") < predicted(&today, "none"));
}

/// Each program gets what replaces its own list.
#[test]
fn several_lists_are_told_apart() {
    let set = setting();
    let program = set.fixture.program().display().to_string();
    let script = "LD_LIBRARY_PATH=$1:/no/third $2; LD_LIBRARY_PATH=/no/fourth ls";
    let recorded = Recorder::new()
        .env("LD_LIBRARY_PATH", &set.list)
        .run(["sh", "-c", script, "sh", &set.list, &program]);
    let script = libs(&recorded.trace(), &["--env"]);
    let print = "eval \"$1\"; printf %s \"${LD_LIBRARY_PATH-unset}\"";
    let list_of = |was: &str| shell(("LD_LIBRARY_PATH", was), print, &[&script]);
    let clean = list_of(&set.list);
    assert!(!clean.contains("/no/") && clean.contains("/d7"), "{clean}");
    assert_eq!(list_of(&format!("{}:/no/third", set.list)), clean);
    assert_eq!(list_of("/no/fourth"), "unset");
    assert_eq!(list_of("/no/fifth"), "/no/fifth");
    // A shell without the variable gets none.
    let none =
        ran(Command::new("sh").args(["-c", print, "sh", &script]).env_remove("LD_LIBRARY_PATH"));
    assert_eq!(none, "unset");
    for program in ["program", "ls"] {
        assert!(script.contains(&format!("    # 1 start: {program}\n")), "{script}");
    }
}

#[test]
fn a_shorter_path_leaves_what_was_predicted() {
    let script = "ls; expr 1 + 1; no_such_program; ls /";
    let record = |path: &str| {
        let recorded = Recorder::new().env("PATH", path).run(["/bin/sh", "-c", script]);
        recorded.sound(0);
        recorded
    };
    let before = record("/no/one:/no/two/:/usr/bin:/bin:/no/three");
    let today = found(&before.trace(), &[]);
    let script = libs(&before.trace(), &["--env"]);
    let print = "eval \"$1\"; printf %s \"$PATH\"";
    let path = shell(("PATH", "/no/one:/no/two/:/usr/bin:/bin:/no/three"), print, &[&script]);
    assert!(!path.contains("/no/") && path.contains("/usr/bin"), "{path}");
    let after = found(&record(&path).trace(), &[]);
    assert_eq!(remedy(&after, "path")["today_misses"], predicted(&today, "path"));
    let misses = u64_of(&remedy(&today, "path")["today_misses"]);
    // Each of the two programs, and that which does not exist, is searched in the first two; the shell
    // remembers where ls is.
    assert_eq!(misses, predicted(&today, "path") + 3 + 3 + 1, "{today:#}");
    assert_eq!(remedy(&today, "path")["about"], "programs");
}

/// The result of `libs try`, and its exit status.
fn tried(command: &mut Command) -> (Value, Option<i32>) {
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let result = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{said}"));
    (result, output.status.code())
}

#[test]
fn a_remedy_is_tried() {
    let set = setting();
    for remedy in ["farm", "farm-system", "clean", "drop", "reorder"] {
        let repeat = if remedy == "clean" { "3" } else { "1" };
        let (trial, status) = tried(
            proctrace()
                .args(["libs", "try", "--json", "--remedy", remedy, "--repeat", repeat, "--"])
                .arg(set.fixture.program())
                .env("LD_LIBRARY_PATH", &set.list),
        );
        assert_eq!(status, Some(0));
        assert_eq!(trial["after"]["misses"], trial["predicted_misses"], "{trial:#}");
        assert_eq!(trial["runs"], repeat.parse::<u64>().unwrap());
        assert_eq!(trial["unreached_starts"], 0);
        let saved = |figure| {
            i128::from(u64_of(&trial["before"][figure]))
                - i128::from(u64_of(&trial["after"][figure]))
        };
        // With libc in the farm, the cache is not even opened.
        assert_eq!(saved("lookups_failed"), saved("misses"), "{trial:#}");
        assert!(saved("lookups") >= saved("misses"), "{trial:#}");
        assert!(remedy == "reorder" || saved("misses") > 0, "{trial:#}");
    }
}

#[test]
fn a_trial_ends_as_the_command_does() {
    let run = |arguments: &[&str]| {
        let mut command = proctrace();
        command.args(["libs", "try"]).args(arguments).env("LD_LIBRARY_PATH", "/no/such").output()
    };
    let output = run(&["--remedy", "path", "--", "sh", "-c", "echo said; cat; exit 3"]).unwrap();
    let (out, said) = (output.stdout, String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.starts_with("said\nsaid\n") && said.contains("exited with 3"), "{said}");
    let table = String::from_utf8(out).unwrap();
    assert!(table.starts_with("Without and with the remedy path\n"), "{table}");
    assert!(table.lines().all(|line| line.chars().count() <= 80), "{table}");
    for (arguments, status, says) in [
        (&["--remedy", "unset", "true"][..], 125, "cannot be tried from outside"),
        (&["--remedy", "needed", "true"], 125, "--patchelf"),
        (&["no_such_program"], 127, "not found"),
        (&["--remedy", "none", "true"], 125, "invalid value"),
        (&["--repeat", "0", "true"], 125, "invalid value"),
    ] {
        let output = run(arguments).unwrap();
        let said = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(says), "{said}");
    }
    let mut command = proctrace();
    command.args(["libs", "try", "true"]).env_remove("LD_LIBRARY_PATH");
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(125), "{said}");
    assert!(said.contains("no program of the command had LD_LIBRARY_PATH"), "{said}");
    // A shell that sets its own list is not reached.
    let script = "LD_LIBRARY_PATH=/no/other ls";
    let output = run(&["--remedy", "drop", "--", "sh", "-c", script]).unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(said.contains("1 start was without the remedy"), "{said}");
}

#[test]
fn nothing_to_link_to_makes_no_farm() {
    let recorded = recorded(Path::new("/bin/true"), "/no/such");
    let farm = recorded.directory.path().join("farm");
    let output = refused(&recorded.trace(), farm.to_str().unwrap());
    assert_eq!(output.status.code(), Some(1));
    assert!(!farm.exists());
    // With libc there is.
    let whole = found(&recorded.trace(), &["--farm", farm.to_str().unwrap(), "--with-system"]);
    assert!(!whole["farm"]["links"].as_array().unwrap().is_empty(), "{whole:#}");
}

/// Links to system libraries make the difference where these are searched in 48 directories.
#[test]
fn a_farm_frees_a_workflow_of_most_failed_lookups() {
    let work = tempfile::tempdir().unwrap();
    let (trial, status) = tried(
        proctrace()
            .args(["libs", "try", "--json", "--remedy", "farm-system", "--"])
            .arg(payload())
            .args(["run", "alice-o2-before", "--quiet", "--scale", "0.02", "--work-factor", "0"])
            .args(["--inherit-library-path", "--reuse", "--work"])
            .arg(work.path()),
    );
    assert_eq!(status, Some(0));
    let [before, after] = ["before", "after"].map(|run| u64_of(&trial[run]["misses"]));
    assert!(before > 100_000 && after * 10 <= before, "{trial:#}");
    let predicted = u64_of(&trial["predicted_misses"]);
    assert!(after.abs_diff(predicted) * 50 <= after, "{trial:#}");
    let later = u64_of(&trial["after"]["dlopen_misses"]);
    let predicted = u64_of(&trial["predicted_dlopen_misses"]);
    assert!(later.abs_diff(predicted) * 50 <= later, "{trial:#}");
    assert_eq!((&trial["unreached_starts"], &trial["starts_not_modelled"]), (&0.into(), &0.into()));
}
