//! Nextflow, for the test that records it: from Maven Central, which has its parts.

use std::env;
use std::path::PathBuf;

use anyhow::Result;
use xtask::run::target_dir;

use crate::fetched::{self, Pinned};

/// Names the directory of its archives, for the test that runs it.
pub(crate) const VARIABLE: &str = "NEXTFLOW_JARS";

const ADDRESS: &str = "https://repo1.maven.org/maven2";
/// Version 23.10.1 and all that it needs, as `mvn dependency:copy-dependencies` lists it: address and SHA-256.
const ARCHIVES: &str = include_str!("nextflow.txt");

/// The directory of the archives: the one that is named, or one to which they are fetched. None if they cannot be reached.
pub(crate) fn archives() -> Result<Option<PathBuf>> {
    if let Some(named) = env::var_os(VARIABLE) {
        return Ok(Some(named.into()));
    }
    let directory = target_dir()?.join("nextflow-23.10.1");
    Ok(fetched::all(&directory, ADDRESS, &pinned())?.then_some(directory))
}

fn pinned() -> Vec<Pinned<'static>> {
    ARCHIVES.lines().filter_map(|line| line.split_once(' ')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_archive_has_a_version_and_a_digest() {
        let archives = pinned();
        assert_eq!(archives.len(), ARCHIVES.lines().count());
        for (path, digest) in archives {
            let parts: Vec<&str> = path.rsplit('/').collect();
            assert_eq!(parts[0], format!("{}-{}.jar", parts[2], parts[1]));
            assert!(digest.len() == 64 && digest.bytes().all(|byte| byte.is_ascii_hexdigit()));
        }
    }
}
