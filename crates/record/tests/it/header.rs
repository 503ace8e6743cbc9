//! The header of a trace says what is recorded and on which machine, as /proc has it.

use std::ffi::OsString;
use std::fs;
use std::time::Duration;

use crate::common::{options, replaying};
use proctrace_record::{Options, Scope, header, nanoseconds, tick_ns};
use proctrace_wire::WIRE_VERSION;

#[test]
fn a_header_describes_the_recording_and_the_machine() {
    let options = Options {
        scope: Scope::All,
        memory_interval: Some(Duration::from_millis(50)),
        ..options()
    };
    let words = ["make", "a\nb"].map(OsString::from);
    let header = header(&words, &options, &replaying("tour-6")).unwrap();
    assert_eq!(header.command[0], "make");
    assert_eq!((&*header.scope, header.wire_version), ("system", WIRE_VERSION));
    assert_eq!(header.memory_interval_ns, Some(50_000_000));
    assert_eq!(header.waits_min_ns, options.waits_min.map(nanoseconds));
    let of_kernel = |name: &str| fs::read_to_string(format!("/proc/sys/kernel/{name}")).unwrap();
    assert_eq!(header.host, of_kernel("hostname").trim_end());
    assert_eq!(header.kernel, of_kernel("osrelease").trim_end());
    let memory = fs::read_to_string("/proc/meminfo").unwrap();
    let memory_kb = memory.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let memory_kb: u64 = memory_kb.trim().trim_end_matches(" kB").parse().unwrap();
    assert_eq!(header.memory_bytes / 1024, memory_kb);
    assert_eq!(header.cwd, std::env::current_dir().unwrap().to_str().unwrap());
    assert_eq!(header.tick_ns, tick_ns());
}
