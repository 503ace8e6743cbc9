//! Redaction: names that could tell a user or an experiment become keyed hashes.
//!
//! A word leaves the node in clear only if it is in a list of [`names`]. Nothing is recognized by its
//! looks: what is in no list is hashed, whatever it is. docs/privacy.md says what that hides and what not.

mod advice;
pub(crate) mod names;

use crate::user::mac;

pub(crate) use self::advice::sentence;

/// First character of a hash, so that nobody takes it for a name.
pub(crate) const MARK: char = '#';
/// Hexadecimal digits of a hash, 48 bits: of a million different names, two have the same hash with a
/// probability of 0.2 %, of 100,000 with one of 0.002 %.
pub(crate) const DIGITS: usize = 12;
/// Hexadecimal digits of a job's identifier, as many as without redaction.
const JOB_DIGITS: usize = 16;
/// Unit to which the start of a job is rounded down.
const HOUR_NS: u64 = 3_600_000_000_000;
/// Characters of a redacted command line.
const COMMAND_CHARS_MAX: usize = 120;

/// Treatment of names: hashes under a key of the site, or as they are.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Redaction<'a> {
    key: Option<&'a [u8]>,
}

impl<'a> Redaction<'a> {
    pub(crate) fn by(key: &'a [u8]) -> Self {
        Self { key: Some(key) }
    }

    pub(crate) fn none() -> Self {
        Self { key: None }
    }

    pub(crate) fn is_on(self) -> bool {
        self.key.is_some()
    }

    /// The identifier of a job. It is a hash already, but one without a key: who guesses the command and
    /// the host could test that.
    pub(crate) fn job(self, job: String) -> String {
        match self.key {
            Some(key) => digits(key, "job", &job, JOB_DIGITS),
            None => job,
        }
    }

    /// Start rounded to the hour: the exact start finds a job in the lists of its batch system.
    pub(crate) fn start_ns(self, unix_ns: u64) -> u64 {
        if self.is_on() { unix_ns - unix_ns % HOUR_NS } else { unix_ns }
    }

    /// A text of which nothing is kept.
    pub(crate) fn text(self, text: String) -> String {
        match self.key {
            Some(key) => hash(key, "text", &text),
            None => text,
        }
    }

    /// A path, one component after the other: each is hashed with all before it, so that what a
    /// directory becomes is what the paths below it begin with, and equal names in different
    /// directories differ.
    pub(crate) fn path(self, path: &str) -> String {
        let Some(key) = self.key else { return path.to_owned() };
        let mut out = String::new();
        let mut so_far = String::new();
        if path.starts_with('/') {
            out.push('/');
            so_far.push('/');
        }
        // Only the system's own directories, from the root on, have names that are kept.
        let mut depth = path.starts_with('/').then_some(0);
        for component in path.split('/').filter(|component| !component.is_empty()) {
            if !out.is_empty() && !out.ends_with('/') {
                out.push('/');
                so_far.push('/');
            }
            so_far.push_str(component);
            if component == "." || component == ".." {
                out.push_str(component);
                depth = None;
            } else if depth.is_some_and(|depth| names::is_kept(component, depth)) {
                out.push_str(component);
                let goes_on = depth != Some(0) || names::SYSTEM_ROOTS.contains(&component);
                depth = depth.filter(|_| goes_on).map(|depth| depth + 1);
            } else {
                out.push_str(&hash(key, "path", &so_far));
                depth = None;
            }
        }
        out
    }

    /// The name of a program, and what tells it from others of the same name: "sed (text)".
    pub(crate) fn program(self, label: &str) -> String {
        let Some(key) = self.key else { return label.to_owned() };
        if label.contains('/') {
            return self.path(label);
        }
        let name = |name: &str| {
            let kept = names::PROGRAMS.binary_search(&name).is_ok();
            if kept { name.to_owned() } else { hash(key, "program", name) }
        };
        match label.strip_suffix(')').and_then(|label| label.split_once(" (")) {
            Some((first, more)) => format!("{} ({})", name(first), hash(key, "program", more)),
            None => name(label),
        }
    }

    /// A command line: the program, and each argument by itself. What does not fit is one hash, so that
    /// command lines that differ remain different.
    pub(crate) fn command(self, argv: &[String]) -> String {
        let Some(key) = self.key else { return argv.join(" ") };
        let mut out = String::new();
        for (at, argument) in argv.iter().enumerate() {
            let word = match at {
                0 => self.program(argument),
                _ if argument.starts_with('/') => self.path(argument),
                _ => hash(key, "argument", argument),
            };
            let rest = DIGITS + 3;
            if at > 0 {
                out.push(' ');
            }
            if out.chars().count() + word.chars().count() + rest > COMMAND_CHARS_MAX {
                out.push_str(&hash(key, "arguments", &argv[at..].join("\0")));
                break;
            }
            out.push_str(&word);
        }
        out
    }
}

fn hash(key: &[u8], kind: &str, text: &str) -> String {
    format!("{MARK}{}", digits(key, kind, text, DIGITS))
}

/// Digits of the hash of a text; another kind gives another hash of the same text. A user's name is
/// hashed by itself, and has no NUL.
fn digits(key: &[u8], kind: &str, text: &str, digits: usize) -> String {
    let mac = mac(key, &[kind.as_bytes(), b"\0", text.as_bytes()].concat());
    mac.iter().take(digits / 2).map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const KEY: &[u8] = b"a key of sixteen";

    fn path(path: &str) -> String {
        Redaction::by(KEY).path(path)
    }

    #[test]
    fn names_of_the_system_stay_and_others_go() {
        for kept in ["/usr/bin/sed", "/usr/lib/x86_64-linux-gnu", "/lib64", "/home", "/", "", ".."]
        {
            assert_eq!(path(kept), kept);
        }
        for (gone, begins, hashes) in [
            ("/home/ann/lib", "/home/#", 2),
            ("/usr/lib/secret", "/usr/lib/#", 1),
            ("/cvmfs/alice.cern.ch/bin/sed", "/cvmfs/#", 3),
            // A name of the system where it is not the system's.
            ("/tmp/usr/lib", "/tmp/#", 2),
            ("/usr/../home", "/usr/../#", 1),
            ("lib", "#", 1),
            ("./run.sh", "./#", 1),
        ] {
            let found = path(gone);
            assert!(found.starts_with(begins), "{gone}: {found}");
            assert_eq!(found.matches(MARK).count(), hashes, "{gone}: {found}");
        }
    }

    #[test]
    fn a_directory_is_what_paths_below_it_begin_with() {
        let (directory, below) = (path("/home/ann/work"), path("/home/ann/work/run7"));
        assert_eq!(below.rsplit_once('/').unwrap().0, directory);
        // Equal names elsewhere are other names.
        let last = |text: &str| path(text).rsplit_once('/').unwrap().1.to_owned();
        assert_ne!(last("/home/ann/lib"), last("/home/bob/lib"));
        assert_eq!(path("/home//ann/"), path("/home/ann"));
        assert_ne!(path("/home/ann"), Redaction::by(b"another key here").path("/home/ann"));
    }

    #[test]
    fn programs_are_those_of_the_list_or_hashes() {
        let program = |label: &str| Redaction::by(KEY).program(label);
        assert_eq!(program("sed"), "sed");
        assert!(program("sed (ann's)").starts_with("sed (#"));
        assert!(program("ann.py (other, program)").starts_with(MARK));
        assert_eq!(program("/bin/sh"), "/bin/sh");
        assert_eq!(Redaction::none().program("ann.py"), "ann.py");
    }

    #[test]
    fn long_command_lines_differ_where_they_are_cut() {
        let command = |last: &str| {
            let words = (0..50).map(|at| format!("--option={at}")).chain([last.to_owned()]);
            Redaction::by(KEY)
                .command(&["sh".to_owned()].into_iter().chain(words).collect::<Vec<_>>())
        };
        let (one, other) = (command("ann"), command("bob"));
        assert!(one.starts_with("sh #") && one.chars().count() <= COMMAND_CHARS_MAX, "{one}");
        assert_ne!(one, other);
        assert_eq!(one.rsplit_once(' ').unwrap().0, other.rsplit_once(' ').unwrap().0);
    }

    #[test]
    fn starts_are_to_the_hour() {
        assert_eq!(Redaction::by(KEY).start_ns(HOUR_NS * 7 + 5), HOUR_NS * 7);
        assert_eq!(Redaction::none().start_ns(HOUR_NS * 7 + 5), HOUR_NS * 7 + 5);
    }

    proptest! {
        /// Whatever a name is: what is in no list is not in the result.
        #[test]
        fn no_secret_survives(before in "[a-z./ ()#]{0,20}", after in "[a-z./ ()#]{0,20}") {
            let text = format!("{before}SECRET{after}");
            let redaction = Redaction::by(KEY);
            let command = redaction.command(&[text.clone(), text.clone()]);
            for found in [redaction.path(&text), redaction.program(&text), command] {
                prop_assert!(!found.contains("SECRET"), "{text}: {found}");
            }
            prop_assert!(redaction.command(&vec![text; 9]).chars().count() <= COMMAND_CHARS_MAX);
        }
    }
}
