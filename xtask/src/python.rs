//! Finding a Python that wheels of compiled programs are there for.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Where one may be: the user's own first, then the system's.
const CANDIDATES: &[&str] =
    &["python3", "/usr/bin/python3", "python3.13", "python3.12", "python3.11"];

/// What each is asked: where it really is (the one on PATH may be a script that looks for it), and
/// what keeps it from being used. Debian has venv's half of Python in a package of its own.
const QUESTION: &str = r#"
import os, platform, sys
version = sys.version_info[:2]
try:
    libc = os.confstr("CS_GNU_LIBC_VERSION").split()[1]
except (AttributeError, IndexError, ValueError):
    libc = "0"
if not (3, 11) <= version <= (3, 13) or platform.machine() != "x86_64" or (
    [int(part) for part in libc.split(".")] < [2, 28]
):
    print("no wheels for Python %d.%d on %s" % (*version, platform.machine()), end="")
    print(" with glibc %s" % libc if libc != "0" else " without glibc")
else:
    try:
        import ensurepip, venv
        print("fit")
    except ImportError:
        print("no venv")
print(sys.executable)
"#;

/// What a Python is good for.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// It is the right version and can make a venv.
    Fit(PathBuf),
    /// It is the right version, and a package of the system is missing.
    NoVenv,
    /// Its version, or the machine, is not what the wheels are made for.
    NoWheels(String),
}

/// A Python that the wheels are there for and that can make a venv; if there is none, why.
pub(crate) fn find() -> Result<PathBuf, String> {
    let answers = ask_all();
    let mut reasons = Vec::new();
    for answer in answers {
        match answer {
            Answer::Fit(path) => return Ok(path),
            Answer::NoVenv => reasons.push("no module venv or ensurepip".to_owned()),
            Answer::NoWheels(reason) => reasons.push(reason),
        }
    }
    reasons.dedup();
    if reasons.is_empty() { Err("no python3 is here".to_owned()) } else { Err(reasons.join("; ")) }
}

/// Whether a package of the system could make a difference: there is no Python at all, or the right
/// one without venv.
pub(crate) fn is_wanting() -> bool {
    let answers = ask_all();
    let fit = answers.iter().any(|answer| matches!(answer, Answer::Fit(_)));
    !fit && (answers.is_empty() || answers.contains(&Answer::NoVenv))
}

fn ask_all() -> Vec<Answer> {
    CANDIDATES.iter().filter_map(|candidate| ask(candidate)).collect()
}

/// What this Python says of itself; nothing if it is not there.
fn ask(candidate: &str) -> Option<Answer> {
    let output = command(candidate)
        .args(["-c", QUESTION])
        .stderr(Stdio::null())
        .output()
        .ok()
        .filter(|output| output.status.success())?;
    let text = String::from_utf8(output.stdout).ok()?;
    let (answer, executable) = text.trim_end().split_once('\n')?;
    Some(match answer {
        "fit" => Answer::Fit(executable.into()),
        "no venv" => Answer::NoVenv,
        reason => Answer::NoWheels(reason.to_owned()),
    })
}

/// A Python that is not led astray by variables of ours.
pub(crate) fn command(python: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(python);
    // cargo makes the loader search its own directories; the others add packages of elsewhere
    for variable in ["LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"] {
        command.env_remove(variable);
    }
    command
}
