//! The context switch section: voluntary and involuntary switches, and CPU efficiency.

use std::cmp::Reverse;

use proctrace_findings::{Axis, Chart, ChartBody, Figure, Point, Scatter, Table, Unit};
use proctrace_wire::Quantity;

use proctrace_classify::labels;
use proctrace_overview::options::{Content, Options};
use proctrace_recording::Recording;

/// Maximum points in the chart: the programs that used most CPU time.
const POINTS_MAX: usize = 200;

/// Totals over processes that are counted together.
#[derive(Debug, Clone, Default, PartialEq)]
struct Sums {
    name: String,
    processes: u64,
    cpu_ns: u64,
    life_ns: u64,
    voluntary: u64,
    involuntary: u64,
}

impl Sums {
    fn efficiency_percent(&self) -> Option<f64> {
        (self.life_ns > 0).then(|| 100.0 * self.cpu_ns as f64 / self.life_ns as f64)
    }

    fn ratio(&self) -> Option<f64> {
        (self.involuntary > 0).then(|| self.voluntary as f64 / self.involuntary as f64)
    }

    fn per_cpu_second(&self) -> Option<f64> {
        let switches = self.voluntary.saturating_add(self.involuntary) as f64;
        (self.cpu_ns > 0).then(|| switches / (self.cpu_ns as f64 / 1e9))
    }
}

pub(crate) fn section(recording: &Recording, _: &Options) -> Content {
    let categories = recording.categories();
    let by_category = sums(recording, categories, |program| {
        recording.category_of_programs().get(program).copied().unwrap_or(usize::MAX)
    });
    // Only programs that a process ran last have a row, and so need an unambiguous name.
    let mut last: Vec<bool> = vec![false; recording.programs().len()];
    for process in recording.processes() {
        if let Some(last) = last.get_mut(process.program()) {
            *last = true;
        }
    }
    let shown = || recording.programs().iter().zip(&last).filter(|(_, last)| **last);
    let mut labels = labels::of_programs(shown().map(|(program, _)| program)).into_iter();
    let names: Vec<String> = last
        .iter()
        .map(|last| if *last { labels.next().unwrap_or_default() } else { String::new() })
        .collect();
    let by_program = sums(recording, &names, |program| program);
    let chart = chart(&by_program);
    Content {
        tables: vec![
            table("switches", "Context switches by category", "category", &by_category),
            table("switches_programs", "Context switches by program", "program", &by_program),
        ],
        charts: vec![chart],
    }
}

/// Sums by CPU time, largest first.
fn sums(recording: &Recording, names: &[String], number_of: impl Fn(usize) -> usize) -> Vec<Sums> {
    let named = |name: &String| Sums { name: name.clone(), ..Sums::default() };
    let mut sums: Vec<Sums> = names.iter().map(named).collect();
    for process in recording.processes() {
        let Some(sum) = sums.get_mut(number_of(process.program())) else { continue };
        let ended_ns = process.ended_ns().unwrap_or(recording.last_ns());
        sum.processes += 1;
        sum.cpu_ns = sum.cpu_ns.saturating_add(process.cpu.total_ns());
        sum.life_ns = sum.life_ns.saturating_add(ended_ns.saturating_sub(process.born_ns));
        for task in process.tasks() {
            let used = recording.tasks()[task].used();
            sum.voluntary = sum.voluntary.saturating_add(used.nvcsw);
            sum.involuntary = sum.involuntary.saturating_add(used.nivcsw);
        }
    }
    sums.retain(|sum| sum.processes > 0);
    sums.sort_by_key(|sum| (Reverse(sum.cpu_ns), Reverse(sum.processes)));
    sums
}

fn table(name: &'static str, title: &str, first: &'static str, sums: &[Sums]) -> Table {
    let of = || sums.iter();
    Table::new(name, title)
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Switches])
        .text(first, first, of().map(|sum| sum.name.clone()))
        .whole("processes", "procs", Unit::Count, of().map(|sum| sum.processes))
        .whole("cpu_ns", "CPU", Unit::Nanoseconds, of().map(|sum| sum.cpu_ns))
        .needs(Figure::CpuNs.needs())
        .real("efficiency_percent", "CPU/life", Unit::Percent, of().map(Sums::efficiency_percent))
        .needs(&[Quantity::Cpu])
        .whole("voluntary", "vol.", Unit::Count, of().map(|sum| sum.voluntary))
        .needs(&[Quantity::Switches])
        .whole("involuntary", "invol.", Unit::Count, of().map(|sum| sum.involuntary))
        .needs(&[Quantity::Switches])
        .real("voluntary_ratio", "ratio", Unit::Ratio, of().map(Sums::ratio))
        .needs(&[Quantity::Switches])
        .real("per_cpu_second", "/CPU s", Unit::PerSecond, of().map(Sums::per_cpu_second))
        .needs(&[Quantity::Cpu])
        .note(
            "vol.: the task blocked; invol.: it was preempted. ratio: vol. / invol., - without \
             involuntary ones. CPU/life: CPU time / lifetime of the processes; it can exceed 100 % \
             with several threads, and for very short processes, because kernel work after the \
             exit counts as CPU time but not as lifetime. A process is counted under the program \
             it ran last.",
        )
}

fn chart(by_program: &[Sums]) -> Chart {
    let most_ns = by_program.iter().map(|sum| sum.cpu_ns).max().unwrap_or(0).max(1) as f64;
    let points = by_program
        .iter()
        .filter(|sum| sum.voluntary > 0 || sum.involuntary > 0)
        .filter_map(|sum| {
            Some(Point {
                // Half a switch is added to each count, so that zero has a position on the axis
                // (Haldane, Ann. Hum. Genet. 20, 1956).
                x: (sum.voluntary as f64 + 0.5) / (sum.involuntary as f64 + 0.5),
                y: sum.efficiency_percent()?,
                weight: sum.cpu_ns as f64 / most_ns,
                name: sum.name.clone(),
            })
        })
        .take(POINTS_MAX)
        .collect::<Vec<Point>>();
    let shown = points.len();
    let body = Scatter {
        x_axis: Axis::logarithmic("voluntary / involuntary switches", Unit::Ratio),
        y_axis: Axis::linear("CPU time / lifetime", Unit::Percent),
        points,
    };
    Chart::new("switches", "CPU use and context switches", ChartBody::Scatter(body))
        .needs(&[Quantity::Forks, Quantity::Execs, Quantity::Switches, Quantity::Cpu])
        .note(format!(
            "{shown} of {} programs; size: CPU time. Half a switch is added to each count, so that \
         counts of zero can be shown.",
            by_program.len()
        ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene, real};

    #[test]
    fn switches_are_added_up_by_program_over_threads() {
        let mut scene = Scene::new(2, 100 * MS);
        scene.exec(0, 1, "/opt/job", (0, 0));
        scene.fork(0, 1, 2).exec(MS, 2, "/opt/busy", (0, 0)).thread(2 * MS, 2, 3);
        let switched = |voluntary, involuntary| {
            move |exit: &mut proctrace_wire::layout::Exit| {
                (exit.nvcsw, exit.nivcsw) = (voluntary, involuntary);
            }
        };
        scene.exit_with(S, 3, (400 * MS, 0), switched(10, 5));
        scene.exit_with(2 * S, 2, (MS * 600, 0), switched(20, 15));
        scene.exit_with(4 * S, 1, (0, 40 * MS), switched(7, 0));
        let content = section(&scene.load(None), &Options::default());
        let table = &content.tables[1];
        let of = |program: &str, column: &str| real(table, "program", program, column);
        assert_eq!(of("busy", "voluntary"), Some(30.0));
        assert_eq!(of("busy", "involuntary"), Some(20.0));
        assert_eq!(of("busy", "voluntary_ratio"), Some(1.5));
        assert_eq!(of("busy", "efficiency_percent"), Some(50.0));
        assert_eq!(of("busy", "per_cpu_second"), Some(50.0));
        assert_eq!(of("job", "voluntary_ratio"), None);
        assert_eq!(of("job", "efficiency_percent"), Some(1.0));
        let ChartBody::Scatter(scatter) = &content.charts[0].body else { panic!("no scatter") };
        assert_eq!(scatter.points[1].x, 15.0);
        assert_eq!(scatter.points[0].weight, 1.0);
    }
}
