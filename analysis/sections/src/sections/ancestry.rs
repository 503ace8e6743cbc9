//! The process tree as stacks: which chains of programs cost most.

use proctrace_findings::{Chart, ChartBody, Figure, Flame, Table, Unit, count, counted};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::stacks::{Node, Tree};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::shares::share_percent;

/// Maximum stacks per chart; the remaining ones are merged.
const STACKS_MAX: usize = 1000;
pub(crate) fn section(recording: &Recording, _: &Options) -> Content {
    let tree = Tree::of(recording);
    let cpu = |node: &Node| node.used.cpu.total_ns();
    let charts = vec![
        flame(
            recording,
            &tree,
            ("ancestry_count", &Quantity::WHO),
            "processes",
            "processes",
            |node| node.processes,
        ),
        flame(
            recording,
            &tree,
            ("ancestry_cpu", &[Quantity::Forks, Quantity::Execs, Quantity::Cpu]),
            "CPU time",
            "µs of CPU time",
            |node| cpu(node) / 1000,
        ),
        flame(
            recording,
            &tree,
            (
                "ancestry_system",
                &[Quantity::Forks, Quantity::Execs, Quantity::Cpu, Quantity::Split],
            ),
            "system CPU time",
            "µs of system CPU time",
            |node| node.used.cpu.system_ns / 1000,
        ),
    ];
    let (heavy, rest) = tree.heaviest(|node| node.processes, STACKS_MAX);
    let all: u64 = recording.processes().len() as u64;
    let mut table = Table::new("ancestry", "Chains of programs")
        .rows_need(&Quantity::WHO)
        .whole("processes", "processes", Unit::Count, heavy.iter().map(|(_, n)| *n))
        .real(
            "share_percent",
            "of all",
            Unit::Percent,
            heavy.iter().map(|(_, n)| share_percent(*n, all)),
        )
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, heavy.iter().map(|(node, _)| cpu(node)))
        .needs(Figure::CpuNs.needs())
        .whole(
            "system_cpu_ns",
            "system",
            Unit::Nanoseconds,
            heavy
                .iter()
                .map(|(node, _)| recording.split().own(&node.used).map(|cpu| cpu.system_ns)),
        )
        .needs(&[Quantity::Cpu, Quantity::Split])
        .text("stack", "chain", heavy.iter().map(|(node, _)| tree.stack(recording, node)))
        .note(
            "Each process is counted once, under the program that its forker was running at the \
             fork. A program that forks or executes itself appears once in the chain.",
        );
    if rest > 0 {
        table = table.note(format!(
            "The {} most frequent chains; {} in others.",
            count(heavy.len() as u64),
            counted(rest, "process is", "processes are"),
        ));
    }
    Content { tables: vec![table], charts }
}

fn flame(
    recording: &Recording,
    tree: &Tree,
    (name, needs): (&'static str, &'static [Quantity]),
    what: &str,
    weighs: &str,
    weight: impl Fn(&Node) -> u64,
) -> Chart {
    let (heavy, rest) = tree.heaviest(weight, STACKS_MAX);
    let mut folded: Vec<String> = heavy
        .into_iter()
        .map(|(node, weight)| format!("{} {weight}", tree.stack(recording, node)))
        .collect();
    if rest > 0 {
        folded.push(format!("all other chains {rest}"));
    }
    // Siblings must be adjacent.
    folded.sort_unstable();
    let body = ChartBody::Flame(Flame { weighs: weighs.to_owned(), folded });
    Chart::new(name, format!("Process ancestry, by {what}"), body)
        .needs(needs)
        .note("A program that forks or executes itself is one frame.")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_overview::stacks::DEPTH_MAX;
    use proctrace_scenes::{MS, S, Scene};

    fn folded(content: &Content, chart: usize) -> &[String] {
        match &content.charts[chart].body {
            ChartBody::Flame(flame) => &flame.folded,
            _ => panic!("no flame"),
        }
    }

    #[test]
    fn every_process_is_in_one_stack() {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/bash", (0, 0));
        // A subshell is not a link of its own; a later exec of it does not affect its child.
        scene.fork(0, 1, 2).fork(0, 2, 3).exec(0, 3, "/bin/sed", (0, 0)).exit(MS, 3, (MS, 2 * MS));
        scene.fork(MS, 2, 4).exec(MS, 4, "/bin/sed", (0, 0)).exit(2 * MS, 4, (MS, 0));
        scene.exec(3 * MS, 2, "/bin/time", (0, 0));
        scene.fork(3 * MS, 2, 5).exec(3 * MS, 5, "/x/a;b", (0, 0)).exit(4 * MS, 5, (0, MS));
        scene.exit(5 * MS, 2, (MS, 0)).exit(6 * MS, 1, (0, 0));
        let content = section(&scene.load(None), &Options::default());
        assert_eq!(folded(&content, 0), ["bash 1", "bash;sed 2", "bash;time 1", "bash;time;a,b 1"]);
        assert_eq!(folded(&content, 1), ["bash;sed 4000", "bash;time 1000", "bash;time;a,b 1000"]);
        assert_eq!(folded(&content, 2), ["bash;sed 2000", "bash;time;a,b 1000"]);
        assert_eq!(content.tables[0].height(), 4);
    }

    #[test]
    fn a_sibling_hangs_below_its_forker() {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/x/tour.sh", (0, 0));
        // Forked with CLONE_PARENT, by the command and by a child of it.
        scene.sibling(MS, 1, 2).exec(MS, 2, "/x/birth", (0, 0));
        scene.fork(MS, 1, 3).exec(MS, 3, "/x/helper", (0, 0));
        scene.sibling(2 * MS, 3, 4).exec(2 * MS, 4, "/x/birth", (0, 0));
        let content = section(&scene.load(None), &Options::default());
        assert_eq!(
            folded(&content, 0),
            ["tour.sh 1", "tour.sh;birth 1", "tour.sh;helper 1", "tour.sh;helper;birth 1"]
        );
    }

    #[test]
    fn a_chain_of_thousands_is_cut() {
        let mut scene = Scene::new(1, S);
        for child in 2..5000u32 {
            scene.fork(u64::from(child), child - 1, child);
            let path = if child % 2 == 0 { "/x/even" } else { "/x/odd" };
            scene.exec(u64::from(child), child, path, (0, 0));
        }
        let content = section(&scene.load(None), &Options::default());
        let stacks = folded(&content, 0);
        assert_eq!(stacks.len(), DEPTH_MAX as usize + 1);
        let total: u64 =
            stacks.iter().map(|s| s.rsplit(' ').next().unwrap().parse::<u64>().unwrap()).sum();
        assert_eq!(total, 4999);
    }

    #[test]
    fn what_is_light_comes_together() {
        let mut scene = Scene::new(1, S);
        for child in 2..2002u32 {
            scene.fork(0, 1, child).exec(1, child, &format!("/x/p{child}q"), (0, 0));
        }
        let content = section(&scene.load(None), &Options::default());
        let stacks = folded(&content, 0);
        assert_eq!(stacks.len(), STACKS_MAX + 1);
        assert_eq!(stacks[0], "all other chains 1001");
        assert!(stacks.is_sorted());
    }
}
