//! Names that a program has made up for a temporary file: which part of them is random.
//!
//! A job has another such name in every run, so that counts by name could not be compared. Only what is evidently
//! random is left out: the shape must be one that a well-known generator makes, and the characters must look drawn.
//! People write `tmp_plot.py` and `tmpfiles.d`, and those stay.

use std::borrow::Cow;
use std::ops::Range;

/// Mark that stands for random characters, as for numbers in command lines.
const MARK: &[u8] = b"#";

const OF_PYTEST: &[u8] = b"pytest-of-";

/// Suffixes of the names that make_temp_file of GCC's libiberty makes.
const OF_GCC: [&[u8]; 12] = [
    b".s",
    b".o",
    b".i",
    b".ii",
    b".c",
    b".d",
    b".ld",
    b".le",
    b".res",
    b".args",
    b".cdtor.c",
    b".ltrans.out",
];

/// Maximum length of a name that is examined: NAME_MAX of linux/limits.h.
const NAME_MAX: usize = 255;

/// The last component of a path, with `#` for its random part.
pub(crate) fn stable_name(path: &[u8]) -> Cow<'_, [u8]> {
    let start = path.iter().rposition(|byte| *byte == b'/').map_or(0, |at| at + 1);
    let (directory, name) = path.split_at(start);
    match random_part(directory, name) {
        Some(part) => Cow::Owned([&name[..part.start], MARK, &name[part.end..]].concat()),
        None => Cow::Borrowed(name),
    }
}

/// The random part of a name, whose directory ends with a slash if it is known.
pub fn random_part(directory: &[u8], name: &[u8]) -> Option<Range<usize>> {
    if name.len() > NAME_MAX {
        return None;
    }
    let parts = || directory.split(|byte| *byte == b'/').filter(|part| !part.is_empty());
    let is_temporary = parts().any(is_temporary);
    // How much the characters must look drawn: less where nothing else is expected.
    let least = if is_temporary { 1 } else { 2 };
    let fits = |part: Range<usize>, of: fn(&u8) -> bool, least: u32| {
        let drawn = name.get(part.clone())?;
        let ends = name.get(part.end).is_none_or(|byte| !of(byte));
        (ends && drawn.iter().all(of) && oddity(drawn) >= least).then_some(part)
    };
    if is_temporary && name.starts_with(OF_PYTEST) && name.len() > OF_PYTEST.len() {
        // The directory of pytest is that of a user, with numbered ones in it.
        return Some(OF_PYTEST.len()..name.len());
    }
    if name.starts_with(b"tmp") {
        // Python's tempfile, with a suffix or without. Snakemake copies scripts this way.
        let of_snakemake = directory.ends_with(b".snakemake/scripts/");
        let least = if of_snakemake { 0 } else { least };
        if let Some(part) = fits(3..11, of_tempfile, least)
            && (of_snakemake || matches!(name.get(part.end), None | Some(b'.' | b'-')))
        {
            return Some(part);
        }
    }
    if name.starts_with(b"tmp.") || name.starts_with(b".tmp") {
        // mktemp(1), with its default or with the shortest that most people give it; Rust's tempfile.
        for length in [10, 6] {
            if let Some(part) = fits(4..4 + length, u8::is_ascii_alphanumeric, least) {
                return Some(part);
            }
        }
    }
    if name.starts_with(b"cc")
        && name.get(8..).is_some_and(|suffix| OF_GCC.contains(&suffix))
        && let Some(part) = fits(2..8, u8::is_ascii_alphanumeric, least)
    {
        return Some(part);
    }
    uuid(name)
        .or_else(|| long_number(name))
        // Whole projects are built below such a directory, by programs that have names.
        .or_else(|| {
            parts().next_back().is_some_and(self::is_temporary).then(|| of_template(name))?
        })
}

/// True if a directory holds nothing but files that come and go.
fn is_temporary(directory: &[u8]) -> bool {
    matches!(directory, b"tmp" | b"temp" | b"TMP" | b"TEMP" | b".tmp" | b"shm")
}

/// The alphabet of Python's tempfile.
fn of_tempfile(byte: &u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'_'
}

/// A name of mkstemp(3) with any prefix: six characters at the end, or before an extension; ten, if that many stand
/// by themselves, as mktemp(1) makes them.
fn of_template(name: &[u8]) -> Option<Range<usize>> {
    let is_alphanumeric = |byte: &u8| byte.is_ascii_alphanumeric();
    // The extension is behind the last dot, unless that is where the random part is.
    let last_dot = name.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0);
    [Some(name.len()), last_dot].into_iter().flatten().find_map(|end| {
        let run = name[..end].iter().rev().take_while(|byte| is_alphanumeric(byte)).count();
        let start = end - run;
        [10, 6].into_iter().find_map(|length| {
            let part = end.checked_sub(length).filter(|at| *at >= start)?..end;
            let drawn = &name[part.clone()];
            // "fileaB3xQ9" has ten characters, but is a word with six behind it.
            let is_whole = run == length && (length == 6 || !is_word(&drawn[..4]));
            if length == 10 && !is_whole {
                return None;
            }
            let least = if drawn.iter().any(u8::is_ascii_digit) { 2 } else { 3 };
            (is_mixed(drawn) && oddity(drawn) >= least).then_some(part)
        })
    })
}

fn is_word(text: &[u8]) -> bool {
    text.iter().all(u8::is_ascii_alphabetic) && oddity(text) == 0
}

/// True if characters of different kinds follow each other otherwise than in aWord, in UPPER or in word12.
fn is_mixed(text: &[u8]) -> bool {
    let end = text.iter().rposition(|byte| !byte.is_ascii_digit()).map_or(0, |at| at + 1);
    let text = &text[..end];
    let has = |of: fn(&u8) -> bool| text.iter().any(of);
    let (small, capital) = (has(u8::is_ascii_lowercase), has(u8::is_ascii_uppercase));
    if has(u8::is_ascii_digit) {
        return small || capital;
    }
    let in_words = text.windows(2).all(|pair| !pair.iter().all(u8::is_ascii_uppercase))
        && !text.last().is_some_and(u8::is_ascii_uppercase);
    small && capital && !in_words
}

/// 8-4-4-4-12 hexadecimal digits, with lower or upper case.
fn uuid(name: &[u8]) -> Option<Range<usize>> {
    const LENGTH: usize = 36;
    let is_uuid = |text: &[u8]| {
        text.iter().enumerate().all(|(at, byte)| match at {
            8 | 13 | 18 | 23 => *byte == b'-',
            _ => byte.is_ascii_hexdigit(),
        })
    };
    let is_part = |at: &usize| {
        let beside = |at: Option<usize>| at.and_then(|at| name.get(at));
        let is_hex = |byte: Option<&u8>| byte.is_some_and(u8::is_ascii_hexdigit);
        is_uuid(&name[*at..*at + LENGTH])
            && !is_hex(beside(at.checked_sub(1)))
            && !is_hex(beside(Some(at + LENGTH)))
    };
    let last = name.len().checked_sub(LENGTH)?;
    (0..=last).find(is_part).map(|at| at..at + LENGTH)
}

/// A number that is too long to be one that somebody gave: Java's createTempFile draws 64 bits.
fn long_number(name: &[u8]) -> Option<Range<usize>> {
    const DIGITS_MIN: usize = 17;
    let mut at = 0;
    while at < name.len() {
        let run = name[at..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        if run >= DIGITS_MIN {
            return Some(at..at + run);
        }
        at += run.max(1);
    }
    None
}

/// Number of times that characters follow each other as they seldom do in words and abbreviations: a letter behind
/// a digit, a capital behind a small letter, two letters that are rarely neighbours.
fn oddity(text: &[u8]) -> u32 {
    text.windows(2).map(|pair| u32::from(is_odd(pair[0], pair[1]))).sum()
}

fn is_odd(first: u8, second: u8) -> bool {
    if !second.is_ascii_alphabetic() {
        return false;
    }
    if first.is_ascii_digit() || (first.is_ascii_lowercase() && second.is_ascii_uppercase()) {
        return true;
    }
    let letter = first.to_ascii_lowercase();
    letter
        .checked_sub(b'a')
        .and_then(|at| FOLLOWERS.get(usize::from(at)))
        .is_some_and(|followers| !followers.contains(&second.to_ascii_lowercase()))
}

/// The letters that often follow a, b, c and so on: 97 % of the pairs in the names of files of a Linux system.
const FOLLOWERS: [&[u8]; 26] = [
    b"bcdfgiklmnprstuvy",
    b"aeijlmorsuw",
    b"acehiklmoprstuy",
    b"abdegiloprsu",
    b"abcdefglmnpqrstuvwxy",
    b"aefilorsu",
    b"acegilnorstu",
    b"aeiortu",
    b"abcdefglmnoprstvxz",
    b"aeos",
    b"aeisu",
    b"adeilopstuv",
    b"abcdeilmopsu",
    b"acdefgiklnopstuv",
    b"abcdfgiklmnoprstuvwy",
    b"acdehilnoprstuy",
    b"lu",
    b"acdefgiklmnoprstuvy",
    b"acdehiklmnopqstuvy",
    b"acdefhilmoprstuwxy",
    b"abcdegilmnprstx",
    b"aegimp",
    b"aeiors",
    b"empt",
    b"acmnpst",
    b"e",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn name_of(path: &str) -> String {
        String::from_utf8(stable_name(path.as_bytes()).into_owned()).unwrap()
    }

    #[test]
    fn what_generators_made_up_is_left_out() {
        for (path, name) in [
            ("/job/.snakemake/scripts/tmp7r8eesgm.plot.py", "tmp#.plot.py"),
            // Also where the characters happen to read like a word.
            (".snakemake/scripts/tmpanalysis.fit.R", "tmp#.fit.R"),
            ("/tmp/tmpk3v_9q2x", "tmp#"),
            ("/scratch/7/tmpqz0x_w1k.sh", "tmp#.sh"),
            ("/tmp/tmp.aB3xQ9zzT1", "tmp.#"),
            ("tmp.Ww4kPq", "tmp.#"),
            ("/tmp/.tmpVx8KqR", ".tmp#"),
            ("/tmp/fileaB3xQ9", "file#"),
            ("/tmp/job-K2xvQ8.sh", "job-#.sh"),
            ("/tmp/aB3xQ9zzT1", "#"),
            ("/tmp/ccHq7bXz.s", "cc#.s"),
            ("/var/tmp/ccQx81Zf.ltrans.out", "cc#.ltrans.out"),
            ("/tmp/pytest-of-alice", "pytest-of-#"),
            ("/x/step-3f2504e0-4f89-41d3-9a0c-0305e82c3301.sh", "step-#.sh"),
            ("/t/surefirebooter12345678901234567890.jar", "surefirebooter#.jar"),
        ] {
            assert_eq!(name_of(path), name, "{path}");
        }
    }

    #[test]
    fn what_people_named_stays() {
        for path in [
            "tmp_plot.py",
            "/tmp/tmp_plot.py",
            "/home/me/tmpfiles.d",
            "systemd-tmpfiles",
            "/tmp/tmp_scripts",
            "/tmp/tmp_job1.sh",
            "tmp_plot_12.py",
            "/home/me/tmpanalysis.py",
            "tmpreaper",
            "tmp.statistics.py",
            "/tmp/filesystem",
            "/tmp/MyAnalysis",
            "/tmp/runJob.sh",
            "/tmp/MyTool",
            "/tmp/XrView",
            "/tmp/build/bin/testH5Read",
            "/tmp/build/libQt5Core",
            "/tmp/OBJCXX",
            "/tmp/msgfmt",
            "/tmp/libxcb",
            "/tmp/step12",
            "/tmp/job-000123.sh",
            "/tmp/run_20240131.sh",
            "ccache.o",
            "cccommon.s",
            "/usr/bin/x86_64-linux-gnu-gcc-12",
            "cc1plus",
            "/opt/fileaB3xQ9",
            "pytest-of-things",
            "job_20240131120000.sh",
            "",
            "/",
        ] {
            let base = path.rsplit('/').next().unwrap();
            assert_eq!(name_of(path), base, "{path}");
        }
    }

    /// Not one in a hundred of the names that Python draws in a temporary directory escapes, and few do elsewhere.
    #[test]
    fn nearly_all_drawn_names_are_known() {
        const LETTERS: &[u8] = b"abcdefghijklmnopqrstuvwxyz0123456789_";
        let mut state = 1_u64;
        let mut draw = || {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            char::from(LETTERS[(state >> 33) as usize % LETTERS.len()])
        };
        let (mut of_tmp, mut elsewhere) = (0, 0);
        for _ in 0..10_000 {
            let drawn: String = (0..8).map(|_| draw()).collect();
            of_tmp += u32::from(name_of(&format!("/tmp/tmp{drawn}.x.py")) == "tmp#.x.py");
            elsewhere += u32::from(name_of(&format!("/data/tmp{drawn}.x.py")) == "tmp#.x.py");
        }
        assert!(of_tmp > 9_900 && elsewhere > 9_000, "{of_tmp} {elsewhere}");
    }

    proptest! {
        /// Whatever was drawn, scripts of one name are one program.
        #[test]
        fn copies_by_snakemake_have_one_name(drawn in "[a-z0-9_]{8}", name in "[a-zA-Z_]{1,9}[.](py|R|jl)") {
            let path = format!("/w/.snakemake/scripts/tmp{drawn}.{name}");
            prop_assert_eq!(name_of(&path), format!("tmp#.{name}"));
        }

        /// One part of a name is left out, and nothing else is changed.
        #[test]
        fn what_is_not_random_is_kept(directory in "(/tmp/|/home/me/|)", name in "(tmp|cc|file|tmp[.])?[a-zA-Z0-9_.-]{0,14}") {
            let path = format!("{directory}{name}");
            let once = name_of(&path);
            if let Some((before, after)) = once.split_once('#') {
                prop_assert!(name.starts_with(before) && name.ends_with(after));
                prop_assert!(name.len() >= before.len() + after.len() + 6);
            } else {
                prop_assert_eq!(once, name);
            }
        }

        #[test]
        fn any_bytes_have_a_name(path: Vec<u8>) {
            let name = stable_name(&path);
            prop_assert!(name.len() <= path.len() + 1);
        }

        /// Words of small letters with numbers behind them are names that people give, wherever they are.
        #[test]
        fn numbered_words_stay(directory in "(/tmp/|)", words in "(plot|fit|run|test|job|data|step)(_(plot|fit|run|old|new)){0,2}_?[0-9]{0,4}", end in "([.](py|sh|s|o))?") {
            for prefix in ["", "tmp_", "cc_"] {
                let name = format!("{prefix}{words}{end}");
                prop_assert_eq!(name_of(&format!("{directory}{name}")), name);
            }
        }
    }
}
