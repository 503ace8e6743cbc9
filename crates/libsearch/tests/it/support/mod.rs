//! Starts of programs, as the model predicts their look-ups and as strace sees them.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::Command;

use proctrace_libsearch::{
    Cache, Elf, Linker, LinkerCall, Program, Root, Search, Unmodelled, search,
};

pub(crate) fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

/// Runs a command line without quotes in a directory.
pub(crate) fn execute(cwd: &Path, line: &str) {
    let mut words = line.split(' ');
    run(Command::new(words.next().unwrap()).args(words).current_dir(cwd));
}

/// This system's linker and its cache.
pub(crate) fn linker() -> (Linker, Cache) {
    let own = Elf::parse(&fs::read("/proc/self/exe").unwrap()[..]).unwrap();
    let interpreter = String::from_utf8(own.interpreter.unwrap()).unwrap();
    let linker = Linker::of_help(&run(Command::new(interpreter).arg("--help")));
    assert!(!linker.default_directories.is_empty(), "{linker:?}");
    (linker, Cache::parse(&fs::read("/etc/ld.so.cache").unwrap()).unwrap())
}

/// Sub-directories that glibc tries before a directory itself.
pub(crate) fn before_each_directory() -> usize {
    let (linker, _) = linker();
    linker.capabilities.hwcaps.len() + (1 << linker.capabilities.legacy.len()) - 1
}

/// A look-up as strace prints it.
pub(crate) type Seen = (LinkerCall, Vec<u8>, bool);

/// A start of a program.
#[derive(Clone, Copy)]
pub(crate) struct Start<'a> {
    /// As given to execve(2).
    pub(crate) program: &'a Path,
    /// The root directory of the process.
    pub(crate) root: &'a Path,
    /// As the process sees it; "/" with another root directory.
    pub(crate) cwd: &'a Path,
    pub(crate) library_path: Option<&'a OsStr>,
    pub(crate) preload: Option<&'a OsStr>,
    pub(crate) secure: bool,
}

impl<'a> Start<'a> {
    pub(crate) fn of(program: &'a Path, cwd: &'a Path) -> Self {
        let root = Path::new("/");
        Self { program, root, cwd, library_path: None, preload: None, secure: false }
    }

    pub(crate) fn below(root: &'a Path, program: &'a str) -> Self {
        Self { root, ..Self::of(Path::new(program), Path::new("/")) }
    }

    pub(crate) fn with(self, list: &'a (impl AsRef<OsStr> + ?Sized)) -> Self {
        Self { library_path: Some(list.as_ref()), ..self }
    }

    pub(crate) fn preloading(self, list: &'a (impl AsRef<OsStr> + ?Sized)) -> Self {
        Self { preload: Some(list.as_ref()), ..self }
    }

    pub(crate) fn secure(self) -> Self {
        Self { secure: true, ..self }
    }

    /// The look-ups of the linker, and whether the program ended well.
    pub(crate) fn seen(self) -> (Vec<Seen>, bool) {
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("strace");
        command.args(["-xx", "-s", "8192", "-e", "trace=execve,open,openat,stat,newfstatat", "-o"]);
        command.arg(log.path());
        for (name, value) in
            [("LD_LIBRARY_PATH=", self.library_path), ("LD_PRELOAD=", self.preload)]
        {
            if let Some(value) = value {
                let variable = [name.as_bytes(), value.as_bytes()].concat();
                command.arg("-E").arg(OsStr::from_bytes(&variable));
            }
        }
        if self.root != Path::new("/") {
            command.arg("chroot").arg(self.root);
        }
        // cargo sets it for tests.
        command.env_remove("LD_LIBRARY_PATH").current_dir(self.root.join(self.cwd));
        let status = command.arg(self.program).output().unwrap().status;
        let text = fs::read_to_string(log.path()).unwrap();
        // After the last program: before it is chroot(1).
        let last = text.lines().enumerate().filter(|(_, line)| line.starts_with("execve("));
        let (last, _) = last.last().unwrap();
        let seen = text.lines().skip(last + 1).filter_map(look_up);
        (seen.filter(|(_, path, _)| path != b"/etc/ld.so.cache").collect(), status.success())
    }

    pub(crate) fn modelled(self) -> Search {
        self.try_modelled().unwrap()
    }

    pub(crate) fn try_modelled(self) -> Result<Search, Unmodelled> {
        let (linker, cache) = linker();
        // Other root directories have none.
        let cache = if self.root == Path::new("/") { cache } else { Cache::default() };
        let program = Program {
            path: self.program.as_os_str().as_bytes(),
            cwd: self.cwd.as_os_str().as_bytes(),
            library_path: self.library_path.map(OsStr::as_bytes),
            preload: self.preload.map(OsStr::as_bytes),
            secure: self.secure,
        };
        search(&program, &linker, &cache, &Root::new(self.root))
    }

    /// Compares model and reality; returns the model.
    pub(crate) fn assert_alike(self) -> Search {
        let (seen, ended_well) = self.seen();
        let model = self.modelled();
        let modelled = model.probes.iter().map(|probe| {
            // strace prints no more of a path.
            let path = &probe.path[..probe.path.len().min(PRINTED)];
            (probe.call, path.to_vec(), probe.found)
        });
        let modelled: Vec<Seen> = modelled.collect();
        let text = |(call, path, found): &Seen| {
            format!("{call:?} {} {found}", String::from_utf8_lossy(path))
        };
        for (at, (one, other)) in modelled.iter().zip(&seen).enumerate() {
            assert!(one == other, "look-up {at}: {}, not {}", text(other), text(one));
        }
        let more = |all: &[Seen]| all.iter().map(text).collect::<Vec<_>>();
        let (known, all) = (modelled.len(), seen.len());
        assert!(known >= all, "seen, not modelled: {:?}", more(&seen[known..]));
        assert!(known <= all, "modelled, not seen: {:?}", more(&modelled[all..]));
        assert_eq!(model.missing.is_empty(), ended_well, "{:?}", model.missing);
        assert!(!model.cut);
        model
    }
}

/// Bytes of a path that strace prints: PATH_MAX of linux/limits.h without the NUL.
const PRINTED: usize = 4095;

/// The look-up of a line of strace.
fn look_up(line: &str) -> Option<Seen> {
    let (call, rest) = line.split_once('(')?;
    let call = if call.starts_with("open") { LinkerCall::Open } else { LinkerCall::Stat };
    let path = rest.strip_prefix("AT_FDCWD, ").unwrap_or(rest).strip_prefix('"')?;
    let (path, rest) = path.split_once('"')?;
    let bytes = path.split("\\x").skip(1).map(|byte| u8::from_str_radix(byte, 16).unwrap());
    Some((call, bytes.take(PRINTED).collect(), !rest.contains(" = -1 ")))
}

/// The failed opens and stats.
pub(crate) fn misses(search: &Search) -> (usize, usize) {
    let misses = |call| search.misses().filter(|probe| probe.call == call).count();
    (misses(LinkerCall::Open), misses(LinkerCall::Stat))
}
