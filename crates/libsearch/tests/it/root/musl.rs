//! The model against musl's dynamic linker, look-up by look-up, as strace sees it. Needs musl-gcc,
//! patchelf and strace, and root for chroot(2).

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use proctrace_libsearch::{Cause, LinkerCall, Search};

use crate::support::{Start, execute};

const LOADER: &str = "/lib/ld-musl-x86_64.so.1";
const PATH_FILE: &str = "etc/ld-musl-x86_64.path";

/// A program that needs liba.so in directory a, which needs libb.so in directory b.
struct Place {
    directory: tempfile::TempDir,
    program: PathBuf,
}

impl Place {
    fn make() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let cwd = directory.path();
        for name in ["a", "b", "c"] {
            fs::create_dir(cwd.join(name)).unwrap();
        }
        fs::write(cwd.join("a.c"), "int b(void);\nint a(void) { return b(); }\n").unwrap();
        fs::write(cwd.join("b.c"), "int b(void) { return 0; }\n").unwrap();
        fs::write(cwd.join("main.c"), "int a(void);\nint main(void) { return a(); }\n").unwrap();
        let made = Self { program: cwd.join("program"), directory };
        made.run("musl-gcc -shared -fPIC b.c -Wl,-soname,libb.so -o b/libb.so");
        made.run("musl-gcc -shared -fPIC a.c -Lb -lb -Wl,-soname,liba.so -o a/liba.so");
        made.run("musl-gcc main.c -La -la -Wl,-rpath-link,b -o program");
        made
    }

    fn cwd(&self) -> &Path {
        self.directory.path()
    }

    fn run(&self, line: &str) {
        execute(self.cwd(), line);
    }

    fn start(&self) -> Start<'_> {
        Start::of(&self.program, self.cwd())
    }

    /// Makes the place the root directory of another start: with a loader, but without /proc.
    fn fill_root(&self) {
        for name in ["lib", "etc"] {
            fs::create_dir(self.cwd().join(name)).unwrap();
        }
        fs::copy(LOADER, self.cwd().join(&LOADER[1..])).unwrap();
    }

    fn below(&self) -> Search {
        Start::below(self.cwd(), "/program").assert_alike()
    }
}

/// The paths of all look-ups.
fn paths(search: &Search) -> Vec<String> {
    let paths = search.probes.iter().map(|probe| probe.path.clone());
    paths.map(|path| String::from_utf8(path).unwrap()).collect()
}

#[test]
fn a_library_path_is_tried_as_it_is() {
    let place = Place::make();
    let search = place.start().with("/no/such:a:b").assert_alike();
    let expected = ["/no/such/liba.so", "a/liba.so", "/no/such/libb.so", "a/libb.so", "b/libb.so"];
    assert_eq!(paths(&search), expected);
    assert!(search.probes.iter().all(|probe| probe.call == LinkerCall::Open));
    assert_eq!(search.probes[4].cause, Cause::LibraryPath(2));
    assert_eq!(search.missing, [b""; 0]);
    let absolute = format!("{0}/a:{0}/b", place.cwd().display());
    let long = format!("/{}:a:b", "long/".repeat(120));
    for list in ["a::b", "::a/://:b//", "a\nb\n", "./b:./a", "b;a:b:a", &absolute, &long, "a:b:a:b"]
    {
        assert!(place.start().with(list).assert_alike().missing.is_empty(), "{list:?}");
    }
    // Without an entry, the directories of the system follow.
    for list in ["", ":", "a:program:main.c", "$ORIGIN/a:$ORIGIN/b"] {
        assert!(!place.start().with(list).assert_alike().missing.is_empty(), "{list:?}");
    }
    // The working directory is that of the process.
    let inner = place.cwd().join("c");
    let relative = Start::of(Path::new("../program"), &inner).with("../a:../b").assert_alike();
    assert_eq!(relative.loaded[1], b"../a/liba.so");
}

#[test]
fn libraries_inherit_rpath_and_runpath() {
    let place = Place::make();
    // The program's list holds for the libraries of its libraries, after their own.
    for tag in ["", "--force-rpath "] {
        place.run(&format!("patchelf {tag}--set-rpath $ORIGIN/c::${{ORIGIN}}/a:$ORIGIN/b program"));
        place.run(&format!("patchelf {tag}--set-rpath $ORIGIN/../c a/liba.so"));
        let search = place.start().assert_alike();
        assert!(search.missing.is_empty());
        let directory = place.cwd().display();
        let expected = ["c/liba.so", "a/liba.so", "a/../c/libb.so", "c/libb.so"];
        let expected = expected.map(|path| format!("{directory}/{path}"));
        assert_eq!(paths(&search)[..4], expected);
        let (object, at) = match &search.probes[3].cause {
            Cause::Rpath(object, at) if !tag.is_empty() => (object, at),
            Cause::Runpath(object, at) if tag.is_empty() => (object, at),
            other => panic!("{other:?}"),
        };
        assert_eq!((&**object, *at), (place.program.to_str().unwrap().as_bytes(), 0));
    }
    // LD_LIBRARY_PATH comes first.
    let search = place.start().with("c:b").assert_alike();
    assert_eq!(paths(&search)[0], "c/liba.so");
    // $ORIGIN is that of the file, not that of a link to it.
    symlink("../program", place.cwd().join("c/link")).unwrap();
    assert!(Start::of(&place.cwd().join("c/link"), place.cwd()).assert_alike().missing.is_empty());
    let relative = Start::of(Path::new("c/link"), place.cwd()).assert_alike();
    assert!(relative.missing.is_empty());
    // Another dollar sign makes the whole list void.
    for list in ["$ORIGIN/a:$LIB:$ORIGIN/b", "$ORIGIN/a:$ORIGIN/b:$", "$ORIGINAL/a:/${ORIGIN"] {
        place.run(&format!("patchelf --set-rpath {list} program"));
        assert!(!place.start().assert_alike().missing.is_empty(), "{list}");
    }
}

#[test]
fn a_secure_start_has_neither_lists_nor_origin() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::make();
    fs::set_permissions(place.cwd(), fs::Permissions::from_mode(0o755)).unwrap();
    let directory = place.cwd().display().to_string();
    let set_user_id = || {
        place.run("chown nobody program");
        place.run("chmod u+s program");
        place.start().secure()
    };
    let start = set_user_id().with("a:b").preloading("a/liba.so libb.so");
    assert_eq!(start.assert_alike().missing, [b"liba.so"]);
    place.run("patchelf --set-rpath $ORIGIN/a program");
    assert_eq!(set_user_id().assert_alike().missing, [b"liba.so"]);
    // That of a library is known.
    place.run(&format!("patchelf --set-rpath {directory}/a program"));
    place.run("patchelf --set-rpath $ORIGIN/../b a/liba.so");
    assert!(set_user_id().assert_alike().missing.is_empty());
    place.run("patchelf --set-rpath a program");
    assert_eq!(set_user_id().assert_alike().missing, [b"libb.so"]);
}

#[test]
fn every_missing_library_is_searched() {
    let place = Place::make();
    place.run("patchelf --add-needed libnone.so program");
    place.run("patchelf --add-needed none/libnone.so program");
    place.run("patchelf --add-needed libnone.so a/liba.so");
    let search = place.start().with("a").assert_alike();
    assert_eq!(search.missing.len(), 4, "{:?}", search.missing);
    let reads = search.probes.iter().filter(|probe| probe.cause == Cause::PathFile);
    assert_eq!(reads.count(), 1);
}

#[test]
fn a_library_is_known_by_the_name_of_its_file() {
    let place = Place::make();
    // DT_SONAME is ignored.
    place.run("patchelf --set-soname libother.so a/liba.so");
    place.run("patchelf --add-needed libother.so program");
    assert_eq!(place.start().with("a:b").assert_alike().missing, [b"libother.so"]);
    // patchelf adds names in front. The link is loaded; by the other name the file is searched each time,
    // and found to be loaded.
    symlink("liba.so", place.cwd().join("a/libother.so")).unwrap();
    place.run("patchelf --add-needed liba.so b/libb.so");
    let search = place.start().with("a:b").assert_alike();
    let opens = |name| paths(&search).iter().filter(|path| **path == name).count();
    assert_eq!((opens("a/libother.so"), opens("a/liba.so"), search.loaded.len()), (1, 2, 4));
    // A path is opened each time, and gives no name.
    place.run("patchelf --replace-needed liba.so a/liba.so program");
    place.run("patchelf --add-needed a/liba.so b/libb.so");
    assert!(place.start().with("a:b").assert_alike().missing.is_empty());
}

#[test]
fn libc_is_loaded_whatever_its_name() {
    let place = Place::make();
    for name in ["libm.so.6", "libc.so", "libpthread.so.0", "libc.musl-x86_64.so.1", LOADER] {
        place.run(&format!("patchelf --add-needed {name} program"));
    }
    assert_eq!(place.start().with("a:b").assert_alike().loaded.len(), 4);
    // By its path it is opened.
    place.run("patchelf --add-needed /usr/lib/x86_64-linux-musl/libc.so program");
    let search = place.start().with("a:b").assert_alike();
    assert_eq!((search.missing.len(), search.loaded.len()), (0, 4));
    // A name like a reserved one is none.
    place.run("patchelf --add-needed libmine.so program");
    assert_eq!(place.start().with("a:b").assert_alike().missing, [b"libmine.so"]);
}

#[test]
fn preloads_come_first_and_may_be_missing() {
    let place = Place::make();
    for list in ["libb.so", " b/libb.so:libnone.so\tnone/libnone.so", ":: a/liba.so", "libc.so.6"] {
        let search = place.start().with("a:b").preloading(list).assert_alike();
        assert!(search.missing.is_empty(), "{list}");
    }
    // The program's own list does not hold for them.
    place.run("patchelf --set-rpath $ORIGIN/a:$ORIGIN/b program");
    let search = place.start().preloading("libb.so").assert_alike();
    assert_eq!(search.probes[0].cause, Cause::PathFile);
}

#[test]
fn the_first_file_that_can_be_opened_ends_a_search() {
    let place = Place::make();
    let file = place.cwd().join("c/liba.so");
    let fails = |what: &str| {
        let search = place.start().with("c:a:b").assert_alike();
        assert_eq!(
            (&search.missing[..], search.probes.len()),
            (&[b"liba.so".to_vec()][..], 1),
            "{what}"
        );
        fs::remove_file(&file).or_else(|_| fs::remove_dir(&file)).unwrap();
    };
    fs::create_dir(&file).unwrap();
    fails("directory");
    for text in ["", "text", &"long text\n".repeat(1000)] {
        fs::write(&file, text).unwrap();
        fails("text");
    }
    symlink("liba.so", &file).unwrap();
    fails("circle");
    symlink("none", &file).unwrap();
    assert!(place.start().with("c:a:b").assert_alike().missing.is_empty());
}

#[test]
fn a_file_names_the_directories_of_the_system() {
    let place = Place::make();
    place.fill_root();
    let search = place.below();
    let expected =
        ["/etc/ld-musl-x86_64.path", "/lib/liba.so", "/usr/local/lib/liba.so", "/usr/lib/liba.so"];
    assert_eq!(paths(&search), expected);
    let causes: Vec<_> = search.probes.iter().map(|probe| probe.cause.clone()).collect();
    assert_eq!(causes, [Cause::PathFile, Cause::Default(0), Cause::Default(1), Cause::Default(2)]);
    let file = place.cwd().join(PATH_FILE);
    for (text, is_complete) in [
        ("/none\n/a\n\n/none:/b:\n", true),
        ("/a\0:/b", false),
        ("a:b", true),
        ("", false),
        ("\n", false),
        (&format!("{}:/a:/b", "/none:".repeat(500)), true),
    ] {
        fs::write(&file, text).unwrap();
        assert_eq!(place.below().missing.is_empty(), is_complete, "{text:?}");
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert_eq!(place.below().probes.len(), 1);
    fs::remove_dir(&file).unwrap();
    symlink("ld-musl-x86_64.path", &file).unwrap();
    assert_eq!(place.below().probes.len(), 1);
    // With LD_LIBRARY_PATH, it is not opened before it is needed.
    let search = Start::below(place.cwd(), "/program").with("a:/b").assert_alike();
    assert!(search.probes.iter().all(|probe| probe.cause != Cause::PathFile));
}

#[test]
fn the_file_is_below_the_prefix_of_the_interpreter() {
    let place = Place::make();
    place.fill_root();
    fs::write(place.cwd().join(PATH_FILE), "/a:/b").unwrap();
    for (interpreter, file) in [
        ("/opt/musl/lib/ld-musl-x86_64.so.1", "/opt/musl/etc/ld-musl-x86_64.path"),
        ("/ld-musl-x86_64.so.1", "/etc/ld-musl-x86_64.path"),
    ] {
        let copy = place.cwd().join(&interpreter[1..]);
        fs::create_dir_all(copy.parent().unwrap()).unwrap();
        fs::copy(LOADER, copy).unwrap();
        place.run(&format!("patchelf --set-interpreter {interpreter} program"));
        assert_eq!(paths(&place.below())[0], file);
    }
}

#[test]
fn without_proc_the_program_has_no_origin() {
    let place = Place::make();
    place.fill_root();
    place.run("patchelf --set-rpath $ORIGIN/a program");
    assert_eq!(place.below().missing, [b"liba.so"]);
    // Libraries have one.
    place.run("patchelf --set-rpath /a program");
    place.run("patchelf --set-rpath $ORIGIN/../b a/liba.so");
    assert!(place.below().missing.is_empty());
}
