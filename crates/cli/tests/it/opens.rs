//! Successful opens: the files and counts that strace names, by descriptor.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

use crate::common::{Recorder, header, proctrace, section, text, u64_of};
use serde_json::Value;

/// Opens relative to a directory, by links, for appending and for both, of directories, and of a file
/// that is removed and made again; in several processes.
const SCRIPT: &str = "\
    echo one > file; cat file file; ln -s file link; cat link; cat ./../*/link; echo two >> link; \
    (cd sub && cat ../file && ls . && exec 3<>both && echo x >&3); rm file; echo three > file; \
    cat file; perl -e 'open my $f, q(<), q(file) for 1..5'; mkdir new; echo > new/a; mv new moved; \
    cat moved/a; exit 0";

type Opens = BTreeMap<String, u64>;

fn prepared() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    fs::create_dir(place.path().join("sub")).unwrap();
    place
}

/// Opens by file. What has changed its name or is gone is named as it was when it was opened.
fn under_strace(place: &Path) -> Opens {
    let log = tempfile::NamedTempFile::new().unwrap();
    let status = Command::new("strace")
        .args(["-f", "-y", "-s", "8192", "-e", "trace=open,openat,openat2,creat", "-o"])
        .arg(log.path())
        .args(["sh", "-c", SCRIPT])
        .current_dir(place)
        .env("PATH", "/usr/bin:/bin")
        .output()
        .unwrap();
    assert!(status.status.success(), "{}", String::from_utf8_lossy(&status.stderr));
    let mut opens = Opens::new();
    for line in fs::read_to_string(log.path()).unwrap().lines() {
        assert!(!line.contains("<unfinished"), "{line}");
        // "7 openat(AT_FDCWD</tmp/x>, "file", O_RDONLY) = 3</tmp/x/file>"
        let Some((_, result)) = line.rsplit_once(") = ") else { continue };
        if let Some((_, path)) = result.split_once('<').filter(|_| !result.starts_with('-')) {
            *opens.entry(path.trim_end().trim_end_matches('>').to_owned()).or_default() += 1;
        }
    }
    opens
}

#[test]
fn strace_names_the_same_files_as_often() {
    // One place for both, emptied in between: the paths have to be equal.
    let place = prepared();
    let expected = under_strace(place.path());
    let path = place.path().to_owned();
    fs::remove_dir_all(&path).unwrap();
    fs::create_dir_all(path.join("sub")).unwrap();
    let mut recorder = Recorder::new().option(["--opens"]).env("PATH", "/usr/bin:/bin");
    recorder.command.current_dir(&path);
    let recorded = recorder.run(["sh", "-c", SCRIPT]);
    let events = recorded.sound(0);
    let mut got = Opens::new();
    for open in events.kind("opened") {
        *got.entry(text(&open["path"]).to_owned()).or_default() += 1;
    }
    assert_eq!(got, expected);
    let sum: u64 = events.kind("exit").map(|exit| u64_of(&exit["opens"])).sum();
    assert_eq!(got.values().sum::<u64>(), sum);
    assert!(header(&recorded.trace())["header"]["opens"] == true);

    let section = section(&recorded.trace(), "opens", &[]);
    let of =
        |name: &str| rows(&section, "opened_files", "path", &path.join(name).to_string_lossy());
    let file = of("file");
    assert_eq!((text(&file["mode"]), text(&file["origin"])), ("both", "job"), "{file:#}");
    assert_eq!(of("sub/both")["mode"], "both");
    let libc = section["opened_files"].as_array().unwrap().iter().find(|row| {
        text(&row["path"]).contains("/libc.so") || text(&row["path"]).contains("/libc-")
    });
    assert_eq!(libc.unwrap()["origin"], "before");
    let flow = rows(&section, "file_flows", "reader", "cat");
    assert_eq!(flow["writer"], "sh", "{flow:#}");
}

fn rows(section: &Value, table: &str, column: &str, value: &str) -> Value {
    let rows = section[table].as_array().unwrap();
    let row = rows.iter().find(|row| row[column] == value);
    row.unwrap_or_else(|| panic!("no {value} in {rows:#?}")).clone()
}

#[test]
fn opens_are_recorded_without_failed_look_ups_too() {
    let recorded =
        Recorder::new().option(["--opens", "--misses", "none"]).run(["cat", "/etc/passwd"]);
    let events = recorded.sound(0);
    assert_eq!(events.count("lookup_failed"), 0);
    let opened = events.kind("opened").filter(|open| open["path"] == "/etc/passwd").count();
    assert_eq!(opened, 1);
    let query = "SELECT opens, reads, writes FROM opened_files WHERE path = '/etc/passwd'";
    let output =
        proctrace().args(["query", "--format", "csv", query]).arg(recorded.trace()).output();
    let output = String::from_utf8(output.unwrap().stdout).unwrap();
    assert_eq!(output.lines().nth(1), Some("1,true,false"), "{output}");
}

#[test]
fn opens_that_were_not_asked_for_are_not_known() {
    let recorded = Recorder::new().run(["cat", "/etc/passwd"]);
    assert_eq!(recorded.sound(0).count("opened"), 0);
    let output =
        proctrace().args(["report", "--section", "opens"]).arg(recorded.trace()).output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("recorded without --opens"), "{said}");
}
