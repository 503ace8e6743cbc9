//! The tests that need no privileges, recordings of whoever runs them included.

use std::cmp::Reverse;
use std::num::NonZero;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xtask::run::{cargo, root};
use xtask::setup;

/// Test programs of which every test needs more than an ordinary user has, or that take longer than all
/// others together.
const LEFT_OUT: &[(&str, &str)] = &[
    // ten recordings of each of 44 jobs
    ("proctrace", "advise_pairs"),
    // comparisons with eBPF, and what only eBPF records
    ("proctrace", "backends"),
    ("proctrace", "critical_path"),
    ("proctrace", "node"),
    ("proctrace", "pressure"),
    ("proctrace", "scopes"),
    ("proctrace", "split"),
    ("proctrace", "waits"),
    ("proctrace-recorder", "ebpf"),
    // several users
    ("proctrace", "broker"),
    ("proctrace", "planted"),
    ("proctrace", "rights"),
    ("proctrace", "rights_races"),
    ("proctrace", "unharmed"),
    ("proctrace", "withheld"),
    ("proctrace-outputs", "planted"),
    // a Python package index
    ("proctrace", "pythia8"),
    ("proctrace-gate", "readers"),
    // a browser, which only `cargo xtask test` installs
    ("proctrace", "page_in_use"),
    ("proctrace", "web"),
    // set-user-ID programs, other root directories, musl
    ("proctrace-libsearch", "hostile"),
    ("proctrace-libsearch", "musl"),
    ("proctrace-libsearch", "secure"),
];

/// Single tests that do, of programs of the package proctrace that otherwise record as whoever runs them. A new
/// test is unprivileged until it is listed here.
const SKIPPED: &[(&str, &[&str])] = &[
    // file systems to mount, other root directories and namespaces, cgroups
    (
        "accidents",
        &[
            "a_full_disk_leaves_no_half_page",
            "a_full_disk_stops_the_recording_and_not_the_command",
            // It expects that a link is refused, which only root does.
            "an_output_that_cannot_be_written_is_told_before_the_command_runs",
        ],
    ),
    ("ends", &["the_out_of_memory_killer_is_named_as_the_cause"]),
    (
        "identity",
        &[
            "below_another_root_paths_are_as_the_payload_sees_them",
            "pids_that_are_used_again_are_not_mixed_up",
            // Migrations are not known.
            "a_pinned_task_does_not_migrate",
            // A stopped task that is traced has another state.
            "what_remains_is_listed_with_its_state",
        ],
    ),
    (
        "libs_places",
        &[
            "a_program_below_another_root_is_modelled_with_its_files",
            "a_bind_mount_of_a_namespace_that_has_gone_is_followed",
            "a_slow_file_system_is_named_with_what_it_costs",
            "a_set_user_id_program_pays_for_no_list",
            "another_c_library_is_searched_as_it_does_itself",
        ],
    ),
    ("marks", &["another_root_without_proc_has_marks"]),
    ("outputs", &["whoever_may_read_a_trace_sees_that_it_is_being_written"]),
    // a browser
    (
        "hostile_payload",
        &["nothing_in_a_header_acts_either", "nothing_of_a_payload_acts_on_those_who_look_at_it"],
    ),
    // eBPF itself
    (
        "lookups",
        &[
            "results_that_seccomp_fakes_are_what_the_payload_saw",
            "what_a_signal_interrupts_has_not_failed",
        ],
    ),
    (
        "manners",
        &[
            "in_a_time_namespace_times_are_the_machines",
            "input_and_output_are_the_commands_own",
            "the_command_starts_as_if_no_one_watched",
            "the_doctor_names_a_hook_for_every_event",
            "under_sudo_the_command_runs_as_the_user_who_called_it",
            "without_privileges_the_message_says_what_to_do",
        ],
    ),
    ("payloads", &["ordinary_users_see_the_same_through_a_broker"]),
    ("storms", &["what_does_not_fit_is_counted_and_displaces_nothing_else"]),
    // waits, user and system time, context switches
    ("advise", &["a_healthy_job_needs_no_advice", "the_summary_ends_with_the_best_advice"]),
    ("documents", &["the_walk_through_runs_as_it_stands"]),
    (
        "fidelity",
        &[
            "every_spawned_process_has_a_fork_an_exec_and_an_exit",
            // By another process, through /proc.
            "renames_are_told_but_not_those_by_exec",
            "samples_follow_what_runs",
        ],
    ),
    (
        "inspect",
        &["a_process_is_shown_as_it_was", "siblings_are_counted_and_who_was_alive_is_told"],
    ),
    ("prmon", &["files_agree_with_the_report_and_the_machine"]),
    ("resources", &["tearing_down_memory_counts", "threads_are_added_up_as_the_kernel_does"]),
    (
        "sections_cpu",
        &[
            "a_sampler_of_main_threads_does_not_find_the_children_of_others",
            "a_sampler_of_proc_says_what_it_is_said_to_say",
            "only_the_recording_sees_what_a_daemon_uses",
            "storms_show_the_signs_of_storms",
            "what_is_said_and_what_is_missed_add_up",
        ],
    ),
    ("summarize", &["redaction_leaves_no_name_in_any_table"]),
    ("unknown", &["a_report_and_a_diff_say_what_is_not_known"]),
];

/// A test program that cargo has built.
struct TestProgram {
    executable: PathBuf,
    /// The package, in whose directory cargo runs it.
    directory: PathBuf,
    package: String,
    target: String,
}

/// Builds all tests as for `cargo xtask test`, so that nothing is built twice, and runs those that
/// need no privileges.
pub(crate) fn run(arguments: &[String]) -> Result<()> {
    setup::run(setup::BUILD)?;
    let programs = build()?;
    // Some are one long test: as many run at a time as there are cores.
    let waiting = Mutex::new(programs.iter());
    let failed = Mutex::new(Vec::new());
    let cores = std::thread::available_parallelism().map_or(1, NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                while let Some(program) = next(&waiting) {
                    let name = format!("{} {}", program.package, program.target);
                    let output = program.output(arguments);
                    if output.as_ref().is_ok_and(|output| output.status.success()) {
                        println!("passed: {name}");
                        continue;
                    }
                    if let Ok(output) = output {
                        print!("{}", String::from_utf8_lossy(&output.stdout));
                        print!("{}", String::from_utf8_lossy(&output.stderr));
                    }
                    failed.lock().unwrap_or_else(PoisonError::into_inner).push(name);
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap_or_else(PoisonError::into_inner);
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    let skipped: usize = SKIPPED.iter().map(|(_, tests)| tests.len()).sum();
    println!(
        "{} test programs passed; {} were excluded, and {skipped} tests of others",
        programs.len(),
        LEFT_OUT.len()
    );
    Ok(())
}

fn next<'a>(waiting: &Mutex<std::slice::Iter<'a, TestProgram>>) -> Option<&'a TestProgram> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).next()
}

impl TestProgram {
    fn skipped(&self) -> impl Iterator<Item = &'static str> + use<> {
        let of_this =
            |(target, _): &&(&str, &[&str])| self.package == "proctrace" && *target == self.target;
        SKIPPED.iter().find(of_this).map_or(&[][..], |(_, tests)| tests).iter().copied()
    }

    fn output(&self, arguments: &[String]) -> std::io::Result<Output> {
        Command::new(&self.executable)
            .arg("--quiet")
            .args(arguments)
            .args(self.skipped().flat_map(|test| ["--skip", test]))
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            // As .cargo/config.toml has it for tests that cargo runs.
            .env("INSTA_WORKSPACE_ROOT", root())
            .output()
    }
}

fn build() -> Result<Vec<TestProgram>> {
    let mut command = cargo();
    command.args(["test", "--release", "--workspace", "--no-run", "--message-format=json"]);
    println!("$ cargo test --release --workspace --no-run");
    let output = command.stderr(Stdio::inherit()).output().context("cannot run cargo test")?;
    if !output.status.success() {
        bail!("the tests do not build");
    }
    let messages = output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty());
    let mut programs = Vec::new();
    for message in messages {
        let message: Value =
            serde_json::from_slice(message).context("cannot read a message of cargo")?;
        programs.extend(test_program(&message));
    }
    let left_out = |program: &TestProgram| {
        LEFT_OUT.contains(&(program.package.as_str(), program.target.as_str()))
    };
    programs.retain(|program| !left_out(program));
    // Those that link most take longest, and would be waited for if they began last.
    let size =
        |program: &TestProgram| std::fs::metadata(&program.executable).map_or(0, |m| m.len());
    programs.sort_by_key(|program| Reverse(size(program)));
    Ok(programs)
}

/// Test program that a message is about; None for messages about anything else.
fn test_program(message: &Value) -> Option<TestProgram> {
    if message["reason"] != "compiler-artifact" || message["profile"]["test"] != true {
        return None;
    }
    let manifest = Path::new(message["manifest_path"].as_str()?);
    let text = std::fs::read_to_string(manifest).ok()?;
    let name = text.lines().find_map(|line| line.strip_prefix("name = "))?;
    Some(TestProgram {
        executable: message["executable"].as_str()?.into(),
        directory: manifest.parent()?.to_owned(),
        package: name.trim_matches('"').to_owned(),
        target: message["target"]["name"].as_str()?.to_owned(),
    })
}
