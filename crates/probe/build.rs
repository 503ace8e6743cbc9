//! Compiles the BPF programs with clang for the architecture of the target machine.

use std::path::PathBuf;
use std::process::Command;
use std::{env, fs};

fn main() {
    let bpf = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .join("../../bpf")
        .canonicalize()
        .expect("bpf/ lies beside crates/");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-env-changed=CLANG");
    for entry in fs::read_dir(&bpf).expect("bpf/ can be read").flatten() {
        println!("cargo::rerun-if-changed={}", entry.path().display());
    }

    let arch = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => panic!("proctrace's BPF programs support x86_64 and aarch64, not {other:?}"),
    };
    let clang = env::var_os("CLANG").unwrap_or_else(|| "clang".into());
    for name in ["proctrace.bpf", "who.bpf"] {
        let status = Command::new(&clang)
            .args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3"])
            .arg(format!("-D__TARGET_ARCH_{arch}"))
            .arg("-c")
            .arg(bpf.join(format!("{name}.c")))
            .arg("-o")
            .arg(out.join(format!("{name}.o")))
            .status();
        match status {
            Ok(status) if status.success() => {}
            Ok(_) => panic!("clang could not compile bpf/{name}.c"),
            Err(error) => panic!(
                "cannot run {}: {error}. `cargo xtask setup` installs clang and the libbpf headers",
                clang.display()
            ),
        }
    }
}
