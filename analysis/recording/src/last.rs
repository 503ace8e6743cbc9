//! The last failed look-up of each process that failed: a hint why.

use proctrace_classify::fast::FastMap;
use proctrace_classify::names::{base, directory};
use proctrace_classify::sparse::Sparse;
use proctrace_libsearch::is_searched_last;

use crate::misses::OTHERS;

/// A failed look-up of a process, after which it has made no other that tells something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastMiss {
    /// CLOCK_BOOTTIME.
    pub time_ns: u64,
    /// Its number among the missed paths.
    pub path: u32,
    /// True if a relative path is one in the working directory: not in that of a descriptor.
    pub is_from_cwd: bool,
}

/// A failed exec.
#[derive(Debug, Clone)]
pub struct LastExec {
    /// CLOCK_BOOTTIME.
    pub time_ns: u64,
    pub path: Box<[u8]>,
    pub errno: u16,
    /// True if it is known to have been a try of several.
    is_of_search: bool,
}

impl LastExec {
    /// A failed exec, and how many failed ones it shows to have been tries along a list of directories: it, and the
    /// one before it if it is the second.
    pub fn next(before: Option<&Self>, (time_ns, path, errno): (u64, &[u8], u16)) -> (Self, u64) {
        let before = before.filter(|before| before.is_same_elsewhere(path));
        let searched = before.map_or(0, |before| if before.is_of_search { 1 } else { 2 });
        (Self { time_ns, path: path.into(), errno, is_of_search: searched > 0 }, searched)
    }

    /// Returns whether an exec that succeeds after it shows for the first time that it was a try of several.
    pub fn is_shown_by(&self, succeeds: &[u8]) -> bool {
        !self.is_of_search && self.is_same_elsewhere(succeeds)
    }

    /// True if a path is that of the same name in another directory.
    fn is_same_elsewhere(&self, path: &[u8]) -> bool {
        base(&self.path) == base(path) && *self.path != *path
    }
}

/// The last failed look-ups of the processes that failed: nobody asks for those of others, which are most.
#[derive(Debug, Default)]
pub struct LastMisses {
    /// The processes that failed.
    failed: Sparse<()>,
    /// One for each of them; empty as long as none has any.
    misses: Vec<Kept>,
    /// Of those whose last failed look-up was of a library the number of its directory.
    libraries: FastMap<u32, u32>,
}

/// A last failed look-up in twelve bytes.
#[derive(Debug, Clone, Copy)]
struct Kept {
    /// The two halves of its time: a whole one would be followed by a gap.
    time_ns: [u32; 2],
    /// The number of its path, twice; plus one if it is from the working directory.
    path: u32,
}

impl Kept {
    const NONE: Self = Self { time_ns: [0; 2], path: OTHERS };
}

impl LastMisses {
    /// Those of processes of which is told whether they failed, in order.
    pub fn of_failed(failed: impl Iterator<Item = bool>) -> Self {
        let mut all = Sparse::default();
        for (process, _) in failed.enumerate().filter(|(_, failed)| *failed) {
            all.push(process, ());
        }
        Self { failed: all, ..Self::default() }
    }

    #[inline]
    pub fn note(&mut self, process: usize, LastMiss { time_ns, path, is_from_cwd }: LastMiss) {
        let Some(place) = self.failed.position(process) else { return };
        if self.misses.is_empty() {
            self.misses = vec![Kept::NONE; self.failed.len()];
        }
        // There are at most PATHS_MAX numbers of paths.
        let path = if path > u32::MAX >> 1 { OTHERS } else { path << 1 | u32::from(is_from_cwd) };
        let time_ns = [(time_ns >> 32) as u32, time_ns as u32];
        self.misses[place] = Kept { time_ns, path };
    }

    /// Keeps the directory, by its number, in which a process has just not found a library.
    #[inline]
    pub(crate) fn missed_library(&mut self, process: usize, directory: u32) {
        if let Some(place) = self.failed.position(process) {
            self.libraries.insert(place as u32, directory);
        }
    }

    /// The directory in which a process did not find a library, if that was its last failed look-up before this one.
    #[inline]
    pub(crate) fn after_library(&mut self, process: usize) -> Option<u32> {
        if self.libraries.is_empty() {
            return None;
        }
        let place = self.failed.position(process)?;
        self.libraries.remove(&(place as u32))
    }

    /// The last one of a process that failed; `None` of others.
    pub fn of(&self, process: usize) -> Option<LastMiss> {
        let Kept { time_ns: [high, low], path } =
            *self.misses.get(self.failed.position(process)?)?;
        let time_ns = u64::from(high) << 32 | u64::from(low);
        let miss = LastMiss { time_ns, path: path >> 1, is_from_cwd: path & 1 != 0 };
        (path != OTHERS).then_some(miss)
    }
}

/// The last failed exec of each process that has executed nothing since.
pub type LastExecs = FastMap<usize, LastExec>;

/// True if a failed look-up may be why a program gives up. Every program that starts, or prints a message, looks for
/// files that are seldom there: ld.so(8), catalogs of translations (gettext(3)), modules of character sets. make(1) asks
/// for sources of RCS and SCCS before it says that it has no rule.
pub(crate) fn is_telling(path: &[u8]) -> bool {
    let of_all = [&b"/glibc-hwcaps/"[..], b"/locale/", b"/locale-langpack/", b"/gconv/"];
    !path.starts_with(b"/etc/ld.so.")
        && !of_all.into_iter().any(|part| contains(path, part))
        && !path.ends_with(b".mo")
        // Precompiled headers of gcc, for which it asks beside each header.
        && !path.ends_with(b".gch")
        && !is_of_compiler(path)
        && !is_of_old_versions(path)
        && !is_of_interpreter(path)
        && !is_optional(path)
        // A directory may be a repository itself: git asks for HEAD where it has not found .git.
        && (base(path) != b"HEAD" || contains(path, b".git/"))
}

fn contains(path: &[u8], part: &[u8]) -> bool {
    path.windows(part.len()).any(|window| window == part)
}

/// True of what gcc asks for in each run: its directories of headers, and one header of the C library.
fn is_of_compiler(path: &[u8]) -> bool {
    let is_its_own = path.starts_with(b"/usr/") || contains(path, b"/lib/gcc/");
    is_its_own && matches!(base(path), b"stdc-predef.h" | b"include" | b"include-fixed")
}

/// True of files that programs look for by default: their settings, and what an earlier run may have left.
fn is_optional(path: &[u8]) -> bool {
    // SQLite asks for `x.db-wal` at each transaction; a login shell for a script when it ends; OpenSSH and libselinux for
    // their settings.
    let is_of_database = || {
        let name = base(path);
        (name.ends_with(b"-wal") || name.ends_with(b"-journal")) && name.contains(&b'.')
    };
    let endings = [&b"/.bash_logout"[..], b"/.ssh/config", b"/etc/selinux/config"];
    is_of_database() || endings.into_iter().any(|ending| path.ends_with(ending))
}

/// True of what interpreters ask for in each run, or after all else: python (getpath.py, site.py), perl (directories of
/// @INC), node (the global directories of `require`).
fn is_of_interpreter(path: &[u8]) -> bool {
    let is_of_perl = || {
        let of_system = path.starts_with(b"/usr/") || path.starts_with(b"/etc/");
        let mut directories = directory(path).split(|byte| *byte == b'/');
        of_system && directories.any(|part| part.starts_with(b"perl") || part == b"site_perl")
    };
    match base(path) {
        // What python prints in a traceback instead of a file: `<string>`, along sys.path.
        [b'<', .., b'>'] => true,
        // Its caches, which may be missing.
        name if name.ends_with(b".pyc") && base(directory(path)) == b"__pycache__" => true,
        b"site-packages" | b"dist-packages" | b"lib-dynload" => true,
        b"pyvenv.cfg" | b"pybuilddir.txt" | b"Setup.local" => true,
        b"os.py" | b"os.pyc" => contains(path, b"/lib/python3"),
        // Without their modules.
        b".node_modules" | b".node_libraries" => true,
        b"node" => path.ends_with(b"/lib/node"),
        // The whole standard library in one file, or the list of its directories.
        name if name.starts_with(b"python3") => name.ends_with(b".zip") || name.ends_with(b"._pth"),
        name => !name.ends_with(b".pm") && is_of_perl(),
    }
}

/// True if a library may be why a program gives up that is nowhere: but for those of name services, which are optional
/// (nsswitch.conf(5)).
pub(crate) fn is_telling_library(path: &[u8]) -> bool {
    is_searched_last(directory(path)) && !base(path).starts_with(b"libnss_")
}

/// True if it is where RCS or SCCS keep versions: `RCS/x,v`, `SCCS/s.x`, `s.x`.
fn is_of_old_versions(path: &[u8]) -> bool {
    let mut parts = path.rsplit(|byte| *byte == b'/');
    let name = parts.next().unwrap_or_default();
    let of = |part: &[u8]| part == b"RCS" || part == b"SCCS";
    of(name) || parts.next().is_some_and(of) || name.ends_with(b",v") || name.starts_with(b"s.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_every_program_looks_for_tells_nothing() {
        for path in [
            &b"/etc/ld.so.preload"[..],
            b"/usr/share/locale/C.UTF-8/LC_MESSAGES/libc.mo",
            b"/usr/lib/locale/C.UTF-8/LC_IDENTIFICATION",
            b"/lib/x86_64-linux-gnu/glibc-hwcaps/x86-64-v3/libc.so.6",
            b"src/SCCS",
            b"src/RCS/main.c,v",
            b"src/s.main.c",
            b"/home/u/.local/lib/python3.11/site-packages",
            b"/usr/bin/pyvenv.cfg",
            b"/usr/bin/lib/python3.11/os.pyc",
            b"/usr/bin/python3._pth",
            b"/usr/local/lib/site_perl/x86_64-linux-gnu-thread-multi",
            b"/etc/perl/sitecustomize.pl",
            b"/usr/lib/x86_64-linux-gnu/perl-base/x86_64-linux-gnu-thread-multi",
            b"/usr/lib/python311.zip",
            b"/usr/lib/node",
            b"/home/u/.node_modules",
            b"/HEAD",
            b"/usr/lib/python3.11/<string>",
            b"/w/runs.db-wal",
            b"/w/__pycache__/job.cpython-311.pyc",
            b"/usr/lib/gcc/x86_64-linux-gnu/12/include-fixed",
            b"/home/u/.bash_logout",
        ] {
            assert!(!is_telling(path), "{}", String::from_utf8_lossy(path));
        }
        for path in [
            &b"/etc/slowtool.conf"[..],
            b"ld.so.conf.d/x",
            b"/usr/local/lib/site_perl/No/Such.pm",
            b"/w/node",
            b"/w/perl/settings",
            b"/usr/bin/perl",
            b"/etc/perlfoo.conf",
            b"/w/os.py",
            b"/w/include",
            b"/w/exp-journal",
            b".git/HEAD",
        ] {
            assert!(is_telling(path), "{}", String::from_utf8_lossy(path));
        }
        assert!(is_telling_library(b"/usr/lib/libq.so.6"));
        for path in [&b"/opt/lib/libq.so.6"[..], b"/usr/lib/libnss_db.so.2"] {
            assert!(!is_telling_library(path), "{}", String::from_utf8_lossy(path));
        }
    }

    #[test]
    fn tries_of_one_name_in_several_directories_are_a_search() {
        let try_ = |before: Option<&LastExec>, path: &[u8]| LastExec::next(before, (1, path, 2));
        let (first, none) = try_(None, b"/a/ls");
        let (second, both) = try_(Some(&first), b"/b/ls");
        let (third, one) = try_(Some(&second), b"/c/ls");
        assert_eq!((none, both, one, third.is_shown_by(b"/d/ls")), (0, 2, 1, false));
        // The same path again, or another program, is none.
        assert_eq!((try_(Some(&third), b"/c/ls").1, try_(Some(&third), b"/c/cat").1), (0, 0));
        let (alone, none) = try_(None, b"/a/ls");
        let shown = (alone.is_shown_by(b"/a/ls"), alone.is_shown_by(b"/d/ls"));
        assert_eq!((none, shown), (0, (false, true)));
    }

    #[test]
    fn the_last_one_counts() {
        let mut last = LastMisses::of_failed((0..200).map(|process| process % 2 == 0));
        assert_eq!(last.of(2), None);
        let miss = |time_ns, path, is_from_cwd| LastMiss { time_ns, path, is_from_cwd };
        last.note(2, miss(10, 0, false));
        last.note(2, miss(20 << 32 | 3, 5, true));
        for process in [64, 126, 198] {
            last.note(process, miss(process as u64, 0, false));
        }
        last.note(4, miss(30, OTHERS, true));
        assert_eq!(last.of(2), Some(miss(20 << 32 | 3, 5, true)));
        for process in [64, 126, 198] {
            assert_eq!(last.of(process), Some(miss(process as u64, 0, false)));
        }
        // Those that did not fail have none, and neither have those that are not there.
        for process in [3, 65, 127, 200, 1_000] {
            last.note(process, miss(1, 1, true));
        }
        assert!([0, 3, 4, 65, 66, 200, 1_000].iter().all(|process| last.of(*process).is_none()));
    }
}
