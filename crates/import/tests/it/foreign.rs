//! Whatever programs write between the lines of strace, the import finds the same as without.

use std::sync::OnceLock;

use crate::common::{Counts, import_one, strace_of};
use proctrace_fixtures::program;
use proptest::prelude::*;

/// A log without output of programs.
struct Pure {
    lines: Vec<Vec<u8>>,
    counts: Counts,
    ended_ns: u64,
}

/// A log with each kind of time.
fn logs() -> &'static [Pure] {
    static LOGS: OnceLock<Vec<Pure>> = OnceLock::new();
    LOGS.get_or_init(|| {
        let of = |options: &[&str]| {
            let log = strace_of(options, false, &program("mixed"), &["2"]).unwrap();
            let (counts, imported) = import_one(&log);
            let lines = log.split_inclusive(|byte| *byte == b'\n').map(<[u8]>::to_vec).collect();
            Pure { lines, counts, ended_ns: imported.trailer.ended_ns }
        };
        vec![
            of(&["-f", "-q", "-t", "-s", "200"]),
            of(&["-f", "-q", "-tt", "-T", "-s", "200"]),
            of(&["-f", "-q", "-ttt", "-i", "-s", "200"]),
            of(&["-f", "-q", "-r", "-s", "200"]),
        ]
    })
}

/// Output of programs: above all lines that begin like something of strace.
fn output() -> impl Strategy<Value = String> {
    let time = prop_oneof![
        "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]",
        "[0-2][0-9]:[0-5][0-9]:[0-5][0-9]\\.[0-9]{1,9}",
        "1[0-9]{9}",
        "1[0-9]{9}\\.[0-9]{6}",
        "[0-9]{1,6}",
        " {1,6}[0-9]{1,3}\\.[0-9]{6}",
        "\\[pid +[0-9]{1,6}\\]",
        "\\[[0-9a-f]{16}\\]",
        "\\[INFO\\]",
        Just(String::new()),
    ];
    let text = prop_oneof![
        "[a-zA-Z ,.]{0,30}",
        "(elapsed|retry|main|result)\\([0-9]{1,3}\\) = [0-9]{1,3}",
        "--- [a-z]{3,9} ---",
        "\\+\\+\\+ [a-z]{3,9} \\+\\+\\+",
        "<\\.\\.\\. [a-z]{3,9}>",
        "\\[ [a-zA-Z= ]{3,20} \\]",
        "[0-9. ]{1,30}",
        "-{5,9}( -{5,9}){1,4}",
        "exited with [0-9]",
        " = [0-9]",
        "\\)",
        "[\"'{}<>=\\[\\]|%]{1,9}",
    ];
    (time, "[ \t]{0,2}", text).prop_map(|(time, between, text)| format!("{time}{between}{text}\n"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn output_between_lines_changes_nothing(
        log in 0_usize..4,
        outputs in proptest::collection::vec((any::<proptest::sample::Index>(), output()), 1..12),
    ) {
        let Pure { lines, counts, ended_ns } = &logs()[log];
        let mut noisy = lines.clone();
        for (at, text) in &outputs {
            noisy.insert(at.index(noisy.len()), text.clone().into_bytes());
        }
        let (got, imported) = import_one(&noisy.concat());
        prop_assert_eq!(&got, counts);
        prop_assert_eq!(&imported.trailer.losses, &[]);
        prop_assert!(imported.doubts.lines <= outputs.len() as u64, "{:?}", imported.doubts);
        prop_assert_eq!(imported.trailer.ended_ns, *ended_ns);
    }

    /// strace writes a call in two parts, between which the program may write; and a program may leave its line open.
    #[test]
    fn output_within_lines_changes_no_counts(
        log in 0_usize..4,
        inside in proptest::collection::vec((any::<proptest::sample::Index>(), "[a-z:,.% ]{0,20}\n"), 0..6),
        before in proptest::collection::vec((any::<proptest::sample::Index>(), "[a-z:,% ]{0,9}[a-z:,%]"), 0..6),
    ) {
        let Pure { lines, counts, .. } = &logs()[log];
        let mut noisy = lines.clone();
        let ends: Vec<(usize, usize)> = lines
            .iter()
            .enumerate()
            .filter_map(|(at, line)| {
                // What follows an interrupted call is written at once.
                let is_resumed = line.windows(9).any(|it| it == b" resumed>");
                let end = line.windows(2).position(|pair| pair == b") ")?;
                let is_whole = line[end..].windows(3).any(|it| it == b" = ");
                (is_whole && !is_resumed).then_some((at, end))
            })
            .collect();
        for (at, text) in &inside {
            let (line, end) = ends[at.index(ends.len())];
            // Each line once.
            if noisy[line] == lines[line] {
                noisy[line].splice(end..end, text.bytes());
            }
        }
        for (at, text) in &before {
            let line = at.index(noisy.len());
            if noisy[line] == lines[line] {
                noisy[line].splice(0..0, text.bytes());
            }
        }
        let (got, imported) = import_one(&noisy.concat());
        prop_assert_eq!(got.without_paths(), counts.without_paths());
        prop_assert_eq!(&imported.trailer.losses, &[]);
    }
}
