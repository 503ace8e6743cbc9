//! Lists and files that someone made to do harm: the model still matches the linkers where strace can
//! see them, and is bounded in any case. Needs a C compiler, musl-gcc, patchelf and strace.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proctrace_libsearch::{PROBES_MAX, Search};

use crate::support::{Start, execute};

/// A program that needs liba.so in directory a, and nothing else but libc.
struct Place {
    directory: tempfile::TempDir,
    program: PathBuf,
    compiler: &'static str,
}

impl Place {
    fn make(compiler: &'static str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cwd = directory.path();
        fs::create_dir(cwd.join("a")).unwrap();
        fs::create_dir(cwd.join("bad")).unwrap();
        fs::write(cwd.join("a.c"), "int a(void) { return 0; }\n").unwrap();
        fs::write(cwd.join("main.c"), "int a(void);\nint main(void) { return a(); }\n").unwrap();
        let made = Self { program: cwd.join("program"), directory, compiler };
        made.compile("-shared -fPIC a.c -Wl,-soname,liba.so -o a/liba.so");
        made.compile("main.c -La -la -o program");
        made
    }

    fn both() -> [Self; 2] {
        [Self::make("cc"), Self::make("musl-gcc")]
    }

    fn cwd(&self) -> &Path {
        self.directory.path()
    }

    fn run(&self, line: &str) {
        execute(self.cwd(), line);
    }

    fn compile(&self, arguments: &str) {
        self.run(&format!("{} {arguments}", self.compiler));
    }

    fn start(&self) -> Start<'_> {
        Start::of(&self.program, self.cwd())
    }
}

/// The model of a start, which makes a limited number of look-ups and takes little memory.
fn bounded(start: Start<'_>) -> Search {
    let search = start.modelled();
    assert!(search.probes.len() <= PROBES_MAX);
    let bytes: usize = search.probes.iter().map(|probe| probe.path.len()).sum();
    assert!(bytes <= 128 << 20, "{bytes}");
    search
}

#[test]
fn lists_may_hold_any_bytes() {
    for place in Place::both() {
        let odd = [&b"\xff\xfe"[..], b"new\nline", b"*?[\"'\\", b"\xe2\x82", b" ", b"\x01\x7f"];
        for name in odd {
            let directory = place.cwd().join(OsStr::from_bytes(name));
            fs::create_dir(&directory).unwrap();
            let relative = OsStr::from_bytes(name);
            place.start().with(relative).assert_alike();
            place.start().with(&directory).assert_alike();
            let list = [name, b":", directory.as_os_str().as_bytes(), b":a"].concat();
            let search = place.start().with(OsStr::from_bytes(&list)).assert_alike();
            assert!(search.missing.is_empty());
        }
        for list in ["a\n", "\na", "a\nb:a", "$", "${", "${ORIGIN", "$ORIGIN$ORIGIN:a", "$$LIB:a"] {
            place.start().with(list).assert_alike();
        }
    }
}

#[test]
fn entries_may_be_as_long_as_a_path_and_longer() {
    for place in Place::both() {
        for length in [255, 256, 503, 504, 505, 4080, 4086, 4087, 4088, 4094, 4095, 4096, 5000] {
            // Directories with long names and with many short ones, that exist or not.
            let name = "n".repeat(length - 1);
            let deep = format!("/{}", "./".repeat(length / 2)) + &place.cwd().display().to_string();
            let through = format!("{}/a", "a/..//".repeat(length / 6));
            for entry in [&format!("/{name}"), &name, &deep, &through] {
                place.start().with(&format!("{entry}:a")).assert_alike();
            }
        }
    }
}

#[test]
fn many_entries_are_tried_one_by_one() {
    for place in Place::both() {
        let list: String = (0..1000).map(|n| format!("/no/{n}:")).collect();
        let search = place.start().with(&format!("{list}a")).assert_alike();
        assert!(search.missing.is_empty());
        let list: String = (0..1000).map(|n| format!("a/./../{n}:")).collect();
        place.start().with(&list[..4000]).assert_alike();
        // An RPATH of more than 4,096 bytes, half of it twice.
        let list: String = (0..600).map(|n| format!("/none/{}:", n % 300)).collect();
        place.run(&format!("patchelf --set-rpath {list}$ORIGIN/a program"));
        assert!(place.start().assert_alike().missing.is_empty());
    }
}

#[test]
fn a_search_is_cut_at_its_limits() {
    for place in Place::both() {
        let entries = |count: usize, length: usize| -> String {
            (0..count).map(|n| format!("/{n:0length$}:")).collect()
        };
        // glibc searches more subdirectories of each on newer CPUs.
        let each = bounded(place.start().with(&entries(1_000, 5))).probes.len().div_ceil(1_000);
        assert!(!bounded(place.start().with(&entries(PROBES_MAX / each / 10 * 9, 5))).cut);
        assert!(bounded(place.start().with(&entries(400_000, 5))).cut);
        let search = bounded(place.start().with(&entries(10_000, 4095)));
        // musl passes over paths that are too long for its buffer.
        assert_eq!(search.cut, place.compiler == "cc");
        assert!(!bounded(place.start().with(&":".repeat(1_000_000))).cut);
        let names: String = (0..100_000).map(|n| format!("lib{n}.so ")).collect();
        assert!(bounded(place.start().with("/no/1:/no/2").preloading(&names)).cut);
    }
}

#[test]
fn links_may_lead_in_circles() {
    for place in Place::both() {
        let bad = place.cwd().join("bad");
        symlink("circle", bad.join("circle")).unwrap();
        symlink("../bad", bad.join("self")).unwrap();
        symlink("liba.so", bad.join("liba.so")).unwrap();
        let absolute = bad.display();
        let through = format!("{}bad", "bad/self/../".repeat(39));
        for list in ["bad:a", "bad/circle:a", "a/../bad/self/self:a", &through] {
            place.start().with(list).assert_alike();
            let list = format!("{absolute}:{absolute}/circle:{absolute}/../a:{list}");
            place.start().with(&list).assert_alike();
        }
        // Forty links are followed, one more is not.
        for (links, is_found) in [(40, true), (41, false)] {
            let list = format!("{}a", "bad/self/../".repeat(links));
            let search = place.start().with(&list).assert_alike();
            assert_eq!(search.missing.is_empty(), is_found, "{links}");
        }
        // The RPATH follows where LD_LIBRARY_PATH ends; not so with musl.
        place.run("patchelf --set-rpath a program");
        let search = place.start().with("bad:none").assert_alike();
        assert_eq!(search.missing.is_empty(), place.compiler == "cc");
    }
}

#[test]
fn libraries_may_need_themselves_and_each_other() {
    for place in Place::both() {
        place.compile("-shared -fPIC a.c -Wl,-soname,libb.so -o a/libb.so");
        place.run("patchelf --add-needed liba.so --add-needed libb.so a/liba.so");
        place.run("patchelf --add-needed liba.so --add-needed libb.so a/libb.so");
        assert!(place.start().with("a").assert_alike().missing.is_empty());
        // Without a DT_SONAME, and by its path.
        place.compile("-shared -fPIC a.c -o a/liba.so");
        place.run("patchelf --add-needed liba.so --add-needed ./a/liba.so a/liba.so");
        assert!(place.start().with("a").assert_alike().missing.is_empty());
        // The program itself.
        place.run("patchelf --add-needed libself.so a/liba.so");
        symlink("../program", place.cwd().join("a/libself.so")).unwrap();
        place.start().with("a").assert_alike();
    }
}

/// Files that are no libraries: whatever is in the first directory ends the search of both linkers.
#[test]
fn a_damaged_library_fails_the_start() {
    for place in Place::both() {
        let file = place.cwd().join("bad/liba.so");
        let good = fs::read(place.cwd().join("a/liba.so")).unwrap();
        let changed = |at: usize, bytes: &[u8]| {
            let mut changed = good.clone();
            changed[at..at + bytes.len()].copy_from_slice(bytes);
            changed
        };
        let damaged = [
            ("empty", Vec::new()),
            ("short", b"\x7fELF\x02".to_vec()),
            ("text", vec![b'a'; 5000]),
            ("header only", good[..64].to_vec()),
            ("half of the segments", good[..100].to_vec()),
            ("zeros", vec![0; 5000]),
            ("core file", changed(16, &[4])),
            ("object file", changed(16, &[1])),
            ("size of segments", changed(54, &[7])),
            ("no segments", changed(56, &[0])),
            ("segments outside", changed(32, &[0xff; 8])),
        ];
        for (what, bytes) in damaged {
            fs::write(&file, bytes).unwrap();
            let search = place.start().with("bad:a").assert_alike();
            assert_eq!(search.missing, [b"liba.so"], "{what}");
        }
        // The linkers map what is not there, and are killed where they touch it.
        for length in [120, 500, 1000, 3000, 4096, 6000, 8192, 10000, 12000, 12500, 13000, 14000] {
            fs::write(&file, &good[..length.min(good.len())]).unwrap();
            place.start().with("bad:a").assert_alike();
        }
        // One without a dynamic section: PT_DYNAMIC becomes PT_NULL.
        let mut segments = (0..usize::from(good[56])).map(|n| 64 + 56 * n);
        let dynamic = segments.rfind(|at| good[*at..at + 4] == [2, 0, 0, 0]).unwrap();
        fs::write(&file, changed(dynamic, &[0])).unwrap();
        assert_eq!(place.start().with("bad:a").assert_alike().missing, [b"liba.so"]);
    }
}

#[test]
fn glibc_passes_over_other_architectures() {
    let place = Place::make("cc");
    let file = place.cwd().join("bad/liba.so");
    let mut bytes = fs::read(place.cwd().join("a/liba.so")).unwrap();
    bytes[18] = 183;
    fs::write(&file, &bytes).unwrap();
    for list in ["bad:a", "bad", &format!("{}:a", place.cwd().join("bad").display())] {
        place.start().with(list).assert_alike();
    }
    // So is a library for 32 bits.
    fs::write(place.cwd().join("a.s"), ".globl a\na: ret\n").unwrap();
    place.run("as --32 a.s -o a.o");
    place.run("ld -m elf_i386 -shared -soname liba.so a.o -o bad/liba.so");
    assert!(place.start().with("bad:a").assert_alike().missing.is_empty());
    // An executable is no library.
    fs::copy(&place.program, &file).unwrap();
    assert_eq!(place.start().with("bad:a").assert_alike().missing, [b"liba.so"]);
    // A preloaded file may be anything.
    fs::write(&file, "text").unwrap();
    let search = place.start().with("a").preloading("bad/liba.so:./program").assert_alike();
    assert!(search.missing.is_empty());
}

#[test]
fn musl_does_not_ask_for_the_architecture() {
    let place = Place::make("musl-gcc");
    let mut bytes = fs::read(place.cwd().join("a/liba.so")).unwrap();
    bytes[18] = 183;
    fs::write(place.cwd().join("bad/liba.so"), &bytes).unwrap();
    assert!(place.start().with("bad:a").assert_alike().missing.is_empty());
    fs::write(place.cwd().join("a.s"), ".globl a\na: ret\n").unwrap();
    place.run("as --32 a.s -o a.o");
    place.run("ld -m elf_i386 -shared -soname liba.so a.o -o bad/liba.so");
    assert_eq!(place.start().with("bad:a").assert_alike().missing, [b"liba.so"]);
}

#[test]
fn directories_and_fifos_have_names_of_libraries() {
    for place in Place::both() {
        let file = place.cwd().join("bad/liba.so");
        fs::create_dir(&file).unwrap();
        assert_eq!(place.start().with("bad:a").assert_alike().missing, [b"liba.so"]);
        fs::remove_dir(&file).unwrap();
        // A linker waits for its writer, the model does not.
        place.run("mkfifo bad/liba.so");
        assert_eq!(bounded(place.start().with("bad:a")).missing, [b"liba.so"]);
        symlink("/dev/zero", place.cwd().join("zero")).unwrap();
        assert!(Start::of(&place.cwd().join("zero"), place.cwd()).try_modelled().is_err());
    }
}
