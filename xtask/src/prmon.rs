//! prmon's own scripts, which read what `export --format prmon` writes: in no package index, so they are
//! fetched from its repository, at one commit, and compared with what they were.

use std::env;
use std::path::PathBuf;

use anyhow::Result;
use xtask::run::target_dir;

use crate::fetched;

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
    Ok(fetched::all(&directory, PLACE, &SCRIPTS)?.then_some(directory))
}
