//! Files of others that cargo, pip and npm do not install: fetched once, at one version, and compared with what they
//! were.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use xtask::digest;

/// Longest time to fetch a file, in seconds.
const LONGEST_S: &str = "60";

/// A file: its address below that of all, and its SHA-256.
pub(crate) type Pinned<'a> = (&'a str, &'a str);

/// Fetches into `directory` what it lacks, under the last part of each address. False if a file cannot be reached.
///
/// # Errors
/// If a file is not what it was.
pub(crate) fn all(directory: &Path, address: &str, files: &[Pinned<'_>]) -> Result<bool> {
    fs::create_dir_all(directory).context("cannot create a directory")?;
    let place = |path: &str| directory.join(path.rsplit('/').next().unwrap_or(path));
    let is_right = |&(path, hash): &Pinned<'_>| is_right(&place(path), hash);
    let lacking: Vec<&Pinned<'_>> = files.iter().filter(|file| !is_right(file)).collect();
    if lacking.is_empty() {
        return Ok(true);
    }
    let mut curl = Command::new("curl");
    // Where an address does not answer, the others need not be waited for.
    curl.args(["--silent", "--fail", "--fail-early", "--connect-timeout", "10"]);
    curl.args(["--max-time", LONGEST_S]);
    for (path, _) in &lacking {
        curl.arg("--output").arg(place(path)).arg(format!("{address}/{path}"));
    }
    let done = curl.stderr(Stdio::null()).status();
    if !done.is_ok_and(|status| status.success()) {
        return Ok(false);
    }
    if let Some((path, _)) = lacking.into_iter().find(|file| !is_right(file)) {
        bail!("{address}/{path} is not what it was: its SHA-256 differs");
    }
    Ok(true)
}

fn is_right(file: &Path, hash: &str) -> bool {
    digest::of_file(file).is_ok_and(|found| found == hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_pinned_is_used() {
        let directory = tempfile::tempdir().unwrap();
        let served = directory.path().join("served");
        fs::create_dir(&served).unwrap();
        fs::write(served.join("x"), "abc").unwrap();
        let address = format!("file://{}", served.display());
        // The example of FIPS 180-2.
        let abc = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        let to = directory.path().join("to");
        assert!(all(&to, &address, &[("x", abc)]).unwrap());
        assert!(all(&to, &address, &[("x", &abc.replace('b', "c"))]).is_err());
        assert!(!all(&to, &address, &[("x", abc), ("y", abc)]).unwrap());
        // What is there is not fetched again.
        fs::remove_dir_all(&served).unwrap();
        fs::write(to.join("x"), "abc").unwrap();
        assert!(all(&to, &address, &[("x", abc)]).unwrap());
    }
}
