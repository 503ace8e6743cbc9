//! Finds a Python for which wheels of compiled packages exist.

use std::path::PathBuf;
use std::process::{Command, Stdio};

/// Candidate interpreters: the user's own first, then the system's.
const CANDIDATES: &[&str] =
    &["python3", "/usr/bin/python3", "python3.13", "python3.12", "python3.11"];

/// Script run by each candidate: prints its real path (the one on PATH may be a wrapper script),
/// and any reason not to use it. Debian packages part of venv separately.
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

/// Answer to the question if a Python is usable.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Answer {
    /// It has a supported version and can create a venv.
    Fit(PathBuf),
    /// It has a supported version, but a system package is missing.
    NoVenv,
    /// No wheels exist for its version or machine.
    NoWheels(String),
}

/// A Python with available wheels that can create a venv; otherwise the reason.
pub fn find() -> Result<PathBuf, String> {
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
    if reasons.is_empty() {
        Err("python3 is not installed".to_owned())
    } else {
        Err(reasons.join("; "))
    }
}

/// True if installing a system package could help: there is no Python at all, or a supported one
/// without venv.
pub fn is_wanting() -> bool {
    let answers = ask_all();
    let fit = answers.iter().any(|answer| matches!(answer, Answer::Fit(_)));
    !fit && (answers.is_empty() || answers.contains(&Answer::NoVenv))
}

fn ask_all() -> Vec<Answer> {
    CANDIDATES.iter().filter_map(|candidate| ask(candidate)).collect()
}

/// The candidate's answer; None if it does not exist.
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

/// A Python command unaffected by our environment variables.
pub fn command(python: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new(python);
    // cargo adds its directories to the loader's search path; the others add foreign packages
    for variable in ["LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHOME"] {
        command.env_remove(variable);
    }
    command
}
