//! Regression inputs: logs on which fuzzing failed (`cargo xtask fuzz import`), or that were constructed
//! by hand.

#[path = "../../../../fuzz/harness/import.rs"]
mod harness;
#[path = "../../../../fuzz/harness/regressions.rs"]
mod inputs;

use proptest::prelude::*;

#[test]
fn regressions_do_not_crash() {
    inputs::run("import", harness::run);
}

/// Pieces of real lines, which arbitrary bytes would never form.
const PIECES: &[&str] = &[
    "7 ",
    "8 ",
    "9 ",
    "[pid 7] ",
    "[pid 8] ",
    "1700000000.5 ",
    "12:00:00 ",
    "0.000123 ",
    "fork(",
    "vfork(",
    "clone(flags=CLONE_THREAD|CLONE_VM",
    "clone3({flags=SIGCHLD}",
    "execve(\"/bin/x\", ",
    "[\"a\", \"b\"...]",
    ", 0x7f /* 3 vars */",
    "openat(AT_FDCWD, \"/x\", O_RDONLY",
    ") = ",
    "7",
    "8",
    "9",
    "-1 ENOENT (No)",
    "?",
    "0",
    "3</x>",
    " <unfinished ...>",
    "<... fork resumed>",
    "<... clone resumed>",
    "<... execve resumed>",
    "+++ exited with 0 +++",
    "+++ killed by SIGKILL +++",
    "+++ superseded by execve in pid 8 +++",
    "--- SIGCHLD {si_pid=8} ---",
    "exit_group(1) = ?",
    "prctl(PR_SET_NAME, \"n\") = 0",
    "chdir(\"..\") = 0",
    "strace: Process 8 attached",
    "strace: Process 7 attached with 3 threads",
    "[ Process PID=7 runs in 32 bit mode. ]",
    " > /lib/libc.so.6(brk+0x7) [0x12]",
    "\x1b[33m",
    "\x1b[0m",
    "[00007fec8ad7d49b] ",
    "[  59] ",
    "pathname=",
    "argv=",
    " /* O_RDONLY */",
    "AT_FDCWD</d>",
    " <pid changed to 7 ...>",
    "-1 (errno 18446744073709551595)",
    "getcwd(\"/d\", 9) = 3",
    "100.00    0.000419           3       110         5 total",
    "00:00:01 elapsed",
    "\n",
    "\n",
    "\n",
    "\\",
    "\"",
    "<",
    ")",
    "\0",
];

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn logs_of_real_pieces_in_any_order_are_imported_or_refused(
        how in prop_oneof![Just(b's'), Just(b'2')],
        pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..120),
    ) {
        let mut log = vec![how];
        pieces.iter().for_each(|piece| log.extend_from_slice(piece.as_bytes()));
        harness::run(&log);
    }

    #[test]
    fn lines_of_real_pieces_are_imported_or_refused(
        lines in proptest::collection::vec((0_usize..3, proptest::collection::vec(proptest::sample::select(PIECES), 1..5)), 0..60),
    ) {
        let mut log = vec![b's'];
        for (pid, pieces) in lines {
            log.extend_from_slice(format!("{} 1700000000.5 ", pid + 7).as_bytes());
            pieces.iter().for_each(|piece| log.extend_from_slice(piece.as_bytes()));
            log.push(b'\n');
        }
        harness::run(&log);
    }

    #[test]
    fn any_bytes_are_imported_or_refused(bytes: Vec<u8>) {
        harness::run(&bytes);
    }
}
