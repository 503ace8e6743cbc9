//! Sizes of files that were written, against what the file system says: by all ways to close a file, and until it is removed.

use std::collections::BTreeMap;
use std::fs;

use crate::common::steps::query;
use crate::common::{Recorder, section, text, u64_of};

/// `total` says how much there is, to a file outside.
const SCRIPT: &str = "\
    total() { find . -type f -printf '%s\\n' | awk '{ sum += $1 } END { print sum + 0 }' >> ../totals; }
    head -c 5000 /dev/zero > closed
    printf '%4321s' x > duplicated
    exec 3> inherited; printf '%99s' x >&3; (printf '%700s' x >&3); exec 3>&-
    perl -MPOSIX -e 'open F, q(>left); syswrite F, q(x) x 777; POSIX::_exit(0)'
    sh -c 'exec 4> killed; head -c 321 /dev/zero >&4; kill -9 $$' 2> /dev/null
    echo two >> closed
    mkdir sub; ln -s sub link; head -c 6000 /dev/zero > link/named; mv sub/named sub/renamed
    head -c 40000 /dev/zero > unlinked; cp unlinked unlinked_at; cp closed replaced
    total
    perl -e 'unlink q(unlinked)'; rm unlinked_at; mv left replaced
    total
    head -c 3000 /dev/zero > closed; truncate -s 10 inherited; : > duplicated
    total";

/// By ptrace nothing is known of sizes, and nothing is said of them.
#[test]
fn sizes_that_are_not_known_are_not_zero() {
    let place = tempfile::tempdir().unwrap();
    let mut recorder = Recorder::new().option(["--opens", "--backend", "ptrace"]);
    recorder.command.current_dir(place.path());
    let script = "PROCTRACE_STEP=a sh -c 'echo x > out'; PROCTRACE_STEP=b cat out";
    let recorded = recorder.run(["sh", "-c", script]);
    let files = section(&recorded.trace(), "step-files", &[]);
    assert!(files["step_disk"].is_null(), "{files:#}");
    assert_eq!(files["step_files"][0]["path"], "out", "{files:#}");
    let rows =
        query(&recorded.trace(), &[], "select size_bytes from step_files where path = 'out'");
    assert!(rows.iter().all(|row| row["size_bytes"].is_null()), "{rows:?}");
    assert_eq!(rows.len(), 2);
}

mod root {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_file_system() {
        let place = tempfile::tempdir().unwrap();
        // Resolved, as the paths of files are.
        let place = place.path().canonicalize().unwrap();
        let job = place.join("job");
        fs::create_dir(&job).unwrap();
        let mut recorder = Recorder::new().option(["--opens"]).env("PROCTRACE_STEP", "outside");
        recorder.command.current_dir(&job);
        let script = "PROCTRACE_STEP=writer sh -c \"$0\"; exit $?";
        let recorded = recorder.run(["sh", "-c", script, SCRIPT]);
        let events = recorded.sound(0);
        let totals = fs::read_to_string(place.join("totals")).unwrap();
        let totals: Vec<u64> = totals.lines().map(|line| line.parse().unwrap()).collect();
        let [peak, _, left] = totals[..] else { panic!("{totals:?}") };

        let files = section(&recorded.trace(), "step-files", &[]);
        let said = |what: &str| {
            let rows = files["step_disk"].as_array().unwrap_or_else(|| panic!("{files:#}"));
            u64_of(&rows.iter().find(|row| row["what"] == what).unwrap()["bytes"])
        };
        assert_eq!((said("as it was"), said("left at the end")), (peak, left), "{totals:?}");
        let steps = query(
            &recorded.trace(),
            &[],
            "select written_peak_bytes from steps where step = 'writer'",
        );
        assert_eq!(u64_of(&steps[0]["written_peak_bytes"]), peak);

        // Of each file, the last that is said is what stat says.
        let mut last = BTreeMap::new();
        for event in events.all() {
            match text(&event["kind"]) {
                "written" => {
                    last.insert(text(&event["path"]).to_owned(), u64_of(&event["size_bytes"]));
                }
                "moved" if event["removed"] == true => {
                    assert!(event["path"].is_null(), "{event}");
                    last.remove(&text(&event["from"]).replace("/./", "/"));
                }
                "moved" => {
                    let (from, to) = (text(&event["from"]), text(&event["path"]));
                    let size = last.remove(&from.replace("/./", "/")).unwrap();
                    last.insert(to.replace("/./", "/"), size);
                }
                _ => {}
            }
        }
        let below = job.to_str().unwrap();
        for (path, size) in last.iter().filter(|(path, _)| path.starts_with(below)) {
            assert_eq!(fs::metadata(path).unwrap().len(), *size, "{path}");
        }
        assert_eq!(last.keys().filter(|path| path.starts_with(below)).count(), 6, "{last:?}");
    }
}
