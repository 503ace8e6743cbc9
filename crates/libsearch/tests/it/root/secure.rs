//! Starts of set-user-ID programs, whose linker trusts little: the model against glibc, as strace sees
//! it. Needs a C compiler, strace and root.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use proctrace_libsearch::{Cause, Elf};

use crate::support::{Start, execute, linker};

/// Directories with a library, and programs of another user.
struct Place {
    directory: tempfile::TempDir,
}

impl Place {
    fn make() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cwd = directory.path();
        fs::set_permissions(cwd, fs::Permissions::from_mode(0o755)).unwrap();
        for name in ["a", "b"] {
            fs::create_dir(cwd.join(name)).unwrap();
        }
        fs::write(cwd.join("a.c"), "int b(void);\nint a(void) { return b(); }\n").unwrap();
        fs::write(cwd.join("b.c"), "int b(void) { return 0; }\n").unwrap();
        fs::write(cwd.join("main.c"), "int a(void);\nint main(void) { return a(); }\n").unwrap();
        execute(cwd, "cc -shared -fPIC b.c -Wl,-soname,libb.so -o b/libb.so");
        let made = Self { directory };
        made.library("$ORIGIN/../b");
        made
    }

    fn cwd(&self) -> &Path {
        self.directory.path()
    }

    fn library(&self, list: &str) {
        let rest = format!("-Wl,-soname,liba.so,-rpath,{list} -o a/liba.so");
        execute(self.cwd(), &format!("cc -shared -fPIC a.c -Lb -lb {rest}"));
    }

    /// A program whose start is secure.
    fn program(&self, arguments: &str) -> PathBuf {
        let line = format!("cc main.c -La -la -Wl,-rpath-link,b {arguments} -o program");
        execute(self.cwd(), &line);
        execute(self.cwd(), "chown nobody program");
        execute(self.cwd(), "chmod u+s program");
        self.cwd().join("program")
    }
}

#[test]
fn the_environment_has_no_directories() {
    let place = Place::make();
    let directory = place.cwd().display();
    let program = place.program(&format!("-Wl,-rpath,{directory}/a"));
    let start = Start::of(&program, place.cwd()).secure();
    let list = format!("{directory}/b:/no/such:b");
    let search = start.with(&list).assert_alike();
    assert!(search.missing.is_empty());
    assert!(!search.probes.iter().any(|probe| matches!(probe.cause, Cause::LibraryPath(_))));
    // The cache is used.
    assert!(search.probes.iter().any(|probe| probe.cause == Cause::Cache));
}

#[test]
fn preloads_are_searched_in_vain() {
    let place = Place::make();
    let directory = place.cwd().display();
    for tag in ["--enable-new-dtags", "--disable-new-dtags"] {
        let program = place.program(&format!("-Wl,{tag},-rpath,{directory}/a:b"));
        let start = Start::of(&program, place.cwd()).secure();
        // Names with a path are not even opened.
        let plain = start.assert_alike();
        let list = format!("{directory}/b/libb.so b/libb.so:./libb.so::/lib/libm.so.6");
        assert_eq!(start.preloading(&list).assert_alike().probes, plain.probes);
        // Others are searched without the cache, and not loaded without the set-user-ID bit.
        for list in ["libm.so.6", "libb.so libnone.so", "libm.so.6:liba.so libm.so.6"] {
            let search = start.preloading(list).assert_alike();
            assert!(search.probes.len() > plain.probes.len(), "{list}");
            assert!(search.missing.is_empty());
        }
        for length in [254, 255, 256, 4095, 4096] {
            start.preloading(&"n".repeat(length)).assert_alike();
        }
    }
    // Without a secure start, paths may be longer.
    execute(place.cwd(), "chmod u-s program");
    for length in [254, 255, 256, 4095, 4096] {
        let program = place.cwd().join("program");
        Start::of(&program, place.cwd()).preloading(&"n".repeat(length)).assert_alike();
    }
}

#[test]
fn only_a_trusted_origin_is_a_directory() {
    let place = Place::make();
    let directory = place.cwd().display();
    let missing = |list: &str| {
        let program = place.program(&format!("-Wl,-rpath,{list}"));
        Start::of(&program, place.cwd()).secure().assert_alike().missing
    };
    let none: [&[u8]; 0] = [];
    // That of the program is where anyone may have linked it to.
    assert_eq!(missing("$ORIGIN/a"), [b"liba.so"]);
    assert_eq!(missing("$ORIGIN/a:${ORIGIN}:$LIB:$PLATFORM/x"), [b"liba.so"]);
    assert_eq!(missing(&format!("{directory}/a")), none);
    assert_eq!(missing("a"), none);
    assert_eq!(missing(":a::/no/such"), none);
    // That of a library must come first.
    place.library("/$ORIGIN/../b");
    assert_eq!(missing("a"), [b"libb.so"]);
    place.library("$ORIGIN:$ORIGIN/../b");
    assert_eq!(missing("a"), none);
}

/// A root directory with glibc, a program below a trusted directory, and what /proc says of it.
#[test]
fn an_origin_below_a_default_directory_is_trusted() {
    let place = Place::make();
    let root = place.cwd();
    let own = Elf::parse(&fs::read("/proc/self/exe").unwrap()[..]).unwrap();
    let interpreter = String::from_utf8(own.interpreter.unwrap()).unwrap();
    let (linker, cache) = linker();
    let trusted = String::from_utf8(linker.default_directories[0].clone()).unwrap();
    let libc = String::from_utf8(cache.path_of(b"libc.so.6").unwrap().to_vec()).unwrap();
    let inside = |path: &str| root.join(path.trim_start_matches('/'));
    fs::create_dir_all(inside(&format!("{trusted}/x"))).unwrap();
    for file in [&interpreter, &libc] {
        fs::create_dir_all(inside(file).parent().unwrap()).unwrap();
        fs::copy(file, inside(file)).unwrap();
    }
    let path = format!("{trusted}/x/program");
    fs::create_dir_all(root.join("proc/self")).unwrap();
    symlink(&path, root.join("proc/self/exe")).unwrap();
    fs::copy(root.join("a/liba.so"), inside(&format!("{trusted}/x/liba.so"))).unwrap();
    fs::create_dir(inside(&format!("{trusted}/b"))).unwrap();
    fs::copy(root.join("b/libb.so"), inside(&format!("{trusted}/b/libb.so"))).unwrap();
    for (list, is_found) in [
        ("$ORIGIN", true),
        ("$ORIGIN/../../../../a", false),
        ("$ORIGIN/.././x//", true),
        ("x:$ORIGIN/", true),
        ("/$ORIGIN", false),
    ] {
        fs::rename(place.program(&format!("-Wl,-rpath,{list}")), inside(&path)).unwrap();
        let search = Start::below(root, &path).secure().assert_alike();
        assert_eq!(search.missing.is_empty(), is_found, "{list}");
        // Others may start it from anywhere.
        execute(root, &format!("chmod u-s {}", inside(&path).display()));
        assert!(Start::below(root, &path).assert_alike().missing.is_empty(), "{list}");
    }
}
