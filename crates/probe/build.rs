//! Puts the BPF programs for the target's architecture in place: the objects in bpf/prebuilt if they are those of the
//! sources, so that a build needs no clang, and otherwise what clang makes of the sources.

#[path = "../../bpf/objects.rs"]
mod objects;

use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let bpf = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"))
        .join("../../bpf")
        .canonicalize()
        .expect("bpf/ lies beside crates/");
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    println!("cargo::rerun-if-env-changed=CLANG");
    println!("cargo::rerun-if-changed={}", bpf.display());

    let architecture = match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => "x86",
        Ok("aarch64") => "arm64",
        other => panic!("proctrace's BPF programs support x86_64 and aarch64, not {other:?}"),
    };
    let sources = objects::sources(&bpf).expect("bpf/ can be read");
    let prebuilt = bpf.join("prebuilt");
    // Who names a compiler wants to see what it makes of them.
    let is_current = env::var_os("CLANG").is_none()
        && fs::read_to_string(prebuilt.join("sources.txt")).is_ok_and(|of| of == sources);
    for name in objects::NAMES {
        let object = out.join(format!("{name}.o"));
        let packed = out.join(format!("{name}.o.zst"));
        if is_current {
            take(&prebuilt.join(architecture).join(format!("{name}.o.zst")), &packed);
        } else if let Err(error) = objects::compile(&bpf, name, architecture, &object) {
            panic!(
                "{error}. The sources in bpf/ are not those of bpf/prebuilt, so clang and the libbpf headers are \
                 needed: `cargo xtask setup` installs them, `cargo xtask bpf build` renews bpf/prebuilt"
            );
        } else {
            pack(&object, &packed);
        }
    }
}

fn read(file: &Path) -> Vec<u8> {
    fs::read(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()))
}

fn write(file: &Path, bytes: &[u8]) {
    fs::write(file, bytes).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
}

/// Puts an object into a frame of zstd that is not compressed: whoever changes bpf/ needs no compressor for it.
fn pack(object: &Path, packed: &Path) {
    /// Maximum length of a block (RFC 8878, section 3.1.1.2.4).
    const BLOCK_BYTES: usize = 128 << 10;
    let object = read(object);
    let length = u32::try_from(object.len()).expect("an object of less than 4 GB");
    // The magic number, and a header of a single segment with its length in four bytes.
    let mut frame = vec![0x28, 0xb5, 0x2f, 0xfd, 0xa0];
    frame.extend(length.to_le_bytes());
    let mut blocks = object.chunks(BLOCK_BYTES).peekable();
    while let Some(block) = blocks.next() {
        let is_last = u32::from(blocks.peek().is_none());
        let header = (block.len() as u32) << 3 | is_last;
        frame.extend(&header.to_le_bytes()[..3]);
        frame.extend(block);
    }
    write(packed, &frame);
}

/// Copies a packed object.
fn take(prebuilt: &Path, packed: &Path) {
    write(packed, &read(prebuilt));
}
