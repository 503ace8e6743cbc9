//! The model against the dynamic linker of this system, look-up by look-up, as strace sees it. Needs a C
//! compiler, strace, and glibc 2.33 or later.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use proctrace_fixtures::libraries::{DIRECTORIES, LIBRARIES, Libraries, PLAIN_MISSES};

use crate::support::{Start, before_each_directory, execute, linker, misses};
use proctrace_libsearch::{LinkerCall, Search};

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

/// Its look-ups are not the start's, which ends before.
#[test]
fn what_dlopen_looks_up_is_not_of_the_start() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path();
    fs::create_dir(cwd.join("d")).unwrap();
    fs::write(cwd.join("b.c"), "int b(void) { return 0; }\n").unwrap();
    let main = "#include <dlfcn.h>\n\
        int b(void);\n\
        int main(void) {\n\
            const char *names[] = {\"libb.so\", \"./d/libd.so\", \"libd.so\", \"libm.so.6\"};\n\
            for (int n = 0; n < 4; n++) if (!dlopen(names[n], RTLD_NOW)) return 1;\n\
            return b();\n\
        }\n";
    fs::write(cwd.join("main.c"), main).unwrap();
    execute(cwd, "cc -shared -fPIC b.c -Wl,-soname,libb.so -o libb.so");
    execute(cwd, "cc -shared -fPIC b.c -Wl,-soname,libd.so -o d/libd.so");
    execute(cwd, "cc main.c -L. -l:libb.so -Wl,-rpath,$ORIGIN/none:$ORIGIN -o program");
    let program = cwd.join("program");
    let start = Start::of(&program, cwd);
    let (model, (seen, ended_well)) = (start.modelled(), start.seen());
    assert!(ended_well);
    let modelled = model.probes.iter().map(|probe| (probe.call, probe.path.clone(), probe.found));
    let (known, later) = seen.split_at(model.probes.len());
    assert!(modelled.eq(known.iter().cloned()));
    // What is loaded already is not searched, and a path not more than opened.
    assert_eq!(later[0], (LinkerCall::Open, b"./d/libd.so".to_vec(), true));
    assert!(later[1..].iter().all(|(_, path, _)| path.ends_with(b"/libm.so.6")), "{later:?}");
}

/// A library is searched once, whoever asks for it, and by whatever name it is known.
#[test]
fn a_loaded_library_is_not_searched_again() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path();
    fs::write(cwd.join("b.c"), "int b(void) { return 0; }\n").unwrap();
    fs::write(cwd.join("a.c"), "int b(void);\nint a(void) { return b(); }\n").unwrap();
    fs::write(
        cwd.join("main.c"),
        "int a(void);\nint b(void);\nint main(void) { return a() + b(); }\n",
    )
    .unwrap();
    execute(cwd, "cc -shared -fPIC b.c -Wl,-soname,libb.so -o libb.so");
    execute(cwd, "cc -shared -fPIC a.c -L. -lb -Wl,-soname,liba.so -o liba.so");
    execute(cwd, "cc main.c -L. -la -lb -o program");
    let program = cwd.join("program");
    let start = Start::of(&program, cwd).with(".");
    let count = |search: &Search, name: &str| {
        search.libraries.iter().filter(|library| *library == name.as_bytes()).count()
    };
    assert_eq!(count(&start.assert_alike(), "libb.so"), 1);
    // By its path first: its DT_SONAME counts.
    let search = start.preloading("./libb.so").assert_alike();
    assert_eq!((count(&search, "./libb.so"), count(&search, "libb.so")), (1, 0));
    // By a name that is not its DT_SONAME: the same file is found, and not loaded again.
    execute(cwd, "cc -shared -fPIC b.c -o libb.so");
    symlink("libb.so", cwd.join("libother.so")).unwrap();
    let search = start.preloading("libother.so libother.so").assert_alike();
    assert_eq!((count(&search, "libother.so"), count(&search, "libb.so")), (1, 1));
    assert_eq!(search.loaded.len(), 5);
}

/// The first that is missing ends the start; a program by a relative path and by a link has the
/// $ORIGIN of its file.
#[test]
fn starts_in_other_places_and_without_libraries() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path();
    fs::create_dir_all(cwd.join("x/y")).unwrap();
    fs::write(cwd.join("a.c"), "int a(void) { return 0; }\n").unwrap();
    fs::write(cwd.join("b.c"), "int b(void) { return 0; }\n").unwrap();
    fs::write(
        cwd.join("main.c"),
        "int a(void);\nint b(void);\nint main(void) { return a() + b(); }\n",
    )
    .unwrap();
    execute(cwd, "cc -shared -fPIC a.c -Wl,-soname,liba.so -o x/liba.so");
    execute(cwd, "cc -shared -fPIC b.c -Wl,-soname,libb.so -o x/libb.so");
    execute(cwd, "cc main.c -Lx -la -lb -Wl,-rpath,$ORIGIN/x -o program");
    symlink("../../program", cwd.join("x/y/link")).unwrap();
    let inner = cwd.join("x/y");
    for (program, cwd) in [("./program", cwd), ("../../program", &inner), ("link", &inner)] {
        let path = Path::new(program);
        // strace looks a name without a slash up in PATH.
        let path = if program == "link" { Path::new("./link") } else { path };
        assert!(Start::of(path, cwd).assert_alike().missing.is_empty(), "{program}");
    }
    let list = "..:../x:/:y:./liba.so";
    Start::of(Path::new("../../program"), &inner).with(list).assert_alike();
    fs::remove_file(cwd.join("x/liba.so")).unwrap();
    fs::remove_file(cwd.join("x/libb.so")).unwrap();
    let search = Start::of(Path::new("./program"), cwd).with("/").assert_alike();
    assert_eq!(search.missing, [b"liba.so"]);
    execute(cwd, "cc -shared -fPIC b.c -Wl,-soname,libb.so,-z,nodefaultlib -o x/libb.so");
    execute(cwd, "cc -shared -fPIC a.c -Wl,-soname,liba.so,-z,nodefaultlib -o x/liba.so");
    // libc is in a default directory, where it is not searched for these.
    execute(cwd, "cc main.c -Lx -la -lb -Wl,-rpath,$ORIGIN/x,-z,nodefaultlib -o program");
    assert_eq!(Start::of(Path::new("./program"), cwd).assert_alike().missing, [b"libc.so.6"]);
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
