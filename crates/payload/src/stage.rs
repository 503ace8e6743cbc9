//! Stages a plan in a directory: programs, libraries and nodes, so that its first process can
//! start.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::plan::{Libraries, Plan};
use crate::step::{Program, WORK};

/// The program executed by all processes that are not programs of the machine.
const ACTOR: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/actor"));

/// An empty library.
const LIBRARY: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/library.so"));

/// A staged plan: what to execute, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Staged {
    /// The file.
    pub path: PathBuf,
    /// argv\[0\].
    pub name: String,
    /// The other arguments.
    pub arguments: Vec<String>,
    /// The whole environment.
    pub environment: Vec<(String, OsString)>,
    /// The working directory.
    pub directory: PathBuf,
}

impl Staged {
    /// Puts these directories before those in which libraries are searched, if there are any.
    pub fn search_first(&mut self, directories: &OsStr) {
        let name = "LD_LIBRARY_PATH";
        if let Some((_, own)) = self.environment.iter_mut().find(|(known, _)| known == name)
            && !directories.is_empty()
        {
            let mut list = directories.to_owned();
            list.push(":");
            list.push(&*own);
            *own = list;
        }
    }
}

/// Errors of staging a plan.
#[derive(Debug, thiserror::Error)]
pub enum StageError {
    /// A file could not be created.
    #[error("cannot create {path}")]
    Make {
        /// Path of the file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// A shell would not parse the path as a single word.
    #[error(
        "the path of the work directory, {0}, may contain only letters, digits, /, _, -, + and dots"
    )]
    Path(PathBuf),
    /// A program of the machine is missing.
    #[error("{0} is not in PATH: this scenario needs bash, procps, grep, sed, awk and coreutils")]
    Missing(String),
}

/// Stages a plan in `work`, an existing empty directory. Programs of the machine are searched for
/// in `search`, the value of PATH.
///
/// # Errors
/// When a file cannot be created, or a program of the machine is missing.
pub fn stage(plan: &Plan, work: &Path, search: &OsStr) -> Result<Staged, StageError> {
    let refused = || StageError::Path(work.to_owned());
    let text = work.to_str().ok_or_else(refused)?;
    let plain = |c: char| c.is_ascii_alphanumeric() || "/_-.+".contains(c);
    if !text.starts_with('/') || !text.chars().all(plain) {
        return Err(refused());
    }
    let mut paths = BTreeMap::new();
    write(&work.join("actor"), ACTOR)?;
    let mode = fs::Permissions::from_mode(0o755);
    fs::set_permissions(work.join("actor"), mode).map_err(|source| failed(work, source))?;
    for program in plan.programs() {
        let path = match program {
            Program::Own(name) => {
                let path = work.join("bin").join(name);
                copy(&work.join("actor"), &path)?;
                path
            }
            Program::System(name) => find(name, search)?,
        };
        paths.insert(program.clone(), path.to_string_lossy().into_owned());
    }
    let path_of = |program: &Program| paths.get(program).cloned().unwrap_or_default();

    let mut environment: Vec<(String, OsString)> = plan
        .environment
        .iter()
        .map(|(name, value)| (name.clone(), OsString::from(value.replace(WORK, text))))
        .collect();
    for directory in plan.directories.iter().map(String::as_str).chain(["bin", "plan", "run"]) {
        make(&work.join(directory))?;
    }
    for (path, content) in &plan.files {
        write(&work.join(path), content.as_bytes())?;
    }
    if let Some(libraries) = &plan.libraries {
        let search = lay_out(libraries, work)?;
        environment.push(("LD_LIBRARY_PATH".into(), search.into()));
    }
    for (id, script) in plan.scripts(&path_of).enumerate() {
        write(&work.join(format!("plan/{id}")), script.replace(WORK, text).as_bytes())?;
    }
    let mut path = work.join("bin").into_os_string();
    path.push(":");
    path.push(search);
    environment.push(("PATH".into(), path));
    // Messages in one language, without look-ups of message catalogues.
    environment.push(("LC_ALL".into(), "C".into()));
    environment.push(("HOME".into(), work.into()));
    if let Some(node) = plan.root.node {
        environment.push(("PAYLOAD_NODE".into(), work.join(format!("plan/{}", node.0)).into()));
    }
    Ok(Staged {
        path: path_of(&plan.root.program).into(),
        name: plan.root.program.name().to_owned(),
        arguments: plan.root.arguments.clone(),
        environment,
        directory: work.join("run"),
    })
}

/// Creates the libraries and returns LD_LIBRARY_PATH.
fn lay_out(libraries: &Libraries, work: &Path) -> Result<String, StageError> {
    for directory in libraries.search.iter().chain([&libraries.directory]) {
        make(&work.join(directory))?;
    }
    for name in &libraries.names {
        let file = work.join(&libraries.directory).join(name);
        // Separate files: the loader treats hard links as the same library.
        write(&file, LIBRARY)?;
        if let Some(links) = &libraries.links {
            let link = work.join(links).join(name);
            symlink(&file, &link).map_err(|source| failed(&link, source))?;
        }
    }
    let search: Vec<String> = libraries
        .search
        .iter()
        .map(|directory| work.join(directory).to_string_lossy().into_owned())
        .collect();
    Ok(search.join(":"))
}

fn find(name: &str, search: &OsStr) -> Result<PathBuf, StageError> {
    std::env::split_paths(search)
        .map(|directory| directory.join(name))
        .find(|path| {
            path.is_absolute()
                && path
                    .metadata()
                    .is_ok_and(|about| about.is_file() && about.permissions().mode() & 0o111 != 0)
        })
        .ok_or_else(|| StageError::Missing(name.to_owned()))
}

/// Gives the same program another name.
fn copy(from: &Path, to: &Path) -> Result<(), StageError> {
    if let Some(above) = to.parent() {
        make(above)?;
    }
    // If hard links are not allowed, a copy serves as well.
    fs::hard_link(from, to)
        .or_else(|_| fs::copy(from, to).map(|_| ()))
        .map_err(|source| failed(to, source))
}

fn make(directory: &Path) -> Result<(), StageError> {
    fs::create_dir_all(directory).map_err(|source| failed(directory, source))
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), StageError> {
    if let Some(above) = path.parent() {
        make(above)?;
    }
    fs::write(path, bytes).map_err(|source| failed(path, source))
}

fn failed(path: &Path, source: io::Error) -> StageError {
    StageError::Make { path: path.to_owned(), source }
}
