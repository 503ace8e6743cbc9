//! What kind of thing a program is: a command of the system, or a program of its own.

use std::collections::{BTreeMap, HashMap, HashSet};

use proctrace_findings::Class;
use proctrace_wire::Exec;
use serde::Deserialize;

use crate::error::AnalysisError;
use crate::names::{base, text};

/// What an exec ran.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Program {
    /// Of the system, or not.
    pub class: Class,
    /// What sort of command; empty for programs.
    pub group: String,
    /// The command, program or script.
    pub name: String,
}

impl Program {
    /// What it is counted with.
    pub fn category(&self) -> &str {
        if self.group.is_empty() { "other" } else { &self.group }
    }
}

/// How programs are told apart.
#[derive(Debug, Clone)]
pub struct Rules {
    directories: Vec<Vec<u8>>,
    interpreters: HashSet<Vec<u8>>,
    group_of: HashMap<Vec<u8>, String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleFile {
    directories: Vec<String>,
    interpreters: Vec<String>,
    groups: BTreeMap<String, Vec<String>>,
}

impl Rules {
    /// The rules for commands that every system has.
    ///
    /// # Panics
    /// Never: they are compiled in, and a test parses them.
    pub fn generic() -> Self {
        Self::parse(include_str!("../rules/generic.toml")).expect("a test parses them")
    }

    /// Rules as in `rules/generic.toml`.
    ///
    /// # Errors
    /// When they are not well-formed, with line and column.
    pub fn parse(toml: &str) -> Result<Self, AnalysisError> {
        let file: RuleFile = toml::from_str(toml)?;
        let mut group_of = HashMap::new();
        for (group, commands) in file.groups {
            for command in commands {
                group_of.insert(command.into_bytes(), group.clone());
            }
        }
        Ok(Self {
            directories: file.directories.into_iter().map(|d| (d + "/").into_bytes()).collect(),
            interpreters: file.interpreters.into_iter().map(String::into_bytes).collect(),
            group_of,
        })
    }

    /// What this exec ran.
    pub fn classify(&self, exec: &Exec<'_>) -> Program {
        // By descriptor (fexecve), the path says nothing.
        let by_descriptor = exec.path.starts_with(b"/dev/fd/") || exec.path.is_empty();
        let called = base(if by_descriptor { exec.exe } else { exec.path });
        let of_system =
            |path: &[u8]| self.directories.iter().any(|directory| path.starts_with(directory));
        if exec.interp.is_empty()
            && self.interpreters.contains(unversioned(called))
            && let Some(script) = script(exec.argv)
        {
            let name = base(script);
            return self.program(name, self.group_of.contains_key(name) && of_system(script));
        }
        // A script with #! is known by its own name and place.
        let file = if exec.interp.is_empty() { exec.exe } else { exec.path };
        self.program(called, of_system(file) || of_system(exec.path))
    }

    /// What a process is among others that run the same program, by its arguments.
    pub(crate) fn role_of_exec(&self, _program: &Program, _exec: &Exec<'_>) -> Option<String> {
        None
    }

    /// The same by the directory it works in, for processes that never called exec.
    pub(crate) fn role_of_directory(&self, _program: &Program, _path: &[u8]) -> Option<String> {
        None
    }

    /// The same by the name it gave itself.
    pub(crate) fn role_of_name(&self, _comm: &str) -> Option<String> {
        None
    }

    /// What a name alone tells, where no exec was seen.
    pub(crate) fn unknown(name: &str) -> Program {
        Program { class: Class::Program, group: String::new(), name: name.to_owned() }
    }

    fn program(&self, name: &[u8], of_system: bool) -> Program {
        let group = [name, unversioned(name), without_triplet(unversioned(name))]
            .into_iter()
            .find_map(|name| self.group_of.get(name));
        match group {
            Some(group) if of_system => {
                Program { class: Class::Command, group: group.clone(), name: text(name) }
            }
            _ => Self::unknown(&text(name)),
        }
    }
}

/// python for python3.11, gcc for gcc-12.
fn unversioned(name: &[u8]) -> &[u8] {
    let end = name
        .iter()
        .rposition(|byte| !(byte.is_ascii_digit() || matches!(byte, b'.' | b'-')))
        .map_or(0, |at| at + 1);
    if end == 0 { name } else { &name[..end] }
}

/// gcc for x86_64-linux-gnu-gcc.
fn without_triplet(name: &[u8]) -> &[u8] {
    match name.windows(5).rposition(|part| part == b"-gnu-") {
        Some(at) => &name[at + 5..],
        None => name,
    }
}

/// The script among an interpreter's arguments: the first that is no option. `-c` and `-e` bring
/// their own text, so there is none; after `-m` comes a module's name.
fn script(argv: &[u8]) -> Option<&[u8]> {
    let mut arguments = argv.split(|byte| *byte == 0).skip(1);
    while let Some(argument) = arguments.next() {
        match argument {
            b"-m" => return arguments.next().filter(|module| !module.is_empty()),
            // options with a value of their own
            b"-o" | b"+o" | b"-O" | b"+O" | b"-W" | b"-X" | b"-I" | b"--rcfile" => {
                arguments.next();
            }
            // -c, -e, or several letters in one: -ec, -xc
            [b'-', letters @ ..]
                if !letters.starts_with(b"-")
                    && letters.iter().any(|letter| matches!(letter, b'c' | b'e'))
                    && letters.iter().all(u8::is_ascii_lowercase)
                    && letters != b"e" =>
            {
                return None;
            }
            // `sh -e script` stops at errors; `perl -e text` cannot be told from it by this alone
            b"-e" => {
                let next = arguments.clone().next()?;
                if next.contains(&b' ') || next.contains(&b';') {
                    return None;
                }
            }
            [b'-' | b'+', ..] => {}
            b"" => return None,
            script => return Some(script),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_wire::layout::ExecFixed;

    fn classify(path: &str, interp: &str, exe: &str, argv: &[&str]) -> (Class, String, String) {
        let argv: Vec<u8> =
            argv.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect();
        let exec = Exec {
            fixed: zeroed(),
            path: path.as_bytes(),
            interp: interp.as_bytes(),
            exe: exe.as_bytes(),
            cwd: b"/",
            argv: &argv,
        };
        let program = Rules::generic().classify(&exec);
        (program.class, program.group, program.name)
    }

    fn zeroed() -> ExecFixed {
        let bytes = [0; size_of::<ExecFixed>()];
        let frame = proctrace_wire::layout::Head { kind: 3, size: 112, task: 0, time_ns: 0 };
        let mut whole = bytes;
        whole[..2].copy_from_slice(&frame.kind.to_le_bytes());
        whole[2..4].copy_from_slice(&frame.size.to_le_bytes());
        let frame = proctrace_wire::Frames::new(&whole).next().unwrap().unwrap();
        let proctrace_wire::Record::Exec(exec) = proctrace_wire::Record::decode(frame).unwrap()
        else {
            panic!("not an exec")
        };
        exec.fixed
    }

    fn command(group: &str, name: &str) -> (Class, String, String) {
        (Class::Command, group.into(), name.into())
    }

    fn program(name: &str) -> (Class, String, String) {
        (Class::Program, String::new(), name.into())
    }

    #[test]
    fn commands_of_the_system_have_a_group() {
        assert_eq!(classify("/bin/sed", "", "/usr/bin/sed", &["sed"]), command("text", "sed"));
        assert_eq!(classify("/bin/sh", "", "/usr/bin/dash", &["sh"]), command("shell", "sh"));
        assert_eq!(
            classify("/usr/lib/gcc/x/12/cc1", "", "/usr/lib/gcc/x/12/cc1", &["cc1"]),
            command("compiler", "cc1")
        );
        assert_eq!(
            classify("/usr/bin/gcc", "", "/usr/bin/x86_64-linux-gnu-gcc-12", &["gcc"]),
            command("compiler", "gcc")
        );
        assert_eq!(
            classify(
                "/usr/bin/x86_64-linux-gnu-gcc-12",
                "",
                "/usr/bin/x86_64-linux-gnu-gcc-12",
                &[]
            ),
            command("compiler", "x86_64-linux-gnu-gcc-12")
        );
    }

    #[test]
    fn the_same_name_elsewhere_is_a_program() {
        assert_eq!(classify("/opt/x/bin/sed", "", "/opt/x/bin/sed", &["sed"]), program("sed"));
        assert_eq!(classify("./o2-sim", "", "/opt/o2/bin/o2-sim", &["o2-sim"]), program("o2-sim"));
    }

    #[test]
    fn scripts_go_by_their_own_name() {
        assert_eq!(
            classify("./configure", "/bin/sh", "/usr/bin/dash", &["./configure", "--prefix=/x"]),
            program("configure")
        );
        assert_eq!(
            classify("/bin/bash", "", "/usr/bin/bash", &["bash", "-e", "/job/run.sh", "x"]),
            program("run.sh")
        );
        assert_eq!(
            classify(
                "/usr/bin/python3",
                "",
                "/usr/bin/python3.11",
                &["python3", "-u", "runner.py"]
            ),
            program("runner.py")
        );
        assert_eq!(
            classify("/usr/bin/python3", "", "/usr/bin/python3.11", &["python3", "-m", "pytest"]),
            program("pytest")
        );
        assert_eq!(
            classify("/usr/bin/ldd", "/bin/bash", "/usr/bin/bash", &["ldd", "x"]),
            command("info", "ldd")
        );
    }

    #[test]
    fn text_given_to_a_shell_is_the_shell() {
        for arguments in
            [vec!["sh", "-c", "sed x"], vec!["sh", "-ec", "x"], vec!["sh"], vec!["sh", "-"]]
        {
            let got = classify("/bin/sh", "", "/usr/bin/dash", &arguments);
            assert_eq!(got, command("shell", "sh"), "{arguments:?}");
        }
        assert_eq!(
            classify("/usr/bin/perl", "", "/usr/bin/perl", &["perl", "-e", "print 1;"]),
            program("perl")
        );
    }

    #[test]
    fn a_descriptor_goes_by_the_file_behind_it() {
        assert_eq!(classify("/dev/fd/5", "", "/opt/tool", &["tool"]), program("tool"));
    }

    #[test]
    fn wrong_rules_say_where() {
        let error = Rules::parse("directories = []\ninterpreters = 3\n").unwrap_err();
        let source = std::error::Error::source(&error).unwrap().to_string();
        assert!(source.contains("line 2"), "{source}");
    }
}
