//! The tests that need no privileges, recordings of whoever runs them included.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, bail};
use serde_json::Value;
use xtask::run::{cargo, root};
use xtask::setup;

use crate::test::{ALONE, TOGETHER};

/// Modules of tests, by their package, of which every test needs more than an ordinary user has, or that take longer than
/// all others together.
const LEFT_OUT: &[(&str, &str)] = &[
    // ten recordings of each of 44 jobs
    ("proctrace", "alone::advise_pairs"),
    // comparisons with eBPF, and what only eBPF records
    ("proctrace", "backends"),
    ("proctrace", "alone::critical_path"),
    ("proctrace", "node"),
    ("proctrace", "alone::pressure"),
    ("proctrace", "alone::scopes"),
    ("proctrace", "alone::split"),
    ("proctrace", "alone::waits"),
    ("proctrace-recorder", "ebpf"),
    // several users
    ("proctrace", "broker"),
    ("proctrace", "ci_line"),
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

/// Single tests that do, by their module, of the package proctrace, whose other tests record as whoever runs them. A new
/// test is unprivileged until it is listed here.
const SKIPPED: &[(&str, &[&str])] = &[
    // file systems to mount, other root directories and namespaces, cgroups
    (
        "accidents",
        &[
            "a_full_disk_leaves_no_half_page",
            "a_full_disk_leaves_no_half_table",
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
        "faults",
        &[
            "a_trace_reads_up_to_the_failure_and_the_job_goes_on_whichever_write_fails",
            "a_trace_that_gets_no_name_is_where_it_is_said_to_be",
        ],
    ),
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
    ("alone::storms", &["what_does_not_fit_is_counted_and_displaces_nothing_else"]),
    // waits, user and system time, context switches
    ("advise", &["a_healthy_job_needs_no_advice"]),
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
        "alone::sections_cpu",
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
    // A filter of names would be one of two.
    let passes: &[&[&str]] = if arguments.is_empty() { &[TOGETHER, ALONE] } else { &[&[]] };
    let mut failed = Vec::new();
    for program in &programs {
        let name = format!("{} {}", program.package, program.target);
        let mut passed = true;
        for pass in passes {
            let output = program.output(pass, arguments)?;
            if !output.status.success() {
                print!("{}", String::from_utf8_lossy(&output.stdout));
                print!("{}", String::from_utf8_lossy(&output.stderr));
                passed = false;
            }
        }
        if passed {
            println!("passed: {name}");
        } else {
            failed.push(name);
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    let skipped: usize = SKIPPED.iter().map(|(_, tests)| tests.len()).sum();
    println!(
        "{} test programs passed; {} modules were excluded, and {skipped} tests of others",
        programs.len(),
        LEFT_OUT.len()
    );
    Ok(())
}

/// Prefixes and names of the tests that are left out of a package, as test programs take them.
fn skipped(package: &str) -> impl Iterator<Item = String> + use<'_> {
    let modules = LEFT_OUT.iter().filter(move |(of, _)| *of == package);
    let modules = modules.map(|(_, module)| format!("{module}::"));
    let single = SKIPPED.iter().filter(move |_| package == "proctrace");
    modules.chain(
        single
            .flat_map(|(module, tests)| tests.iter().map(move |test| format!("{module}::{test}"))),
    )
}

impl TestProgram {
    fn output(&self, pass: &[&str], arguments: &[String]) -> Result<Output> {
        Command::new(&self.executable)
            .arg("--quiet")
            .args(pass)
            .args(arguments)
            .args(skipped(&self.package).flat_map(|test| ["--skip".to_owned(), test]))
            .current_dir(&self.directory)
            .env("CARGO_MANIFEST_DIR", &self.directory)
            // As .cargo/config.toml has it for tests that cargo runs.
            .env("INSTA_WORKSPACE_ROOT", root())
            .output()
            .with_context(|| format!("cannot run {}", self.executable.display()))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_there() {
        let source = |package: &str, module: &str| {
            let name = package.strip_prefix("proctrace-").unwrap_or("cli");
            let path =
                root().join(format!("crates/{name}/tests/it/{}.rs", module.replace("::", "/")));
            std::fs::read_to_string(&path)
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()))
        };
        for (package, module) in LEFT_OUT {
            assert!(source(package, module).contains("#[test]"), "{package} {module}");
        }
        for (module, tests) in SKIPPED {
            let source = source("proctrace", module);
            for test in *tests {
                assert!(source.contains(&format!("\nfn {test}() {{")), "{module} {test}");
            }
        }
    }
}
