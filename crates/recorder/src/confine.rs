//! Confinement of a command once its arguments are known: a trace may be anybody's, and so may be what it does to its
//! reader.
//!
//! Commands that read give up capabilities that come from the file of the program, and confine themselves by
//! Landlock, as far as the kernel has it: they read what their arguments name, write the outputs that are asked for,
//! start nothing and connect to nothing (docs/decisions/0061).

mod needs;

use std::path::{Path, PathBuf};

use landlock::{
    ABI, Access, AccessFs, AccessNet, BitFlags, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use rustix::process::{getegid, geteuid, getgid, getuid};
use rustix::thread::{
    CapabilitiesSecureBits, CapabilitySet, CapabilitySets, capabilities, capabilities_secure_bits,
    capability_is_in_ambient_set, set_capabilities,
};

pub use needs::Needs;

/// The newest rules that are known; older kernels have fewer.
const KNOWN: ABI = ABI::V7;

/// Paths that any program of ours looks at.
const ALWAYS: [&str; 9] = [
    "/proc",
    "/sys/fs/cgroup",
    "/sys/devices/system",
    "/etc/localtime",
    "/usr/share/zoneinfo",
    "/etc/terminfo",
    "/lib/terminfo",
    "/usr/share/terminfo",
    "/dev/urandom",
];

/// Gives up what the command does not need; None for what may do anything, because it runs other commands. Must be
/// called before any thread is started, since threads have rights of their own, and not for commands that load programs
/// into the kernel, or find out whether they could: these give up themselves what is left over.
pub fn begin(needs: Option<&Needs>) {
    // Without the right to drop capabilities there would be none; and Landlock is a second line.
    let _ = drop_borrowed();
    if let Some(needs) = needs {
        let _ = restrict(needs);
    }
}

/// Returns how far this kernel can confine readers, wholly, partially or not at all: a thread that does nothing else is
/// confined.
pub(crate) fn works() -> RulesetStatus {
    let thread = std::thread::spawn(|| restrict(&Needs::default()));
    match thread.join() {
        Ok(Ok(status)) => status,
        _ => RulesetStatus::NotEnforced,
    }
}

/// Drops the capabilities that the program's file, or its set-user-ID bit, has given to whoever runs it.
fn drop_borrowed() -> Result<(), rustix::io::Errno> {
    let sets = capabilities(None)?;
    let by_being_root = getuid().is_root()
        && geteuid().is_root()
        && getgid() == getegid()
        && !capabilities_secure_bits()?.contains(CapabilitiesSecureBits::NO_ROOT);
    if by_being_root || (sets.permitted.is_empty() && sets.inheritable.is_empty()) {
        return Ok(());
    }
    // The kernel clears the ambient set when a file with capabilities is executed: what is in it is the caller's.
    let own = (0..u64::BITS)
        .map(|number| CapabilitySet::from_bits_retain(1 << number))
        .filter(|capability| capability_is_in_ambient_set(*capability).unwrap_or(false))
        .collect::<CapabilitySet>();
    let own = CapabilitySets { effective: own, permitted: own, inheritable: own };
    set_capabilities(None, own)
}

/// Confines this thread, and those that it starts, to what is needed. Does nothing where the kernel has no Landlock.
fn restrict(needs: &Needs) -> Result<RulesetStatus, RulesetError> {
    let mut rules = Ruleset::default()
        .handle_access(AccessFs::from_all(KNOWN))?
        .handle_access(AccessNet::from_all(KNOWN))?
        .scope(Scope::from_all(KNOWN))?
        .create()?;
    let read = AccessFs::ReadFile | AccessFs::ReadDir;
    let everything = [Path::new("/")];
    let all = everything.iter().filter(|_| needs.reads_all).copied();
    let always = ALWAYS.iter().map(Path::new);
    for path in all.chain(always).chain(needs.reads.iter().map(PathBuf::as_path)) {
        allow(&mut rules, path, read);
    }
    // Where output goes that nobody wants.
    allow(&mut rules, Path::new("/dev/null"), AccessFs::ReadFile | AccessFs::WriteFile);
    for path in &needs.executes {
        allow(&mut rules, path, AccessFs::ReadFile | AccessFs::Execute);
    }
    for terminal in &needs.terminals {
        let access = AccessFs::ReadFile | AccessFs::WriteFile | AccessFs::IoctlDev;
        allow(&mut rules, terminal, access);
    }
    for path in &needs.files {
        allow_output(&mut rules, path, false);
    }
    for path in &needs.trees {
        allow_output(&mut rules, path, true);
    }
    Ok(rules.restrict_self()?.ruleset)
}

/// A file that is replaced by a rename, or a directory that is filled.
fn allow_output(rules: &mut RulesetCreated, path: &Path, is_tree: bool) {
    let write = AccessFs::WriteFile | AccessFs::Truncate | AccessFs::ReadFile;
    let exists = path.metadata();
    if exists.as_ref().is_ok_and(|found| !found.is_dir()) {
        // A device or a pipe that is written to, or a file that is added to.
        allow(rules, path, write);
    }
    if exists.as_ref().is_ok_and(|found| !found.is_dir() && !found.is_file()) {
        return;
    }
    let create = write
        | AccessFs::ReadDir
        | AccessFs::MakeReg
        | AccessFs::RemoveFile
        | AccessFs::MakeDir
        | AccessFs::MakeSym;
    let at = if is_tree { path.to_owned() } else { place_of(path) };
    // What does not exist is created there.
    if let Some(at) = at.ancestors().find(|at| at.is_dir() || at.as_os_str().is_empty()) {
        let at = if at.as_os_str().is_empty() { Path::new(".") } else { at };
        allow(rules, at, create);
    }
}

/// The directory of a file, behind the links that lead to it.
fn place_of(path: &Path) -> PathBuf {
    let path = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    path.parent().map_or_else(|| PathBuf::from("."), Path::to_owned)
}

/// Allows access to a path. One that cannot be allowed, because it does not exist, fails when it is used.
fn allow(rules: &mut RulesetCreated, path: &Path, access: BitFlags<AccessFs>) {
    let Ok(opened) = PathFd::new(path) else { return };
    let is_directory = path.is_dir();
    let access = if is_directory { access } else { access & AccessFs::from_file(KNOWN) };
    // A pipe has no place in a file system, and needs no rule.
    let _ = rules.add_rule(PathBeneath::new(opened, access));
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::io::ErrorKind;
    use std::net::TcpListener;
    use std::process::Command as Process;

    use super::*;

    /// Result of `does` in a thread that is confined; None where the kernel cannot.
    fn confined<T: Send>(needs: &Needs, does: impl FnOnce() -> T + Send) -> Option<T> {
        std::thread::scope(|scope| {
            let thread = scope.spawn(|| match restrict(needs).unwrap() {
                RulesetStatus::NotEnforced => None,
                _ => Some(does()),
            });
            thread.join().unwrap()
        })
    }

    #[test]
    fn a_reader_reads_what_it_was_given_and_nothing_else() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("trace"), "x").unwrap();
        fs::write(at("other"), "x").unwrap();
        fs::create_dir(at("out")).unwrap();
        std::os::unix::fs::symlink(at("other"), at("out/link")).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let needs = Needs {
            reads: vec![at("trace")],
            files: vec![at("out/chart.svg")],
            ..Needs::default()
        };
        let denied = |error: std::io::Error| {
            assert_eq!(error.kind(), ErrorKind::PermissionDenied, "{error}");
        };
        confined(&needs, || {
            assert_eq!(fs::read(at("trace")).unwrap(), b"x");
            denied(fs::read(at("other")).unwrap_err());
            denied(fs::read_dir(directory.path()).map(drop).unwrap_err());
            denied(fs::write(at("trace"), "y").unwrap_err());
            denied(fs::write(at("new"), "y").unwrap_err());
            denied(fs::remove_file(at("other")).unwrap_err());
            // Where it may write, a link does not lead out of there.
            denied(fs::write(at("out/link"), "y").unwrap_err());
            fs::write(at("out/part"), "chart").unwrap();
            fs::rename(at("out/part"), at("out/chart.svg")).unwrap();
            let moved = fs::rename(at("out/chart.svg"), at("elsewhere"));
            assert!(moved.is_err());
            denied(Process::new("/bin/true").status().unwrap_err());
            // Linux 6.7 and later.
            if let Err(error) = std::net::TcpStream::connect(address) {
                denied(error);
            }
        });
        assert_eq!(fs::read(at("other")).unwrap(), b"x");
        assert_eq!(fs::read(at("trace")).unwrap(), b"x");
    }

    #[test]
    fn what_is_created_needs_no_more_than_its_place() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir(at("out")).unwrap();
        let needs = Needs { trees: vec![at("out/a/b")], ..Needs::default() };
        confined(&needs, || {
            fs::create_dir_all(at("out/a/b")).unwrap();
            fs::write(at("out/a/b/c"), "x").unwrap();
            assert!(fs::create_dir(at("d")).is_err());
        });
    }
}
