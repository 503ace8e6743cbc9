//! A command is launched without any trace of the recorder, or the failure is reported.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::common::{Kept, Place, options, run, shell};
use nix::unistd::{Gid, Pid, Uid, geteuid};
use proctrace_record::replaying::Replaying;
use proctrace_record::{
    Command, Hold, Identity, Intake, Pass, Preparation, RecordError, ResolveError, Source,
    SourceError, TaskCounts, find_program, reap,
};
use proctrace_trace::{Ended, Header, LossCount, Outcome, Program};

fn nothing() -> [(&'static str, &'static str); 1] {
    [("PATH", "/usr/local/bin:/usr/bin:/bin")]
}

/// A file that is executable according to its mode.
fn script(place: &Place, name: &str, text: &str) -> PathBuf {
    let (written, path) = (place.file("text"), place.file(name));
    fs::write(&written, text).unwrap();
    // Copied by a separate process: a file that is open for writing in a fork of another test
    // cannot be executed.
    let mut install = std::process::Command::new("install");
    assert!(install.args(["-m", "755"]).args([&written, &path]).status().unwrap().success());
    path
}

#[test]
fn what_cannot_be_found_or_executed_is_told_apart() {
    // The cases for which a shell returns 127 and 126.
    let missing = find_program(OsStr::new("no-such-command-here"), Some(OsStr::new("/usr/bin")));
    assert!(matches!(missing, Err(ResolveError::NotFound { .. })), "{missing:?}");
    let refused = find_program(OsStr::new("/etc/passwd"), None);
    assert!(matches!(refused, Err(ResolveError::NotExecutable { .. })), "{refused:?}");

    // Failures that only execve detects.
    let place = Place::new();
    let broken = script(&place, "broken", "#!/no/such/interpreter\n");
    for (program, want) in [
        (place.file("gone"), io::ErrorKind::NotFound),
        (broken, io::ErrorKind::NotFound),
        (PathBuf::from("/etc/passwd"), io::ErrorKind::PermissionDenied),
        (PathBuf::from("/etc/passwd/x"), io::ErrorKind::NotADirectory),
    ] {
        let command = Command::new(&program, ["x"], nothing());
        let mut kept = Kept::default();
        let error = run(&mut Replaying::default(), Some(&command), &options(), &mut kept);
        let Err(RecordError::Exec { program: named, source }) = error else {
            panic!("{program:?}: {error:?}")
        };
        assert_eq!((named, source.kind()), (program.display().to_string(), want));
        assert_eq!((kept.pushes, kept.ready.len()), (0, 0));
    }
}

#[test]
fn a_script_without_an_interpreter_is_the_shells() {
    let place = Place::new();
    let bare = script(&place, "bare", "[ \"$# $1\" = '1 an argument' ] && exit 3\n");
    let command = Command::new(&bare, ["bare", "an argument"], nothing());
    let finished =
        run(&mut Replaying::default(), Some(&command), &options(), &mut Kept::default()).unwrap();
    assert_eq!(finished.payload.unwrap().outcome, Outcome::Code(3));
}

#[test]
fn the_command_runs_as_whom_it_is_told() {
    let place = Place::new();
    let out = place.file("out");
    fs::write(&out, "").unwrap();
    fs::set_permissions(&out, fs::Permissions::from_mode(0o666)).unwrap();
    fs::set_permissions(out.parent().unwrap(), fs::Permissions::from_mode(0o755)).unwrap();
    let nobody = Identity {
        uid: Uid::from_raw(65534),
        gid: Gid::from_raw(65533),
        groups: vec![Gid::from_raw(65532), Gid::from_raw(65533)],
    };
    let mut source = Replaying::default();
    let script = format!("id -ru > {0}; id -u >> {0}; id -g >> {0}; id -G >> {0}", out.display());
    let command = shell(&script, &source).run_as(nobody);
    let finished = run(&mut source, Some(&command), &options(), &mut Kept::default());
    if geteuid().is_root() {
        assert_eq!(finished.unwrap().payload.unwrap().outcome, Outcome::Code(0));
        assert_eq!(fs::read_to_string(&out).unwrap(), "65534\n65534\n65533\n65533 65532\n");
    } else {
        // Only root can change its identity: otherwise the command is not run at all.
        let Err(RecordError::Exec { source, .. }) = finished else { panic!("{finished:?}") };
        assert_eq!(source.kind(), io::ErrorKind::PermissionDenied);
        assert_eq!(fs::read_to_string(&out).unwrap(), "");
    }
}

/// A source that seizes the command's process before its exec, like a tracer.
#[derive(Default)]
struct Tracer {
    inner: Replaying,
    refuses: bool,
    /// The process, and its executable when it was seized.
    seized: Option<(Pid, PathBuf)>,
    /// Number of calls of `reap`.
    reaped: u32,
}

impl Source for Tracer {
    fn name(&self) -> &'static str {
        "tracer"
    }

    fn describe(&self, _: &mut Header) {}

    fn arm(&mut self) -> Result<Hold, SourceError> {
        Ok(Hold::UntilSeized(Preparation::default()))
    }

    fn seize(&mut self, root: Pid) -> Result<(), SourceError> {
        self.seized = Some((root, fs::read_link(format!("/proc/{root}/exe"))?));
        if self.refuses { Err("not this one".into()) } else { Ok(()) }
    }

    fn drain(&mut self, intake: &mut Intake<'_>) -> Result<usize, SourceError> {
        self.inner.drain(intake)
    }

    fn sample(&mut self, pass: Pass, samples: &mut Vec<u8>) -> Result<(), SourceError> {
        self.inner.sample(pass, samples)
    }

    fn task_counts(&mut self) -> TaskCounts {
        self.inner.task_counts()
    }

    fn reap(&mut self, root: Pid) -> io::Result<Option<proctrace_trace::PayloadUsage>> {
        self.reaped += 1;
        reap(root)
    }

    fn losses(&mut self) -> Result<Vec<LossCount>, SourceError> {
        self.inner.losses()
    }

    fn detach(&mut self) -> Result<Vec<Program>, SourceError> {
        self.inner.detach()
    }
}

#[test]
fn a_source_can_hold_the_command_until_it_has_taken_hold_of_it() {
    let place = Place::new();
    let mut source = Tracer::default();
    let script = format!("echo $$ > {}; exit 5", place.file("pid").display());
    let command = shell(&script, &source.inner);
    let finished = run(&mut source, Some(&command), &options(), &mut Kept::default()).unwrap();
    assert_eq!(finished.ended, Ended::TreeExited);
    assert_eq!(finished.payload.unwrap().outcome, Outcome::Code(5));
    let (root, exe) = source.seized.unwrap();
    assert_eq!(root.as_raw(), place.number("pid"));
    // It was still this program: the command had not been executed.
    assert_eq!(exe, std::env::current_exe().unwrap());
    assert!(source.reaped > 0);
}

#[test]
fn a_command_that_the_source_cannot_take_is_not_executed() {
    let place = Place::new();
    let mut source = Tracer { refuses: true, ..Tracer::default() };
    let command = shell(&format!("touch {}", place.file("ran").display()), &source.inner);
    let error = run(&mut source, Some(&command), &options(), &mut Kept::default()).unwrap_err();
    assert!(matches!(error, RecordError::Source(_)), "{error:?}");
    assert_eq!(error.to_string(), "not this one");
    assert!(!place.file("ran").exists());
    // Its process has ended, and was reaped.
    let (root, _) = source.seized.unwrap();
    assert_eq!(reap(root).unwrap_err().raw_os_error(), Some(nix::libc::ECHILD));
}

#[test]
fn a_command_that_was_held_gets_no_descriptors_of_ours() {
    let place = Place::new();
    let count = |name: &str| format!("ls /proc/self/fd | wc -l > {}", place.file(name).display());
    std::process::Command::new("/bin/sh").args(["-c", &count("bare")]).status().unwrap();
    let mut held = Tracer::default();
    let command = shell(&count("held"), &held.inner);
    run(&mut held, Some(&command), &options(), &mut Kept::default()).unwrap();
    assert_eq!(place.number("held"), place.number("bare"));
}
