//! A recorder in a time namespace, whose CLOCK_BOOTTIME is not that of the kernel's records: time_namespaces(7).

use std::process::Command;

use crate::common::{report, u64_of};

mod root {
    use super::*;

    #[test]
    fn times_are_right_in_a_time_namespace() {
        for (backend, offset_s) in [("ebpf", "1000000"), ("ebpf", "-600"), ("ptrace", "1000000")] {
            let directory = tempfile::tempdir().unwrap();
            let trace = directory.path().join("test.ptrace");
            let output = Command::new("unshare")
                .args(["-T", "--boottime", offset_s, "--monotonic", offset_s, "--fork"])
                .arg(env!("CARGO_BIN_EXE_proctrace"))
                .args(["record", "--backend", backend, "-o"])
                .arg(&trace)
                .args(["--", "sh", "-c", "sleep 0.2; /bin/true"])
                .output()
                .unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            let findings = report(&trace);
            let wall_ns = u64_of(&findings["run"]["wall_ns"]);
            // It slept for 0.2 s; a minute is more than anything takes.
            assert!(
                (200_000_000..60_000_000_000).contains(&wall_ns),
                "{backend} {offset_s}: {wall_ns}"
            );
            let laws = findings["health"]["laws"].as_array().unwrap();
            let clock = laws.iter().find(|law| law["name"] == "clock").unwrap();
            assert_eq!(clock["holds"], true, "{backend} {offset_s}: {clock}");
        }
    }
}
