//! Logs of one deterministic program, written by the strace that is here with each of its options: all hold the same.

use std::io::Write;

use crate::common::{Counts, import, import_one, strace_of};
use proctrace_fixtures::program;
use proctrace_import::{ImportError, Imported};
use proctrace_trace::Knowledge;
use proctrace_wire::Quantity;

/// Rounds of `mixed`, which declares in its source what it does.
const ROUNDS: &str = "8";

/// Its log without options that change the form of lines.
fn plain() -> Counts {
    let log = strace_of(&["-f", "-ttt", "-s", "4096"], true, &program("mixed"), &[ROUNDS]).unwrap();
    let (counts, imported) = import_one(&log);
    assert_eq!((imported.doubts.lines, imported.trailer.losses.len()), (0, 0));
    assert_eq!((counts.processes, counts.threads, counts.executed()), (18, 8, 11));
    assert_eq!(counts.execs_failed.values().sum::<u64>(), 4);
    counts
}

#[test]
fn every_option_that_changes_the_form_of_lines_is_read() {
    let plain = plain();
    let mut tried = 0;
    for option in [
        &["-i"][..],
        &["-n"],
        &["-n", "-i"],
        &["-N"],
        &["-k"],
        &["-kk"],
        &["-C"],
        &["-C", "-U", "name,calls,errors"],
        &["-C", "-w", "-U", "time-percent,max-time,min-time,calls"],
        &["-T"],
        &["--syscall-times=ns"],
        &["-x"],
        &["-xx"],
        &["-X", "raw"],
        &["-X", "verbose"],
        &["-y"],
        &["-yy"],
        &["-Y"],
        &["-v"],
        &["-r"],
        &["--relative-timestamps=s"],
        &["--color=always"],
        &["--always-show-pid"],
        &["--pidns-translation"],
        &["--secontext"],
        &["--seccomp-bpf"],
        &["-q"],
        &["-qq"],
        &["-qqq"],
        &["-D"],
        &["-a", "60"],
        &["-A"],
        &["-e", "read=all", "-e", "write=all"],
        &["-e", "signal=none"],
        &["-e", "abbrev=none"],
        &["-e", "trace=%process,%file,prctl"],
        &["-e", "inject=close:delay_exit=1"],
        &["-N", "-y", "-X", "verbose", "-T", "-i", "-n"],
        &["-y", "-X", "verbose", "-T", "-i", "-n", "-xx", "-C"],
    ] {
        let options = [&["-f", "-ttt", "-s", "4096"], option].concat();
        let Some(log) = strace_of(&options, true, &program("mixed"), &[ROUNDS]) else { continue };
        tried += 1;
        let (counts, imported) = import_one(&log);
        assert_eq!(counts.without_paths(), plain.without_paths(), "{option:?}");
        assert_eq!(imported.trailer.losses, [], "{option:?}");
        assert_eq!(imported.doubts.lines, 0, "{option:?}: {:?}", imported.doubts);
        if !option.iter().any(|option| option.starts_with("-y") || *option == "-yy") {
            assert_eq!(counts.paths, plain.paths, "{option:?}");
        }
    }
    assert!(tried >= 30, "strace has only {tried} of these options");
}

#[test]
fn every_kind_of_time_is_read() {
    let plain = plain();
    for (option, finest_ns) in [
        (&["-t"][..], 1_000_000_000),
        (&["-tt"], 1_000),
        (&["-ttt"], 1_000),
        (&["-r"], 1_000),
        (&["--relative-timestamps=s"], 1_000_000_000),
        (&["--relative-timestamps=ns"], 1),
        (&["--absolute-timestamps=format:unix,precision:ms"], 1_000_000),
        (&["--absolute-timestamps=unix"], 1_000_000_000),
        (&["--absolute-timestamps=precision:ns"], 1),
        (&["-t", "-r"], 1_000_000_000),
    ] {
        for into_file in [true, false] {
            let options = [&["-f", "-s", "4096"], option].concat();
            let begun = std::time::Instant::now();
            let log = strace_of(&options, into_file, &program("mixed"), &[ROUNDS]).unwrap();
            let most_ns = u64::try_from(begun.elapsed().as_nanos()).unwrap();
            let (counts, imported) = import_one(&log);
            assert_eq!(counts.without_paths(), plain.without_paths(), "{option:?} {into_file}");
            assert_eq!(imported.doubts.lines, 0, "{option:?}: {:?}", imported.doubts);
            // Rounding adds at most a unit, and each record a few nanoseconds.
            let wall_ns = imported.trailer.ended_ns - imported.header.started_ns;
            let differences = if option[0].contains("relative") { imported.lines } else { 1 };
            let slack_ns = finest_ns * differences + 10 * imported.lines;
            assert!(wall_ns <= most_ns + slack_ns, "{option:?}: {wall_ns} of {most_ns}");
        }
    }
}

/// The logs of `strace -ff`, with the tasks that their names tell.
fn logs_of_each_task(options: &[&str]) -> Vec<(Vec<u8>, Option<i32>)> {
    let directory = tempfile::tempdir().unwrap();
    let output = directory.path().join("log");
    let mut all = vec!["-ff", "-s", "4096"];
    all.extend(options);
    all.extend(["-o", output.to_str().unwrap()]);
    strace_of(&all, false, &program("mixed"), &[ROUNDS]).unwrap();
    let log = |path: std::path::PathBuf| {
        let pid = path.extension().unwrap().to_str().unwrap().parse().unwrap();
        (std::fs::read(path).unwrap(), Some(pid))
    };
    let files = std::fs::read_dir(directory.path()).unwrap();
    files.map(|file| log(file.unwrap().path())).collect()
}

#[test]
fn a_log_for_each_task_holds_the_same() {
    let plain = plain();
    for option in [&["-ttt"][..], &["-tt", "-i", "-n"], &["-ttt", "-y", "-X", "verbose", "-k"]] {
        let (counts, imported) = import(&logs_of_each_task(option)).unwrap();
        assert_eq!(counts.without_paths(), plain.without_paths(), "{option:?}");
        assert_eq!(imported.doubts.lines, 0, "{option:?}: {:?}", imported.doubts);
    }
}

/// Without times, what is counted is the same and no time is known.
#[test]
fn logs_without_times_have_the_same_counts() {
    let plain = plain();
    let has_no_times = |imported: &Imported| {
        let times = imported.header.knows(Quantity::Times);
        assert!(matches!(times, Knowledge::Absent { .. }), "{times:?}");
        assert_eq!(imported.header.started_unix_ns, 0);
    };
    for option in [&[][..], &["-i", "-n"], &["-T", "-y"], &["--always-show-pid", "-N"]] {
        for into_file in [true, false] {
            let options = [&["-f", "-s", "4096"], option].concat();
            let Some(log) = strace_of(&options, into_file, &program("mixed"), &[ROUNDS]) else {
                continue;
            };
            let (counts, imported) = import_one(&log);
            assert_eq!(counts.without_paths(), plain.without_paths(), "{option:?} {into_file}");
            assert_eq!(imported.doubts.lines, 0, "{option:?}: {:?}", imported.doubts);
            has_no_times(&imported);
        }
    }
    let (counts, imported) = import(&logs_of_each_task(&[])).unwrap();
    assert_eq!(counts.without_paths(), plain.without_paths());
    assert_eq!(imported.doubts.lines, 0, "{:?}", imported.doubts);
    has_no_times(&imported);
}

#[test]
fn what_cannot_be_read_is_refused_by_name() {
    let refused = |options: &[&str]| {
        let log = strace_of(options, true, &program("mixed"), &[ROUNDS]).unwrap();
        import(&[(log, None)]).err().unwrap_or_else(|| panic!("{options:?}"))
    };
    let raw = refused(&["-f", "-ttt", "-e", "raw=all"]);
    assert!(matches!(raw, ImportError::Raw { .. }), "{raw}");
    // With -z, whose calls are written as they end, a birth often comes after calls of the child.
    let late = "7 1700000000.1 execve(\"/x\", [\"x\"], 0x7f /* 0 vars */) = 0\n\
                8 1700000000.3 execve(\"/y\", [\"y\"], 0x7f /* 0 vars */) = 0\n\
                7 1700000000.2 vfork() = 8\n8 1700000000.4 +++ exited with 0 +++\n";
    let late = import(&[(late.into(), None)]).err().unwrap();
    assert!(matches!(late, ImportError::NoOrder { line: 3, .. }), "{late}");
}

/// Figures that an option takes out of the log are not 0.
#[test]
fn what_was_not_logged_is_not_known() {
    let absent = |options: &[&str], quantities: &[Quantity]| {
        let log = strace_of(options, true, "/bin/true".as_ref(), &[]).unwrap();
        let (_, imported) = import_one(&log);
        for quantity in quantities {
            let knowledge = imported.header.knows(*quantity);
            assert!(matches!(knowledge, Knowledge::Absent { .. }), "{options:?}: {knowledge:?}");
        }
    };
    absent(&["-ttt", "-z"], &[Quantity::LookupsAccess, Quantity::LookupsExec]);
    absent(&["-ttt", "-Z"], &[Quantity::Execs, Quantity::OpenedFiles, Quantity::Forks]);
    absent(&["-ttt", "-e", "trace=openat"], &[Quantity::Execs, Quantity::LookupsStat]);
    absent(&["-ttt", "-e", "verbose=!execve"], &[Quantity::Argv]);
}

/// A process with threads to which strace attaches: it says how many they are, or it does not, and then it is not known.
#[test]
fn threads_that_were_there_before_do_not_count_as_processes() {
    for into_file in [false, true] {
        let mut child = std::process::Command::new("python3")
            .args([
                "-c",
                // PR_SET_PTRACER: Yama lets only ancestors attach otherwise.
                "import ctypes, sys, threading\n\
                 ctypes.CDLL(None).prctl(0x59616d61, ctypes.c_ulong(-1), 0, 0, 0)\n\
                 threads = [threading.Thread(target=sys.stdin.readline) for _ in range(3)]\n\
                 [thread.start() for thread in threads]\n\
                 print('ready', flush=True)\n\
                 [thread.join() for thread in threads]",
            ])
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        let mut ready = [0; 5];
        std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut ready).unwrap();
        let pid = child.id().to_string();
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("log");
        let mut strace = std::process::Command::new("strace");
        strace.args(["-f", "-ttt", "-p", &pid]).stderr(std::process::Stdio::piped());
        if into_file {
            strace.arg("-o").arg(&log);
        }
        let mut strace = strace.spawn().unwrap();
        let mut said = Vec::new();
        let mut stderr = strace.stderr.take().unwrap();
        // It says so when it has attached.
        let mut byte = [0];
        while !String::from_utf8_lossy(&said).contains("attached with 4 threads\n") {
            std::io::Read::read_exact(&mut stderr, &mut byte).unwrap();
            said.push(byte[0]);
        }
        child.stdin.take().unwrap().write_all(b"1\n2\n3\n").unwrap();
        std::io::Read::read_to_end(&mut stderr, &mut said).unwrap();
        assert!(child.wait().unwrap().success() && strace.wait().unwrap().success());
        let text = if into_file { std::fs::read(&log).unwrap() } else { said };
        let (_, imported) = import_one(&text);
        let knows = imported.header.knows(Quantity::Forks);
        if into_file {
            assert!(matches!(knows, Knowledge::Absent { .. }), "{knows:?}");
        } else {
            assert_eq!((imported.processes, imported.threads), (1, 3));
            assert_eq!(knows, Knowledge::Exact);
        }
    }
}

#[test]
fn processes_to_which_strace_attached_are_told_from_tasks_of_which_it_says_nothing() {
    let lines = "[pid 8] 1700000000.1 pause() = 0\n[pid 9] 1700000000.2 fork() = 10\n";
    let said = "strace: Process 8 attached\nstrace: Process 9 attached\n";
    let knows = |text: String| import_one(text.as_bytes()).1.header.knows(Quantity::Forks);
    assert_eq!(knows(format!("{said}{lines}")), Knowledge::Exact);
    assert!(matches!(knows(lines.to_owned()), Knowledge::Absent { .. }));
    // One whose birth was lost counts as a process, and may be a thread.
    let launched = "[pid 7] 1700000000.0 execve(\"/x\", [\"x\"], 0x7 /* 0 vars */) = 0\n";
    assert!(matches!(knows(format!("{launched}{lines}")), Knowledge::Estimate { .. }));
}

#[test]
fn renames_have_both_paths() {
    let log = b"7 1700000000.1 execve(\"/bin/mv\", [\"mv\"], 0x7f /* 3 vars */) = 0\n\
        7 1700000000.2 getcwd(\"/w\", 4096) = 3\n\
        7 1700000000.3 rename(\"a.tmp\", \"/v/a\") = 0\n\
        7 1700000000.4 rename(\"nothing\", \"b\") = -1 ENOENT (No such file or directory)\n\
        7 1700000000.5 renameat2(AT_FDCWD, \"c\", 4</d>, \"../e\", RENAME_NOREPLACE) = 0\n\
        7 1700000000.6 renameat(5, \"f\", 6, \"g\") = 0\n\
        7 1700000000.7 +++ exited with 0 +++\n";
    let (counts, _) = import_one(log);
    let pair = |from: &str, path: &str| [from.to_owned(), path.to_owned()];
    let expected = [pair("", ""), pair("/w/./a.tmp", "/v/a"), pair("/w/./c", "/d/./../e")];
    assert_eq!(counts.moved.into_iter().collect::<Vec<_>>(), expected);
}
