//! Compiles the actor, linked with the zstd that cargo builds anyway, and the empty library it
//! loads.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-changed=actor");
    println!("cargo::rerun-if-env-changed=CC");
    let (Some(zstd), Some(include)) =
        (env::var_os("DEP_ZSTD_ROOT"), env::var_os("DEP_ZSTD_INCLUDE"))
    else {
        panic!("zstd-sys does not report the path of its library: unset ZSTD_SYS_USE_PKG_CONFIG");
    };
    let mut sources: Vec<PathBuf> = fs::read_dir("actor")
        .expect("actor/ is next to this file")
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "c"))
        .collect();
    sources.retain(|path| path.file_stem().is_none_or(|stem| stem != "library"));
    sources.sort();
    let mut actor = compiler();
    actor.args(["-O1", "-Wall", "-Wextra", "-Werror", "-pthread", "-s", "-I"]).arg(include);
    actor.args(["-o".as_ref(), out.join("actor").as_os_str()]).args(sources);
    actor.arg(Path::new(&zstd).join("libzstd.a")).arg("-ldl");
    succeed(&mut actor);
    // Small, because dozens of copies are made for each run, and without a soname.
    let mut library = compiler();
    library.args(["-shared", "-nostdlib", "-fPIC", "-Os", "-s", "-Wl,-z,noseparate-code"]);
    library.args(["-Wl,--build-id=none", "actor/library.c", "-o"]).arg(out.join("library.so"));
    succeed(&mut library);
}

fn compiler() -> Command {
    Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()))
}

fn succeed(command: &mut Command) {
    match command.status() {
        Ok(status) if status.success() => {}
        Ok(_) => panic!("failed: {command:?}"),
        Err(error) => panic!("cannot run {command:?}: {error}"),
    }
}
