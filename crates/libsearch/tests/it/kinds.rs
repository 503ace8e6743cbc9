//! Kinds of programs: static ones, scripts, and dynamic linkers that are run as programs. Needs a C
//! compiler and strace.

use std::ffi::CString;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proctrace_libsearch::{Elf, Search, Unmodelled};

use crate::support::{Start, execute};

#[test]
fn a_static_executable_looks_nothing_up() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path();
    fs::write(cwd.join("main.c"), "int main(void) { return 0; }\n").unwrap();
    for (name, arguments) in
        [("static", "-static"), ("static-pie", "-static-pie"), ("no-pie", "-static -no-pie")]
    {
        execute(cwd, &format!("cc main.c {arguments} -o {name}"));
        let program = cwd.join(name);
        let search = Start::of(&program, cwd).with("a:b").preloading("libm.so.6").assert_alike();
        let loaded = vec![program.to_str().unwrap().as_bytes().to_vec()];
        assert_eq!(search, Search { loaded, ..Search::default() }, "{name}");
    }
    execute(cwd, "cc main.c -o dynamic");
    let search = Start::of(&cwd.join("dynamic"), cwd).assert_alike();
    assert!(search.interpreter.is_some());
    execute(cwd, "cc main.c -no-pie -o dynamic");
    assert_eq!(Start::of(&cwd.join("dynamic"), cwd).assert_alike(), search);
}

#[test]
fn other_files_are_not_modelled() {
    let place = tempfile::tempdir().unwrap();
    let cwd = place.path();
    let of = |name: &str| Start::of(Path::new(name), cwd).try_modelled();
    fs::write(cwd.join("script"), "#!/bin/sh\n").unwrap();
    fs::set_permissions(cwd.join("script"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(of("script"), Err(Unmodelled::Foreign));
    fs::write(cwd.join("empty"), "").unwrap();
    assert_eq!(of("empty"), Err(Unmodelled::Foreign));
    symlink("circle", cwd.join("circle")).unwrap();
    for name in ["none", "", ".", "circle", "script/none"] {
        assert_eq!(of(name), Err(Unmodelled::Missing), "{name}");
    }
    // Its dynamic linker is missing.
    fs::write(cwd.join("main.c"), "int main(void) { return 0; }\n").unwrap();
    execute(cwd, "cc main.c -Wl,--dynamic-linker=/no/such/ld.so -o lost");
    assert_eq!(of("lost"), Err(Unmodelled::Missing));
    assert!(of("/bin/true").is_ok());
}

/// `ld.so --library-path /opt PROGRAM` is not modelled, and said to be so.
#[test]
fn dynamic_linkers_and_libraries_are_not_modelled() {
    let own = Elf::parse(&fs::read("/proc/self/exe").unwrap()[..]).unwrap();
    let glibc = CString::new(own.interpreter.unwrap()).unwrap().into_string().unwrap();
    for linker in [&glibc, "/lib/ld-musl-x86_64.so.1"] {
        let modelled = Start::of(Path::new(linker), Path::new("/")).try_modelled();
        let expected = match Path::new(linker).exists() {
            true => Unmodelled::Linker,
            false => Unmodelled::Missing,
        };
        assert_eq!(modelled, Err(expected), "{linker}");
    }
}
