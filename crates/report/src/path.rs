//! The critical path, in two lines of the summary.

use proctrace_findings::{CriticalPath, PathPhase};

use crate::escape::terminal;
use crate::fit::columns;
use crate::number::{count, percent, time};
use crate::table::shorten;

/// Maximum length of a program's name.
const NAME_WIDTH: usize = 16;

/// The phases, and what was on the critical path: as many of the longest as fit on a line each.
pub(crate) fn summary(path: &CriticalPath, width: usize) -> Vec<(&'static str, String)> {
    let phases = match &*path.phases {
        // There are no children.
        [only] if only.is_command => Vec::new(),
        phases => {
            phases.iter().enumerate().map(|(at, phase)| self::phase(phase, at, path)).collect()
        }
    };
    let lines = [("Wall", phases), ("Path", items(path))];
    lines.into_iter().filter_map(|(label, parts)| Some((label, one_line(&parts, width)?))).collect()
}

/// "configure 78 % (51.0 s, 1.0 cores in use)", and only the share of all but the longest.
fn phase(phase: &PathPhase, at: usize, path: &CriticalPath) -> String {
    let mut text = shorten(&terminal(&phase.program), NAME_WIDTH);
    if phase.is_command {
        text.push_str(" itself");
    } else if phase.children > 1 {
        text = format!("{text} ×{}", count(phase.children));
    }
    text = format!("{text} {}", percent(phase.path_ns, path.wall_ns));
    match phase.cores_in_use {
        Some(cores) if at == 0 => {
            format!("{text} ({}, {cores:.1} cores in use)", time(phase.path_ns))
        }
        _ => text,
    }
}

/// Programs that ran, and what was waited for, the longest first.
pub(crate) fn items(path: &CriticalPath) -> Vec<String> {
    let name = |program: &str| shorten(&terminal(program), NAME_WIDTH);
    let programs = path.programs.iter().map(|program| (program.running_ns, name(&program.program)));
    let waits = path.waits.iter().map(|wait| {
        (wait.waiting_ns, format!("waiting for {} ({})", wait.says, name(&wait.main_program)))
    });
    let for_cpu = (path.waiting_for_cpu_ns, "waiting for a CPU".to_owned());
    let mut items: Vec<(u64, String)> = programs.chain(waits).chain([for_cpu]).collect();
    items.retain(|(ns, _)| *ns > 0);
    items.sort_by_key(|(ns, _)| std::cmp::Reverse(*ns));
    items.into_iter().map(|(ns, text)| format!("{text} {}", percent(ns, path.wall_ns))).collect()
}

/// The first parts, with " · " between them.
fn one_line(parts: &[String], width: usize) -> Option<String> {
    let (first, others) = parts.split_first()?;
    let mut line = first.clone();
    for part in others {
        if columns(&line) + 3 + columns(part) > width {
            break;
        }
        line.push_str(" · ");
        line.push_str(part);
    }
    Some(line)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proctrace_findings::{PathProgram, PathWait};

    fn phase(program: &str, is_command: bool, children: u64, path_ns: u64) -> PathPhase {
        let program = program.to_owned();
        PathPhase { program, is_command, children, path_ns, cores_in_use: Some(1.04) }
    }

    fn program(program: &str, running_ns: u64) -> PathProgram {
        let program = program.to_owned();
        PathProgram { program, running_ns, waiting_for_cpu_ns: 0, waiting_ns: 0, times: 1 }
    }

    /// A path in which every number is `n`.
    pub(crate) fn extreme(name: &str, n: u64) -> CriticalPath {
        let wait = PathWait {
            waits_for: "poll",
            says: "files or a time-out",
            main_program: name.to_owned(),
            waiting_ns: n,
        };
        CriticalPath {
            wall_ns: n,
            running_ns: n,
            waiting_for_cpu_ns: n,
            waiting_ns: n,
            phases: vec![phase(name, false, n, n); 12],
            programs: vec![program(name, n); 12],
            waits: vec![wait; 12],
        }
    }

    #[test]
    fn the_longest_are_named_with_their_share() {
        let path = CriticalPath {
            wall_ns: 65_000_000_000,
            running_ns: 60_000_000_000,
            waiting_for_cpu_ns: 1_000_000_000,
            waiting_ns: 4_000_000_000,
            phases: vec![
                phase("configure", false, 1, 51_000_000_000),
                phase("make", false, 2, 13_000_000_000),
                phase("sh", true, 0, 1_000_000_000),
            ],
            programs: vec![program("cc1", 35_000_000_000), program("sh", 25_000_000_000)],
            waits: vec![PathWait {
                waits_for: "timer",
                says: "a timer",
                main_program: "sleep".into(),
                waiting_ns: 4_000_000_000,
            }],
        };
        let lines = summary(&path, 69);
        let expected = [
            ("Wall", "configure 78 % (51.0 s, 1.0 cores in use) · make ×2 20 %"),
            ("Path", "cc1 54 % · sh 38 % · waiting for a timer (sleep) 6 %"),
        ];
        assert_eq!(lines, expected.map(|(label, text)| (label, text.to_owned())));
        let wide = summary(&path, 200);
        assert!(wide[0].1.ends_with(" · sh itself 2 %"), "{wide:?}");
        assert!(wide[1].1.ends_with(" · waiting for a CPU 2 %"), "{wide:?}");
    }

    #[test]
    fn a_command_without_children_has_no_phases() {
        let path = CriticalPath {
            wall_ns: 10,
            running_ns: 10,
            phases: vec![phase("job", true, 0, 10)],
            programs: vec![program("job", 10)],
            ..CriticalPath::default()
        };
        assert_eq!(summary(&path, 69), [("Path", "job 100 %".to_owned())]);
        assert_eq!(summary(&CriticalPath::default(), 69), []);
    }
}
