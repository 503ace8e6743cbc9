//! Programs whose file has no name, or has lost it: a recording has the path and the name that the kernel itself shows
//! the program in /proc/self/exe and /proc/self/comm, by each backend.

use crate::common::{Recorder, proctrace};
use serde_json::Value;

/// Executes a copy of a shell that prints what the kernel shows it: one in memory, one whose file is removed first, and
/// one by a descriptor whose file stays.
const SCRIPT: &str = r#"
import os, shutil
shell = os.path.realpath("/bin/sh")
def run(descriptor):
    if os.fork() == 0:
        os.set_inheritable(descriptor, True)
        os.execve(descriptor, ["x", "-c", "readlink /proc/$$/exe; cat /proc/$$/comm; :"], os.environ)
    os.wait()
memory = os.memfd_create("payload", 0)
with open(shell, "rb") as file:
    os.write(memory, file.read())
run(memory)
for name in ("gone", "kept"):
    shutil.copy(shell, name)
    os.chmod(name, 0o755)
    descriptor = os.open(name, os.O_RDONLY)
    if name == "gone":
        os.unlink(name)
    run(descriptor)
    os.close(descriptor)
"#;

mod root {
    use super::*;

    #[test]
    fn a_program_without_a_name_is_called_as_the_kernel_calls_it() {
        for backend in ["ebpf", "ptrace"] {
            let recorded =
                Recorder::new().option(["--backend", backend]).run(["python3", "-c", SCRIPT]);
            assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
            let told = String::from_utf8(recorded.output.stdout.clone()).unwrap();
            let lines: Vec<&str> = told.lines().collect();
            assert_eq!(lines.len(), 6, "{told}");
            assert_eq!(lines[0], "/memfd:payload (deleted)");
            assert!(lines[2].ends_with("/gone (deleted)") && lines[4].ends_with("/kept"), "{told}");
            let output = proctrace()
                .args(["query", "--format", "json"])
                .arg("select exe, program from execs where command_line like 'x -c%' order by time_ns")
                .arg(recorded.trace())
                .output()
                .unwrap();
            let rows: Vec<Value> = serde_json::from_slice(&output.stdout).unwrap();
            assert_eq!(rows.len(), 3, "{backend}: {}", String::from_utf8_lossy(&output.stderr));
            for (row, exe) in rows.iter().zip([lines[0], lines[2], lines[4]]) {
                assert_eq!(row["exe"], exe, "{backend}");
            }
            // The name of a task has at most 15 bytes; that of an exec by descriptor is its file's since Linux 6.14.
            let names: Vec<&Value> = rows.iter().map(|row| &row["program"]).collect();
            assert_eq!(names, ["memfd:payload", "gone", "kept"], "{backend}");
        }
    }
}
