//! The C and the Rust record layout are identical: compared through the BTF that clang writes for
//! `bpf/layout.bpf.c`, field by field.

use std::collections::HashMap;
use std::path::Path;
use std::process::Command;

use proctrace_wire::layout::LAYOUTS;
use proctrace_wire::{BlindSpot, Kind, LossReason, WIRE_VERSION, layout};
use serde_json::Value;

fn bpf_directory() -> std::path::PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../bpf")
}

/// The output of `bpftool btf dump` for the compiled layout.
fn btf() -> Vec<Value> {
    let directory = tempfile::tempdir().unwrap();
    let object = directory.path().join("layout.o");
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86" };
    let compiled = Command::new("clang")
        .args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-c"])
        .arg(format!("-D__TARGET_ARCH_{arch}"))
        .arg(bpf_directory().join("layout.bpf.c"))
        .arg("-o")
        .arg(&object)
        .status()
        .expect("clang is here: cargo xtask setup");
    assert!(compiled.success());
    let path = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let dump = Command::new("bpftool")
        .env("PATH", path)
        .args(["--json", "btf", "dump", "file"])
        .arg(&object)
        .output()
        .expect("bpftool is here: cargo xtask setup");
    assert!(dump.status.success(), "{}", String::from_utf8_lossy(&dump.stderr));
    let json: Value = serde_json::from_slice(&dump.stdout).unwrap();
    json["types"].as_array().unwrap().clone()
}

/// Size of a BTF type.
fn size_of_type(types: &HashMap<u64, &Value>, id: u64) -> u64 {
    let kind = types[&id];
    match kind["kind"].as_str().unwrap() {
        "ARRAY" => {
            kind["nr_elems"].as_u64().unwrap()
                * size_of_type(types, kind["type_id"].as_u64().unwrap())
        }
        "TYPEDEF" | "CONST" | "VOLATILE" => size_of_type(types, kind["type_id"].as_u64().unwrap()),
        _ => kind["size"].as_u64().unwrap(),
    }
}

#[test]
fn every_record_lies_the_same_in_c_and_in_rust() {
    let dump = btf();
    let types: HashMap<u64, &Value> =
        dump.iter().map(|kind| (kind["id"].as_u64().unwrap(), kind)).collect();
    let c_structs: HashMap<&str, &Value> = dump
        .iter()
        .filter(|kind| kind["kind"] == "STRUCT")
        .map(|kind| (kind["name"].as_str().unwrap(), kind))
        .filter(|(name, _)| name.starts_with("pt_"))
        .collect();

    let mut rust_names: Vec<&str> = LAYOUTS.iter().map(|layout| layout.c_name).collect();
    let mut c_names: Vec<&str> = c_structs.keys().copied().collect();
    rust_names.sort_unstable();
    c_names.sort_unstable();
    assert_eq!(rust_names, c_names);

    for layout in LAYOUTS {
        let c = c_structs[layout.c_name];
        assert_eq!(layout.size as u64, c["size"].as_u64().unwrap(), "{}", layout.c_name);
        let c_fields: Vec<(String, u64, u64)> = c["members"]
            .as_array()
            .unwrap()
            .iter()
            .map(|member| {
                (
                    member["name"].as_str().unwrap().to_owned(),
                    member["bits_offset"].as_u64().unwrap() / 8,
                    size_of_type(&types, member["type_id"].as_u64().unwrap()),
                )
            })
            .collect();
        let rust_fields: Vec<(String, u64, u64)> = layout
            .fields
            .iter()
            .map(|field| (field.name.to_owned(), field.offset as u64, field.size as u64))
            .collect();
        assert_eq!(rust_fields, c_fields, "{}", layout.c_name);
        // No implicit padding.
        let end = rust_fields.iter().map(|(_, _, size)| size).sum::<u64>();
        assert_eq!(end, layout.size as u64, "{} has a hole", layout.c_name);
    }
}

#[test]
fn numbers_are_the_same_in_c_and_in_rust() {
    let header = std::fs::read_to_string(bpf_directory().join("wire.h")).unwrap();
    let number = |name: &str| -> u64 {
        let line = header
            .lines()
            .map(|line| line.trim().trim_start_matches("#define "))
            .find(|line| line.split([' ', '\t', '=']).next() == Some(name))
            .unwrap_or_else(|| panic!("wire.h does not define {name}"));
        let digits: String = line[name.len()..]
            .chars()
            .skip_while(|c| !c.is_ascii_digit())
            .take_while(char::is_ascii_digit)
            .collect();
        digits.parse().unwrap()
    };
    assert_eq!(number("WIRE_VERSION"), u64::from(WIRE_VERSION));
    for kind in Kind::ALL {
        let name = format!("PT_{}", kind.name().to_uppercase());
        assert_eq!(number(&name), kind as u64, "{name}");
    }
    assert_eq!(number("PT_KINDS"), Kind::ALL.len() as u64 + 1);
    for reason in LossReason::ALL {
        let name = format!("PT_LOSS_{}", reason.name().to_uppercase());
        assert_eq!(number(&name), reason as u64, "{name}");
    }
    assert_eq!(number("PT_LOSS_REASONS"), LossReason::ALL.len() as u64 + 1);
    for (name, value) in [
        ("PT_ATTACH_ROOT", layout::ATTACH_ROOT),
        ("PT_ATTACH_ZOMBIE", layout::ATTACH_ZOMBIE),
        ("PT_EXEC_COMPAT", layout::EXEC_COMPAT),
        ("PT_EXEC_BEFORE", layout::EXEC_BEFORE),
        ("PT_EXEC_WITHHELD", layout::EXEC_WITHHELD),
        ("PT_EXEC_ARGV_CAPPED", layout::EXEC_ARGV_CAPPED),
        ("PT_EXEC_ARGV_FAULT", layout::EXEC_ARGV_FAULT),
        ("PT_EXEC_PATH_CUT", layout::EXEC_PATH_CUT),
        ("PT_EXEC_ENV_CUT", layout::EXEC_ENV_CUT),
        ("PT_EXEC_SECURE", layout::EXEC_SECURE),
        ("PT_EXIT_OOM", layout::EXIT_OOM),
        ("PT_WAIT_BY_TASK", layout::WAIT_BY_TASK.into()),
        ("PT_WAIT_BY_INTERRUPT", layout::WAIT_BY_INTERRUPT.into()),
        ("PT_WAIT_BY_END", layout::WAIT_BY_END.into()),
        ("PT_WAIT_WITHHELD", layout::WAIT_WITHHELD.into()),
        ("PT_SIGNAL_BY_INTERRUPT", layout::SIGNAL_BY_INTERRUPT.into()),
        ("PT_SIGNAL_WITHHELD", layout::SIGNAL_WITHHELD.into()),
        ("PT_PLACE_CUT", u32::from(layout::PLACE_CUT)),
        ("PT_MOUNTS_CHUNK", u32::try_from(layout::MOUNTS_CHUNK).unwrap()),
        ("PT_MOVED_EXCHANGED", layout::MOVED_EXCHANGED),
        ("PT_MOVED_UNKNOWN", layout::MOVED_UNKNOWN),
        ("PT_MOVED_FROM_IS_RELATIVE", layout::MOVED_FROM_IS_RELATIVE),
        ("PT_MOVED_PATH_IS_RELATIVE", layout::MOVED_PATH_IS_RELATIVE),
        ("PT_MOVED_REMOVED", layout::MOVED_REMOVED),
        ("PT_WRITTEN_PATH_CUT", layout::WRITTEN_PATH_CUT),
        ("PT_MISS_PATH_FAULT", u32::from(layout::MISS_PATH_FAULT)),
        ("PT_MISS_PATH_CUT", u32::from(layout::MISS_PATH_CUT)),
        ("PT_EXIT_PROCESS", layout::EXIT_PROCESS),
        ("PT_EXIT_AUTOREAP", layout::EXIT_AUTOREAP),
        ("PT_EXIT_RSS_BOUND", layout::EXIT_RSS_BOUND),
        ("PT_EXIT_RELEASED", layout::EXIT_RELEASED),
        ("PT_WORKDIR_CUT", u32::from(layout::WORKDIR_CUT)),
        ("PT_WORKDIR_JOB", u32::from(layout::WORKDIR_JOB)),
        ("PT_SAMPLE_FINAL", u32::from(layout::SAMPLE_FINAL)),
        ("PT_RECORD_MAX", u32::try_from(layout::RECORD_MAX).unwrap()),
    ] {
        assert_eq!(number(name), u64::from(value), "{name}");
    }
    let argv_max = number("PT_ARGV_FIRST") + number("PT_ARGV_CHUNKS") * number("PT_ARGV_CHUNK");
    assert_eq!(argv_max, u64::from(layout::ARGV_MAX));
    assert_eq!(number("PT_BLIND_IO_URING"), BlindSpot::IoUring as u64);
    assert_eq!(number("PT_BLIND_TRACER"), BlindSpot::RefusedTracer as u64);
    assert_eq!(number("PT_BLIND_LET_GO"), BlindSpot::LetGo as u64);
    for call in 1..64 {
        let call = proctrace_wire::Call::from_number(call);
        if call != proctrace_wire::Call::Unknown {
            let name = format!("PT_CALL_{}", call.name().to_uppercase());
            assert_eq!(number(&name), call as u64, "{name}");
        }
    }
}
