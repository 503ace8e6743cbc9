//! `top`, `record --live` and `--progress`: in a real terminal, while real jobs are recorded.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::{payload, proctrace, u64_of};
use crate::pty::Terminal;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value;
use tempfile::TempDir;

const SIZES: [(u16, u16); 2] = [(80, 24), (200, 60)];

/// A job under `record`, which ends when it is told to.
struct Job {
    directory: TempDir,
    recorder: Child,
    stdin: Option<ChildStdin>,
}

impl Job {
    /// Records a shell script, which has to read a line from its input.
    fn record(script: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut recorder = proctrace()
            .args(["record", "-q", "-o", "job.ptrace", "--", "sh", "-c", script])
            .arg(payload())
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        let stdin = recorder.stdin.take();
        let job = Self { directory, recorder, stdin };
        // The recorder loads its programs first.
        while !fs::metadata(job.trace()).is_ok_and(|file| file.len() > 0) {
            std::thread::sleep(Duration::from_millis(20));
        }
        job
    }

    fn trace(&self) -> std::path::PathBuf {
        self.directory.path().join("job.ptrace")
    }

    fn top(&self, size: (u16, u16)) -> Terminal {
        let mut command = proctrace();
        command.arg("top").arg(self.trace());
        Terminal::run(&command, size)
    }

    /// Lets the job end.
    fn end(&mut self) {
        drop(self.stdin.take());
        assert!(self.recorder.wait().unwrap().success());
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        drop(self.stdin.take());
        let _ = self.recorder.wait();
    }
}

/// The number after a label.
fn number(text: &str, label: &str) -> u64 {
    find_number(text, label).unwrap_or_else(|| panic!("{label}: {text}"))
}

fn find_number(text: &str, label: &str) -> Option<u64> {
    let label = format!("{label} ");
    let mut after = text.match_indices(&label).map(|(at, _)| &text[at + label.len()..]);
    let found = after.find(|after| after.starts_with(|c: char| c.is_ascii_digit()))?;
    let digits: String = found.chars().take_while(|c| c.is_ascii_digit() || *c == ',').collect();
    digits.replace(',', "").parse().ok()
}

fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

/// A storm, then a wait.
fn storm(scenario: &str, scale: &str) -> String {
    format!(
        r#""$0" run {scenario} --scale {scale} --quiet --declare declared.json; read line; true"#
    )
}

#[test]
fn a_view_of_which_a_paste_is_not_read_at_once_sleeps() {
    let mut job = Job::record("read line; true");
    let top = job.top(SIZES[0]);
    top.wait_for("COMMAND");
    // More than crossterm reads at a time, less than a terminal holds, and all of it there at once. No key
    // is among it.
    let pid = top.pid().unwrap();
    kill(Pid::from_raw(pid), Signal::SIGSTOP).unwrap();
    top.press(&"_".repeat(2_000));
    top.wait_until("all of the paste", |_| top.unread_bytes() == 2_000);
    kill(Pid::from_raw(pid), Signal::SIGCONT).unwrap();
    let sleeps = || {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
        let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches"));
        line.unwrap().split_whitespace().last().unwrap().parse::<u64>().unwrap()
    };
    top.wait_until("what is left of it", |_| top.unread_bytes() == 976);
    let before = sleeps();
    top.wait_until("sleep", |_| sleeps() > before + 8);
    // The rest is read with the next key.
    top.press("?");
    top.wait_for("fold the subtree");
    assert_eq!(top.unread_bytes(), 0);
    job.end();
    top.press("xq");
    assert_eq!(top.wait_restored(), 0);
}

#[test]
fn a_storm_of_forks_is_shown_while_it_runs_and_the_sums_are_those_declared() {
    for size in SIZES {
        let mut job = Job::record(&storm("storm-fork", "0.5"));
        let top = job.top(size);
        top.wait_until("births", |text| find_number(text, "processes").is_some_and(|n| n > 100));
        // Everything that keys do, in the middle of it.
        for (keys, seen) in [
            ("s", "by CPU time"),
            ("/", "filter:"),
            ("payload\r", "/payload/"),
            ("\x1b", "COMMAND"),
            ("f", "COMMAND"),
            (" ", "PAUSED"),
            (" ", "COMMAND"),
            ("j\r", "PARENT AND CHILDREN"),
            ("\x1b", "COMMAND"),
            ("\t", "CATEGORY AND PROGRAM"),
            ("\t", "WALL"),
            ("\t", "DIRECTORY"),
            ("5", "WHAT IS MISSING"),
            ("?", "fold the subtree"),
            ("x1", "COMMAND"),
        ] {
            top.press(keys);
            top.wait_for(seen);
        }
        job.end();
        let text = top.wait_for("ENDED  exit 0");
        let declared = json(&job.directory.path().join("declared.json"));
        // And the shell that runs it.
        assert_eq!(number(&text, "processes"), u64_of(&declared["processes"]) + 1, "{text}");
        assert_eq!(number(&text, "execs"), u64_of(&declared["execs"]) + 1, "{text}");
        assert_eq!(number(&text, "threads"), u64_of(&declared["threads"]), "{text}");
        assert_eq!(number(&text, "alive"), 0, "{text}");
        assert_eq!(number(&text, "lost"), 0, "{text}");
        top.press("q");
        assert_eq!(top.wait_restored(), 0);
    }
}

#[test]
fn programs_and_directories_have_the_declared_counts() {
    let script = format!(
        r#"{}; "$0" run storm-opens --scale 0.05 --quiet --work work --declare opens.json"#,
        storm("storm-spawn", "0.05").replace("; read line; true", "")
    );
    let mut job = Job::record(&format!("{script}; read line; true"));
    let top = job.top((200, 60));
    job.end();
    let text = top.wait_for("ENDED  exit 0");
    let (spawns, opens) = (
        json(&job.directory.path().join("declared.json")),
        json(&job.directory.path().join("opens.json")),
    );
    let of = |declared: &Value, key: &str| u64_of(&declared[key]);
    assert_eq!(number(&text, "processes"), of(&spawns, "processes") + of(&opens, "processes") + 1);
    assert_eq!(number(&text, "execs"), of(&spawns, "execs") + of(&opens, "execs") + 1, "{text}");
    // Rows of programs have processes in the fourth column, then those that are alive.
    let runs = u64_of(&spawns["programs"]["true"]["processes"]);
    top.press("2/true\r");
    let text = top.wait_for("/true/ by");
    let row = text.lines().find(|line| line.ends_with("true")).unwrap_or_else(|| panic!("{text}"));
    let right = row.split_whitespace().rev().collect::<Vec<_>>();
    assert_eq!(
        right[1..4].iter().map(|n| n.replace(',', "")).nth(2),
        Some(runs.to_string()),
        "{row}"
    );
    // Directories were searched as often as declared.
    top.press("\x1b");
    top.wait_until("no filter", |text| !text.contains("/true/"));
    top.press("4/missing/\r");
    let text = top.wait_for("/missing//");
    let searched: Vec<&Value> = opens["failed_lookups"].as_array().unwrap().iter().collect();
    for place in searched.iter().take(10) {
        let directory = place["directory"].as_str().unwrap();
        let row = text.lines().find(|line| line.ends_with(directory));
        let row = row.unwrap_or_else(|| panic!("{directory}: {text}"));
        let columns: Vec<&str> = row.split_whitespace().rev().collect();
        assert_eq!(columns[3].replace(',', ""), place["count"].to_string(), "{row}");
    }
}

/// Two programs that sleep until the job ends; its own command line does not have their numbers.
const SLEEPERS: &str = "sleep $((11110 + 1)) & a=$!; sleep $((22220 + 2)) & b=$!; read line; \
    kill $a $b; wait; true";

#[test]
fn keys_filter_fold_open_pause_and_quit() {
    for size in SIZES {
        let mut job = Job::record(SLEEPERS);
        let top = job.top(size);
        let both = |text: &str| text.contains("sleep 11111") && text.contains("sleep 22222");
        top.wait_until("both sleep", both);
        top.press("/11111\r");
        top.wait_until("one row", |text| !text.contains("sleep 22222"));
        top.press("\x1b");
        top.wait_until("both sleep", both);
        top.press("gf");
        top.wait_for("[+2] sh -c");
        top.press("f");
        top.wait_until("unfolded", |text| !text.contains("[+2]"));
        top.press("/sleep 11111\rjj\r");
        let text = top.wait_for("PARENT AND CHILDREN");
        for expected in
            ["Command     sleep 11111", " parent ", " Memory      ", " Files       failed look-ups"]
        {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        top.press(" ");
        top.wait_for("PAUSED");
        job.end();
        assert!(top.text().contains("RECORDING"), "{}", top.text());
        top.press(" ");
        let text = top.wait_for("ENDED (SIGTERM)");
        assert!(text.contains("ENDED  exit 0"), "{text}");
        // Escape and a letter in one go would be Alt and that letter.
        top.press("\x1b");
        top.wait_for("no match");
        top.press("q");
        assert_eq!(top.wait_restored(), 0);
    }
}

#[test]
fn the_terminal_is_restored_by_signals() {
    let job = Job::record("read line; true");
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP, Signal::SIGQUIT] {
        let top = job.top(SIZES[0]);
        top.wait_for("RECORDING");
        assert!(top.is_taken() && top.hides_cursor() && !top.is_in_lines());
        kill(Pid::from_raw(top.pid().unwrap()), signal).unwrap();
        assert_eq!(top.wait_restored(), 0, "{signal}");
    }
    // From the keyboard.
    let top = job.top(SIZES[0]);
    top.wait_for("RECORDING");
    top.press("\x03");
    assert_eq!(top.wait_restored(), 0);
}

#[test]
fn a_terminal_that_hangs_up_ends_the_view() {
    let job = Job::record("read line; true");
    let mut over = Job::record("true");
    over.end();
    // In whatever the view is doing then: it waits for keys nearly always. As under nohup(1), and as when a window is
    // closed, of a recording that goes on and of one that has ended.
    for (nth, trap) in ["trap '' HUP;", ""].into_iter().cycle().take(12).enumerate() {
        let (trace, says) = match nth % 4 < 2 {
            true => (job.trace(), "RECORDING"),
            false => (over.trace(), "ENDED"),
        };
        let mut command = Command::new("sh");
        let script = format!(r#"{trap} exec "$0" top "$1""#);
        command.args(["-c", &script, env!("CARGO_BIN_EXE_proctrace")]).arg(trace);
        let top = Terminal::run(&command, SIZES[0]);
        top.wait_for(says);
        let status = format!("/proc/{}/stat", top.pid().unwrap());
        // The session ends with its first process, the shell.
        drop(top);
        let runs = || fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z "));
        let began = Instant::now();
        while runs() {
            assert!(began.elapsed() < Duration::from_secs(60), "it still runs ({trap} {says})");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

#[test]
fn the_view_fits_the_window_when_that_changes() {
    let job = Job::record("read line; true");
    let top = job.top(SIZES[0]);
    top.wait_for("RECORDING");
    let both = |line: &str| line.contains("COMMAND") && line.contains("CATEGORY AND PROGRAM");
    let has_all = |text: &str| text.lines().any(both);
    assert!(!has_all(&top.text()));
    top.resize(SIZES[1]);
    top.wait_until("all lists", has_all);
    top.resize((40, 10));
    top.wait_until("one list", |text| text.contains("RECORDING") && !has_all(text));
    assert!(top.text().lines().all(|line| line.chars().count() <= 40), "{}", top.text());
}

#[test]
fn a_recorder_that_is_killed_leaves_what_it_wrote() {
    let mut job = Job::record("read line; true");
    let top = job.top(SIZES[0]);
    top.wait_for("sh -c");
    job.recorder.kill().unwrap();
    job.recorder.wait().unwrap();
    top.wait_for("INCOMPLETE: no recorder");
}

#[test]
fn the_trace_that_is_being_written_is_found() {
    let job = Job::record("read line; true");
    let mut command = proctrace();
    command.args(["top", "--exit"]).current_dir(job.directory.path());
    let top = Terminal::run(&command, SIZES[0]);
    top.wait_for("RECORDING");
    drop(job);
    assert_eq!(top.wait_restored(), 0);

    let empty = tempfile::tempdir().unwrap();
    let output = proctrace().arg("top").current_dir(empty.path()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(says.contains("no recording is being written in this directory"), "{says}");
}

#[test]
fn without_a_terminal_there_are_lines() {
    let mut job = Job::record("sleep 11111 & read line; kill $!");
    let mut command = proctrace();
    command.args(["top", "--progress=1s"]).arg(job.trace()).stdout(Stdio::piped());
    let mut top = command.spawn().unwrap();
    let mut lines = BufReader::new(top.stdout.take().unwrap()).lines().map(Result::unwrap);
    let seen = lines.by_ref().find(|line| line.contains(": 2 processes, 2 alive, "));
    assert!(seen.unwrap().ends_with(", 0 lost"));
    job.end();
    let last = lines.last().unwrap();
    assert!(last.contains(": 2 processes, 0 alive, "), "{last}");
    assert!(top.wait().unwrap().success());
}

#[test]
fn record_prints_lines_about_its_progress() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = proctrace();
    command.args([
        "record",
        "--progress=1s",
        "-o",
        "job.ptrace",
        "--",
        "sh",
        "-c",
        "read line; exit 5",
    ]);
    command.current_dir(directory.path()).stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut recorder = command.spawn().unwrap();
    let mut lines = BufReader::new(recorder.stderr.take().unwrap()).lines().map(Result::unwrap);
    let line = lines.by_ref().find(|line| line.contains(": 1 process, 1 alive, ")).unwrap();
    assert!(line.starts_with("proctrace: ") && line.ends_with(", 0 lost"), "{line}");
    recorder.stdin.take().unwrap().write_all(b"\n").unwrap();
    // The child that prints them has closed the pipe, too.
    let rest: Vec<String> = lines.collect();
    let [.., counts, ended] = &rest[..] else { panic!("{rest:?}") };
    assert!(counts.contains("1 process, 0 threads"), "{rest:?}");
    assert!(ended.contains("exit 5; next: "), "{rest:?}");
    assert_eq!(recorder.wait().unwrap().code(), Some(5));
}

fn live(directory: &Path, script: &str) -> Command {
    let mut command = proctrace();
    command.args(["record", "--live", "-o", "job.ptrace", "--", "sh", "-c", script]);
    command.current_dir(directory);
    command
}

#[test]
fn a_live_recording_keeps_the_screen_and_the_commands_output_apart() {
    for size in SIZES {
        let directory = tempfile::tempdir().unwrap();
        let script = "echo out; echo err >&2; printf '\\033[2Jclear'; cat; sleep 11111 & \
                      while [ ! -e end ]; do sleep 0.1; done; kill $!; exit 9";
        let record = Terminal::run(&live(directory.path(), script), size);
        let text = record.wait_for("sleep 11111");
        assert!(text.contains("RECORDING") && text.contains("proctrace top"), "{text}");
        assert!(!text.lines().any(|line| line.trim() == "out" || line.trim() == "err"), "{text}");
        fs::write(directory.path().join("end"), "").unwrap();
        record.wait_for("ENDED  exit 9");
        assert!(record.pid().is_some(), "the view stays");
        record.press("q");
        assert_eq!(record.wait_restored(), 9);
        let text = record.wait_for("the output of the command is in job.ptrace.out");
        assert!(text.contains("0 lost · job.ptrace"), "{text}");
        let output = fs::read(directory.path().join("job.ptrace.out")).unwrap();
        assert_eq!(output, b"out\nerr\n\x1b[2Jclear");
    }
}

#[test]
fn ctrl_c_in_a_live_recording_is_for_the_command() {
    let directory = tempfile::tempdir().unwrap();
    let script = "trap 'exit 7' INT; while :; do sleep 0.1; done";
    let record = Terminal::run(&live(directory.path(), script), SIZES[0]);
    record.wait_for("RECORDING");
    record.wait_for("sh -c trap");
    record.press("\x03");
    record.wait_for("ENDED  exit 7");
    // Now it closes the view, and the status is still passed on.
    record.press("\x03");
    assert_eq!(record.wait_restored(), 7);
    assert!(!directory.path().join("job.ptrace.out").exists());
}

#[test]
fn a_closed_view_leaves_the_recording_alone() {
    let directory = tempfile::tempdir().unwrap();
    let script = "while [ ! -e end ]; do sleep 0.1; done; exit 3";
    let record = Terminal::run(&live(directory.path(), script), SIZES[0]);
    record.wait_for("RECORDING");
    record.press("q");
    record.wait_for("the recording continues");
    assert!(record.pid().is_some());
    fs::write(directory.path().join("end"), "").unwrap();
    assert_eq!(record.wait_restored(), 3);
}

#[test]
fn a_command_that_cannot_be_started_is_told_in_the_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = proctrace();
    command.args(["record", "--live", "--", "/etc/passwd"]).current_dir(directory.path());
    let record = Terminal::run(&command, SIZES[0]);
    record.wait_for("proctrace: ");
    assert_eq!(record.wait_restored(), 126);
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}

#[test]
fn what_is_redirected_stays_so() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("sh");
    let proctrace = env!("CARGO_BIN_EXE_proctrace");
    command.args([
        "-c",
        "echo data | \"$0\" record --live -- sh -c 'cat; exit 4' > out",
        proctrace,
    ]);
    command.current_dir(directory.path());
    let shell = Terminal::run(&command, SIZES[0]);
    shell.wait_for("ENDED  exit 4");
    shell.press("q");
    assert_eq!(shell.wait_restored(), 4);
    assert_eq!(fs::read(directory.path().join("out")).unwrap(), b"data\n");
}

#[test]
fn live_without_a_terminal_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let mut command = Command::new("setsid");
    command.args(["--wait", env!("CARGO_BIN_EXE_proctrace"), "record", "--live", "--", "true"]);
    let output = command.current_dir(directory.path()).stdin(Stdio::null()).output().unwrap();
    assert_eq!(output.status.code(), Some(125));
    let says = String::from_utf8(output.stderr).unwrap();
    assert!(says.contains("--live needs a terminal, --progress does not"), "{says}");
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
}
