//! prmon's own scripts, which read what `export --format prmon` writes: in no package index, so they are
//! fetched from its repository, at one commit, and compared with what they were.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};
use xtask::run::target_dir;

/// Names the directory of the scripts, for the test that runs them.
pub(crate) const VARIABLE: &str = "PRMON_SCRIPTS";

const PLACE: &str = "https://raw.githubusercontent.com/HSF/prmon/\
    e5ed550a3ae35307862184af943305face957644/package/scripts";
const SCRIPTS: [(&str, &str); 2] = [
    ("prmon_plot.py", "574187a1cb5e3cc199d882ac832e631ce023df28398ea833c5d28c50640e8f8f"),
    (
        "prmon_compress_output.py",
        "978ed0bec5fb984d6dea420dd38fc8c846a1cdf9e360db438ca43f35dc2d88cd",
    ),
];

/// The directory of the scripts: the one that is named, or one to which they are fetched. None if they cannot be
/// reached.
pub(crate) fn scripts() -> Result<Option<PathBuf>> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(Some(named.into()));
    }
    let directory = target_dir()?.join("prmon-scripts");
    fs::create_dir_all(&directory).context("cannot create a directory")?;
    for (name, hash) in SCRIPTS {
        let file = directory.join(name);
        if !(is_right(&file, hash) || fetch(name, &file) && is_right(&file, hash)) {
            return Ok(None);
        }
    }
    Ok(Some(directory))
}

fn is_right(file: &Path, hash: &str) -> bool {
    let Ok(bytes) = fs::read(file) else { return false };
    let found: String = Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect();
    found == hash
}

fn fetch(name: &str, to: &Path) -> bool {
    let mut curl = Command::new("curl");
    curl.args(["--silent", "--fail", "--max-time", "20", "--output"]).arg(to);
    let done = curl.arg(format!("{PLACE}/{name}")).stderr(Stdio::null()).status();
    done.is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_pinned_is_run() {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("x");
        assert!(!is_right(&file, SCRIPTS[0].1));
        fs::write(&file, "abc").unwrap();
        assert!(!is_right(&file, SCRIPTS[0].1));
        // The example of FIPS 180-2.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert!(is_right(&file, abc));
    }
}
