//! The model against the dynamic linker of this system, look-up by look-up, as strace sees it. Needs a C
//! compiler, strace, and glibc 2.33 or later.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod support;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proctrace_fixtures::libraries::{DIRECTORIES, LIBRARIES, Libraries, PLAIN_MISSES};

use support::{Start, before_each_directory, execute, linker, misses};

#[test]
fn twenty_directories_and_thirty_libraries() {
    let place = tempfile::tempdir().unwrap();
    let fixture = Libraries::make(place.path(), &[]);
    let list = Libraries::list(place.path());
    let before = DIRECTORIES * before_each_directory();
    let all = (before + PLAIN_MISSES, before);
    // 455 and 200 on a CPU with x86-64-v4 and glibc 2.36.
    let program = fixture.program();
    assert_eq!(misses(&Start::of(&program, place.path()).with(&list).assert_alike()), all);
    for tags in ["--disable-new-dtags", "--enable-new-dtags"] {
        let place = tempfile::tempdir().unwrap();
        let rpath = format!("-Wl,{tags},-rpath,{}", Libraries::list(place.path()));
        let fixture = Libraries::make(place.path(), &[&rpath]);
        let program = fixture.program();
        assert_eq!(misses(&Start::of(&program, place.path()).assert_alike()), all);
    }
}

#[test]
fn a_directory_of_links_ends_the_search() {
    let place = tempfile::tempdir().unwrap();
    let fixture = Libraries::make(place.path(), &[]);
    let farm = place.path().join("farm");
    fs::create_dir(&farm).unwrap();
    for n in 0..LIBRARIES {
        symlink(fixture.library(n), farm.join(Libraries::name(n))).unwrap();
    }
    let list = format!("{}:{}", farm.display(), Libraries::list(place.path()));
    let program = fixture.program();
    let start = Start::of(&program, place.path()).with(&list);
    let (opens, stats) = misses(&start.assert_alike());
    // libc alone is searched in all directories.
    let before = before_each_directory();
    assert_eq!((opens, stats), ((DIRECTORIES + 1) * (before + 1), (DIRECTORIES + 1) * before));
    let (_, cache) = linker();
    let libc = String::from_utf8(cache.path_of(b"libc.so.6").unwrap().to_vec()).unwrap();
    symlink(libc, farm.join("libc.so.6")).unwrap();
    assert_eq!(misses(&start.assert_alike()), (before, before));
}

#[test]
fn lists_come_in_order_and_libraries_inherit_rpath_only() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path();
    for directory in ["rpath", "runpath", "env", "deep"] {
        fs::create_dir(cwd.join(directory)).unwrap();
    }
    fs::write(cwd.join("a.c"), "int b(void);\nint a(void) { return b(); }\n").unwrap();
    fs::write(cwd.join("b.c"), "int b(void) { return 0; }\n").unwrap();
    fs::write(cwd.join("main.c"), "int a(void);\nint main(void) { return a(); }\n").unwrap();
    let compile = |line: &str| execute(cwd, &format!("cc {line}"));
    compile("-shared -fPIC b.c -Wl,-soname,libb.so -o deep/libb.so");
    for directory in ["rpath", "runpath", "env"] {
        compile(&format!(
            "-shared -fPIC a.c -Ldeep -lb -Wl,-soname,liba.so -o {directory}/liba.so"
        ));
    }
    let link = "main.c -Lenv -la -Wl,-rpath-link,deep";
    compile(&format!(
        "{link} -Wl,--disable-new-dtags,-rpath,$ORIGIN/rpath:$ORIGIN/deep -o with_rpath"
    ));
    compile(&format!(
        "{link} -Wl,--enable-new-dtags,-rpath,$ORIGIN/runpath:$ORIGIN/deep -o with_runpath"
    ));
    let env = format!("{}:{}", cwd.join("env").display(), cwd.join("deep").display());
    let loads = |program: &str, list: Option<&str>| {
        let program = cwd.join(program);
        let start = Start { library_path: list.map(OsStr::new), ..Start::of(&program, cwd) };
        let loaded = start.assert_alike().loaded;
        let a = loaded.iter().find(|path| path.ends_with(b"liba.so"));
        a.map(|path| String::from_utf8_lossy(path).into_owned()).unwrap_or_default()
    };
    assert!(loads("with_rpath", Some(&env)).ends_with("rpath/liba.so"));
    assert!(loads("with_rpath", None).ends_with("rpath/liba.so"));
    assert!(loads("with_runpath", Some(&env)).ends_with("env/liba.so"));
    // RUNPATH holds for the program's own libraries, not for theirs: libb is missing.
    assert!(loads("with_runpath", None).ends_with("runpath/liba.so"));
    let program = cwd.join("with_runpath");
    assert_eq!(Start::of(&program, cwd).modelled().missing, [b"libb.so".to_vec()]);
    // Empty entries are the working directory, which is searched without a stat.
    for list in [":", "env::deep", "env/:env//:./deep;env", "/no/such;deep:env"] {
        Start::of(&program, cwd).with(list).assert_alike();
    }
}

/// Programs that no one here wrote.
#[test]
fn programs_of_the_system_are_searched_alike() {
    let list = "/usr/local/lib:/opt/lib:/no/such/directory:/tmp";
    let programs =
        ["true", "env", "ls", "perl", "git", "bash"].map(|name| Path::new("/usr/bin").join(name));
    for program in programs.iter().filter(|program| program.exists()) {
        for list in [None, Some(OsStr::new(list))] {
            let start = Start { library_path: list, ..Start::of(program, Path::new("/")) };
            let (seen, _) = start.seen();
            let model = start.modelled();
            assert!(model.missing.is_empty(), "{program:?} {:?}", model.missing);
            // What a program itself looks up afterwards is not the linker's.
            assert!(seen.len() >= model.probes.len(), "{program:?}");
            for (probe, seen) in model.probes.iter().zip(&seen) {
                let path = probe.path.clone();
                assert_eq!(&(probe.call, path, probe.found), seen, "{program:?} {list:?}");
            }
        }
    }
}
