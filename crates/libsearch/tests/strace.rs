//! The model against the dynamic linker of this system, look-up by look-up, as strace sees it. Needs a C
//! compiler, strace, and glibc 2.33 or later.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use proctrace_fixtures::libraries::{DIRECTORIES, LIBRARIES, Libraries, PLAIN_MISSES};
use proctrace_libsearch::{Cache, Call, Elf, Linker, Program, Root, Search, search};

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    String::from_utf8(output.stdout).unwrap()
}

fn linker() -> (Linker, Cache) {
    let own = Elf::parse(&fs::read("/proc/self/exe").unwrap()[..]).unwrap();
    let interpreter = String::from_utf8(own.interpreter.unwrap()).unwrap();
    let linker = Linker::of_help(&run(Command::new(interpreter).arg("--help")));
    assert!(!linker.default_directories.is_empty(), "{linker:?}");
    (linker, Cache::parse(&fs::read("/etc/ld.so.cache").unwrap()).unwrap())
}

/// A look-up as strace prints it.
type Seen = (Call, String, bool);

/// The look-ups of the linker at the start of a program, and its exit status.
fn seen(program: &Path, library_path: Option<&str>, cwd: &Path) -> (Vec<Seen>, Option<i32>) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = Command::new("strace");
    command.args(["-s", "8192", "-e", "trace=open,openat,stat,newfstatat", "-o"]).arg(log.path());
    if let Some(list) = library_path {
        command.arg("-E").arg(format!("LD_LIBRARY_PATH={list}"));
    }
    // cargo sets it for tests.
    command.env_remove("LD_LIBRARY_PATH").current_dir(cwd);
    let status = command.arg(program).output().unwrap().status;
    let text = fs::read_to_string(log.path()).unwrap();
    let seen = text.lines().filter_map(|line| {
        let (call, rest) = line.split_once('(')?;
        let call = if call.starts_with("open") { Call::Open } else { Call::Stat };
        let path = rest.strip_prefix("AT_FDCWD, ").unwrap_or(rest).strip_prefix('"')?;
        let (path, rest) = path.split_once('"')?;
        let found = !rest.contains(" = -1 ");
        (path != "/etc/ld.so.cache").then(|| (call, path.to_owned(), found))
    });
    (seen.collect(), status.code())
}

fn modelled(program: &Path, library_path: Option<&str>, cwd: &Path) -> Search {
    let (linker, cache) = linker();
    let path = program.display().to_string();
    let program = Program {
        path: path.as_bytes(),
        cwd: cwd.as_os_str().as_encoded_bytes(),
        library_path: library_path.map(str::as_bytes),
        preload: None,
        secure: false,
    };
    search(&program, &linker, &cache, &Root::new("/")).expect("a dynamic executable")
}

/// Compares model and reality; returns the failed opens and stats.
fn assert_alike(program: &Path, library_path: Option<&str>, cwd: &Path) -> (usize, usize) {
    let (seen, status) = seen(program, library_path, cwd);
    let model = modelled(program, library_path, cwd);
    let modelled: Vec<Seen> = model
        .probes
        .iter()
        .map(|probe| (probe.call, String::from_utf8(probe.path.clone()).unwrap(), probe.found))
        .collect();
    for (at, (one, other)) in modelled.iter().zip(&seen).enumerate() {
        assert_eq!(one, other, "look-up {at} of {}", seen.len());
    }
    assert_eq!(modelled.len(), seen.len(), "{:?}", &seen[modelled.len().min(seen.len())..]);
    assert_eq!(model.missing.is_empty(), status != Some(127), "{:?}", model.missing);
    let misses = |call| model.misses().filter(|probe| probe.call == call).count();
    (misses(Call::Open), misses(Call::Stat))
}

/// Sub-directories that are tried before a directory itself.
fn before_each_directory() -> usize {
    let (linker, _) = linker();
    linker.capabilities.hwcaps.len() + (1 << linker.capabilities.legacy.len()) - 1
}

#[test]
fn twenty_directories_and_thirty_libraries() {
    let place = tempfile::tempdir().unwrap();
    let fixture = Libraries::make(place.path(), &[]);
    let list = Libraries::list(place.path());
    let before = DIRECTORIES * before_each_directory();
    let all = (before + PLAIN_MISSES, before);
    // 455 and 200 on a CPU with x86-64-v4 and glibc 2.36.
    assert_eq!(assert_alike(&fixture.program(), Some(&list), place.path()), all);
    for tags in ["--disable-new-dtags", "--enable-new-dtags"] {
        let place = tempfile::tempdir().unwrap();
        let rpath = format!("-Wl,{tags},-rpath,{}", Libraries::list(place.path()));
        let fixture = Libraries::make(place.path(), &[&rpath]);
        assert_eq!(assert_alike(&fixture.program(), None, place.path()), all);
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
    let (opens, stats) = assert_alike(&fixture.program(), Some(&list), place.path());
    // libc alone is searched in all directories.
    let before = before_each_directory();
    assert_eq!((opens, stats), ((DIRECTORIES + 1) * (before + 1), (DIRECTORIES + 1) * before));
    let (_, cache) = linker();
    let libc = String::from_utf8(cache.path_of(b"libc.so.6").unwrap().to_vec()).unwrap();
    symlink(libc, farm.join("libc.so.6")).unwrap();
    assert_eq!(assert_alike(&fixture.program(), Some(&list), place.path()), (before, before));
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
    let compile = |line: &str| {
        run(Command::new("cc").args(line.split(' ')).current_dir(cwd));
    };
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
        assert_alike(&program, list, cwd);
        let loaded = modelled(&program, list, cwd).loaded;
        let a = loaded.iter().find(|path| path.ends_with(b"liba.so"));
        a.map(|path| String::from_utf8_lossy(path).into_owned()).unwrap_or_default()
    };
    assert!(loads("with_rpath", Some(&env)).ends_with("rpath/liba.so"));
    assert!(loads("with_rpath", None).ends_with("rpath/liba.so"));
    assert!(loads("with_runpath", Some(&env)).ends_with("env/liba.so"));
    // RUNPATH holds for the program's own libraries, not for theirs: libb is missing.
    assert!(loads("with_runpath", None).ends_with("runpath/liba.so"));
    let program = cwd.join("with_runpath");
    assert_eq!(modelled(&program, None, cwd).missing, [b"libb.so".to_vec()]);
    // Empty entries are the working directory, which is searched without a stat.
    for list in [":", "env::deep", "env/:env//:./deep;env", "/no/such;deep:env"] {
        assert_alike(&program, Some(list), cwd);
    }
}

/// Programs that no one here wrote.
#[test]
fn programs_of_the_system_are_searched_alike() {
    let list = "/usr/local/lib:/opt/lib:/no/such/directory:/tmp";
    let programs =
        ["true", "env", "ls", "perl", "git", "bash"].map(|name| Path::new("/usr/bin").join(name));
    for program in programs.iter().filter(|program| program.exists()) {
        for list in [None, Some(list)] {
            let (seen, _) = seen(program, list, Path::new("/"));
            let model = modelled(program, list, Path::new("/"));
            assert!(model.missing.is_empty(), "{program:?} {:?}", model.missing);
            // What a program itself looks up afterwards is not the linker's.
            assert!(seen.len() >= model.probes.len(), "{program:?}");
            for (probe, seen) in model.probes.iter().zip(&seen) {
                let path = String::from_utf8(probe.path.clone()).unwrap();
                assert_eq!(&(probe.call, path, probe.found), seen, "{program:?} {list:?}");
            }
        }
    }
}
