//! The command to run: resolved, and converted to C strings.

use std::ffi::{CString, OsStr, OsString};
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use nix::unistd::{Gid, Pid, Uid};
use proctrace_wire::Outcome;

use crate::cgroup::OwnCgroup;

/// The program to execute, with its arguments, environment and identity.
#[derive(Debug, Clone)]
pub struct Command {
    pub(crate) program: CString,
    pub(crate) arguments: Vec<CString>,
    pub(crate) environment: Vec<CString>,
    pub(crate) identity: Option<Identity>,
    pub(crate) cgroup: Option<Arc<OwnCgroup>>,
    pub(crate) fate: Fate,
}

/// What has become of a command: known although its recording has failed. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Fate(Arc<Mutex<Stage>>);

/// How far a command has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    /// It has not been executed.
    #[default]
    NotStarted,
    /// It has been executed, in this child of the recorder, which has not been waited for.
    Started(Pid),
    /// It has ended, and has been waited for.
    Ended(Outcome),
}

impl Fate {
    /// How far the command has come.
    pub fn stage(&self) -> Stage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn set(&self, stage: Stage) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = stage;
    }
}

/// The identity that a command runs as.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// User.
    pub uid: Uid,
    /// Primary group.
    pub gid: Gid,
    /// Supplementary groups.
    pub groups: Vec<Gid>,
}

impl Command {
    /// `program` is the file itself: see [`find_program`]. `arguments` start with argv\[0\]. A NUL
    /// byte ends an argument or variable, as in C.
    pub fn new<A, V>(
        program: impl AsRef<Path>,
        arguments: impl IntoIterator<Item = A>,
        environment: impl IntoIterator<Item = (V, V)>,
    ) -> Self
    where
        A: Into<OsString>,
        V: AsRef<OsStr>,
    {
        Self {
            program: c_string(program.as_ref().as_os_str().as_bytes().to_vec()),
            arguments: arguments.into_iter().map(|a| c_string(a.into().into_vec())).collect(),
            environment: environment
                .into_iter()
                .map(|(name, value)| {
                    c_string([name.as_ref().as_bytes(), b"=", value.as_ref().as_bytes()].concat())
                })
                .collect(),
            identity: None,
            cgroup: None,
            fate: Fate::default(),
        }
    }

    /// Tells what becomes of it there.
    #[must_use]
    pub fn telling(mut self, fate: Fate) -> Self {
        self.fate = fate;
        self
    }

    /// Runs it with another identity, which only root can do.
    #[must_use]
    pub fn run_as(mut self, identity: Identity) -> Self {
        self.identity = Some(identity);
        self
    }

    /// Runs it in this cgroup.
    #[must_use]
    pub fn run_in(mut self, cgroup: Arc<OwnCgroup>) -> Self {
        self.cgroup = Some(cgroup);
        self
    }
}

impl Command {
    /// Its environment with options added to the values of variables, after a colon.
    pub(crate) fn environment_with(&self, options: &[(&str, &str)]) -> Vec<CString> {
        let mut environment = self.environment.clone();
        for (name, option) in options {
            let begin = format!("{name}=");
            let mut found = environment.iter_mut();
            match found.find(|variable| variable.as_bytes().starts_with(begin.as_bytes())) {
                Some(variable) => {
                    // Of an option that is given twice, the last counts.
                    let more = [variable.as_bytes(), b":", option.as_bytes()].concat();
                    *variable = c_string(more);
                }
                None => environment.push(c_string([begin.as_bytes(), option.as_bytes()].concat())),
            }
        }
        environment
    }
}

fn c_string(mut bytes: Vec<u8>) -> CString {
    if let Some(nul) = bytes.iter().position(|byte| *byte == 0) {
        bytes.truncate(nul);
    }
    CString::new(bytes).expect("there is no NUL left")
}

/// Errors of resolving a command.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// No such file, neither directly nor on the search path.
    #[error("{name}: command not found")]
    NotFound {
        /// The requested name.
        name: String,
    },
    /// The file exists, but cannot be executed.
    #[error("{path}: {source}")]
    NotExecutable {
        /// Path of the file.
        path: String,
        /// The kernel's error.
        #[source]
        source: io::Error,
    },
}

/// Finds what a shell would execute for `name`: the path itself if it contains a slash, else the
/// first executable on `search_path`. The recorder searches before the recording begins, so that
/// these failed look-ups are not in it.
///
/// # Errors
/// When there is none, or only files that cannot be executed.
pub fn find_program(name: &OsStr, search_path: Option<&OsStr>) -> Result<PathBuf, ResolveError> {
    let not_found = || ResolveError::NotFound { name: name.to_string_lossy().into_owned() };
    if name.is_empty() {
        return Err(not_found());
    }
    if name.as_bytes().contains(&b'/') {
        return match executable(Path::new(name)) {
            Ok(()) => Ok(name.into()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Err(not_found()),
            Err(source) => Err(ResolveError::NotExecutable {
                path: name.to_string_lossy().into_owned(),
                source,
            }),
        };
    }
    let mut refused = None;
    // confstr(_CS_PATH), the default of execvp(3) if PATH is not set
    let search_path = search_path.unwrap_or(OsStr::new("/bin:/usr/bin"));
    for directory in search_path.as_bytes().split(|byte| *byte == b':') {
        // an empty entry denotes the working directory
        let directory = if directory.is_empty() { b"." } else { directory };
        let candidate = Path::new(OsStr::from_bytes(directory)).join(name);
        match executable(&candidate) {
            Ok(()) => return Ok(candidate),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                refused.get_or_insert((candidate, error));
            }
            Err(_) => {}
        }
    }
    Err(refused.map_or_else(not_found, |(path, source)| ResolveError::NotExecutable {
        path: path.display().to_string(),
        source,
    }))
}

fn executable(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path)?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    // For root, access(2) succeeds for anything with an x bit, as does execve.
    rustix::fs::access(path, rustix::fs::Access::EXEC_OK)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn finds_what_a_shell_would() {
        let dir = tempfile::tempdir().unwrap();
        let (empty, first, second) =
            (dir.path().join("empty"), dir.path().join("first"), dir.path().join("second"));
        for directory in [&empty, &first, &second] {
            std::fs::create_dir(directory).unwrap();
        }
        let make = |path: PathBuf, mode| {
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            path
        };
        let plain = make(first.join("tool"), 0o644);
        let tool = make(second.join("tool"), 0o755);
        let search = |dirs: &[&PathBuf]| std::env::join_paths(dirs).unwrap();

        let name = OsStr::new("tool");
        assert_eq!(find_program(name, Some(&search(&[&empty, &first, &second]))).unwrap(), tool);
        assert_eq!(find_program(tool.as_os_str(), None).unwrap(), tool);
        let refused = find_program(name, Some(&search(&[&empty, &first]))).unwrap_err();
        assert!(matches!(refused, ResolveError::NotExecutable { .. }), "{refused}");
        let refused = find_program(plain.as_os_str(), None).unwrap_err();
        assert_eq!(
            refused.to_string(),
            format!("{}: Permission denied (os error 13)", plain.display())
        );
        let directory = find_program(first.as_os_str(), None).unwrap_err();
        assert!(matches!(directory, ResolveError::NotExecutable { .. }), "{directory}");
        let missing = find_program(name, Some(&search(&[&empty]))).unwrap_err();
        assert_eq!(missing.to_string(), "tool: command not found");
        assert!(find_program(OsStr::new(""), None).is_err());
    }

    #[test]
    fn a_nul_ends_an_argument() {
        let command = Command::new("/bin/x", ["a\0b"], [("N\0", "v")]);
        assert_eq!(command.arguments, [c"a".to_owned()]);
        assert_eq!(command.environment, [c"N".to_owned()]);
        let added = command.environment_with(&[("N", "x"), ("M", "y=0")]);
        assert_eq!(added, [c"N".to_owned(), c"N=x".to_owned(), c"M=y=0".to_owned()]);
        let again = Command { environment: added, ..command }.environment_with(&[("M", "z")]);
        assert_eq!(again[2], c"M=y=0:z".to_owned());
    }
}
