//! Sums over processes, by program and by spawner: every table of programs, every metric by program
//! and every pair of a program and its spawner is one of these sums.

use std::cmp::Reverse;

use proctrace_classify::Program;
use proctrace_classify::fast::FastMap;
use proctrace_classify::labels::class_name;
use proctrace_recording::Recording;
use proctrace_recording::split::Divided;

use crate::lives::{Group, Groups, Medians};

/// A text that programs are grouped by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Label {
    Class,
    Category,
    Name,
}

impl Label {
    fn of(self, program: &Program) -> &str {
        match self {
            Self::Class => class_name(program.class),
            Self::Category => program.category(),
            Self::Name => &program.name,
        }
    }
}

/// The sums of one group of processes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sum {
    /// The labels of the group, in the order requested.
    pub labels: Vec<String>,
    pub processes: u64,
    /// Number of these that were there before the recording began.
    pub there_before: u64,
    /// Number of these that never called exec: they count as their parent's program.
    pub forked: u64,
    /// Threads other than the first of each process.
    pub threads: u64,
    /// Successful execs while recording. An exec counts for the program executed, whatever the
    /// process ran after it.
    pub execs: u64,
    pub used: Divided,
    pub failed_lookups: u64,
    /// Processes whose look-ups are not seen.
    pub(crate) lookups_unseen: u64,
}

impl Sum {
    fn add(&mut self, other: &Self) {
        let sum = |to: &mut u64, of: u64| *to = to.saturating_add(of);
        sum(&mut self.processes, other.processes);
        sum(&mut self.there_before, other.there_before);
        sum(&mut self.forked, other.forked);
        sum(&mut self.threads, other.threads);
        sum(&mut self.execs, other.execs);
        self.used.add(&other.used);
        sum(&mut self.failed_lookups, other.failed_lookups);
        sum(&mut self.lookups_unseen, other.lookups_unseen);
    }

    pub fn cpu_ns(&self) -> u64 {
        self.used.cpu.total_ns()
    }

    /// Processes that were created while recording.
    pub fn created(&self) -> u64 {
        self.processes.saturating_sub(self.there_before)
    }
}

/// The sums of one program.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ProgramSum {
    /// Number of the program.
    pub program: usize,
    pub sum: Sum,
    /// Median lifetime of its processes.
    pub life_median_ns: Option<u64>,
    /// The largest of any of its processes.
    pub peak_rss_bytes: Option<u64>,
    /// Number of the program that started most of them, and how many it started.
    pub main_spawner: Option<usize>,
    pub main_spawner_processes: Option<u64>,
}

/// Processes that ran the same program and have the same spawner.
#[derive(Debug, Clone, PartialEq)]
pub struct Edge {
    /// Number of the program that forked them, and of its command line's template if it called
    /// exec.
    pub spawner: usize,
    pub shape: Option<u32>,
    /// Number of the program they ran last.
    pub program: usize,
    /// They never called exec.
    pub forked: bool,
    pub processes: u64,
    pub used: Divided,
    /// Median lifetime.
    pub life_median_ns: Option<u64>,
}

impl Edge {
    /// Most processes first, then most CPU time, and then by what they are.
    fn order(&self) -> impl Ord + use<> {
        let most = Reverse((self.processes, self.used.cpu.total_ns()));
        (most, self.spawner, self.shape, self.program, self.forked)
    }
}

/// Processes whose failed look-ups are counted at a time: so few that their counts stay in a cache.
const PASS_PROCESSES: usize = 1 << 15;

/// Sums over all processes.
#[derive(Debug)]
pub struct Sums<'a> {
    recording: &'a Recording,
    edges: Vec<Edge>,
    programs: Vec<ProgramSum>,
    life_median_ns: Option<u64>,
}

impl<'a> Sums<'a> {
    pub fn of(recording: &'a Recording) -> Self {
        let groups = Groups::of(recording);
        let lives = Medians::of(recording, &groups);
        let sums = of_groups(recording, &groups);
        let programs = programs(recording, &groups.groups, &sums, &lives);
        let rows = groups.groups.iter().zip(&sums).zip(&lives.of_group);
        let edge = |((group, (sum, _)), life_median_ns): ((&Group, &(Sum, _)), &Option<u64>)| {
            Some(Edge {
                spawner: group.spawner? as usize,
                shape: group.shape,
                program: group.program as usize,
                forked: group.forked,
                processes: sum.processes,
                used: sum.used,
                life_median_ns: *life_median_ns,
            })
        };
        let mut edges: Vec<Edge> = rows.filter_map(edge).collect();
        edges.sort_by_cached_key(Edge::order);
        Self { recording, edges, programs, life_median_ns: lives.of_all }
    }

    /// Median lifetime of all processes that ended.
    pub fn life_median_ns(&self) -> Option<u64> {
        self.life_median_ns
    }

    /// Groups of programs that share these labels, most processes first.
    pub fn by<const N: usize>(&self, labels: [Label; N]) -> Vec<Sum> {
        let mut groups: FastMap<[&str; N], Sum> = FastMap::default();
        for row in &self.programs {
            let program = &self.recording.programs()[row.program];
            groups.entry(labels.map(|label| label.of(program))).or_default().add(&row.sum);
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        groups.sort_unstable_by_key(|(labels, sum)| {
            (Reverse((sum.processes, sum.execs, sum.threads)), *labels)
        });
        let labelled = |(labels, sum): ([&str; N], Sum)| Sum {
            labels: labels.map(str::to_owned).into(),
            ..sum
        };
        groups.into_iter().map(labelled).collect()
    }

    /// Every program: most processes first, then those that only executed another program.
    pub fn programs(&self) -> &[ProgramSum] {
        &self.programs
    }

    /// Spawners by command line and what they started, most frequent first.
    pub fn edges(&self) -> &[Edge] {
        &self.edges
    }

    /// The same over all command lines, without lifetimes.
    pub fn pairs(&self) -> Vec<Edge> {
        let mut pairs: FastMap<_, Edge> = FastMap::default();
        for edge in &self.edges {
            let key = (edge.spawner, edge.program, edge.forked);
            let pair = pairs.entry(key).or_insert_with(|| Edge {
                shape: None,
                processes: 0,
                used: Divided::default(),
                life_median_ns: None,
                ..edge.clone()
            });
            pair.processes = pair.processes.saturating_add(edge.processes);
            pair.used.add(&edge.used);
        }
        let mut pairs: Vec<Edge> = pairs.into_values().collect();
        pairs.sort_by_cached_key(Edge::order);
        pairs
    }
}

/// Sums groups of processes to programs, with their execs and main spawner.
fn programs(
    recording: &Recording,
    groups: &[Group],
    sums: &[(Sum, Option<u64>)],
    lives: &Medians,
) -> Vec<ProgramSum> {
    let mut programs: FastMap<u32, ProgramSum> = FastMap::default();
    let mut started: FastMap<(u32, Option<u32>), u64> = FastMap::default();
    for (group, (sum, peak_rss_bytes)) in groups.iter().zip(sums) {
        let of = programs.entry(group.program).or_default();
        of.sum.add(sum);
        of.peak_rss_bytes = of.peak_rss_bytes.max(*peak_rss_bytes);
        let processes = started.entry((group.program, group.spawner)).or_default();
        *processes = processes.saturating_add(sum.processes);
    }
    for run in recording.runs().iter().filter(|run| run.happened_here) {
        programs.entry(run.program).or_default().sum.execs += 1;
    }
    // The one that started most; of equals, the one with the lowest number.
    let mut main: FastMap<u32, (u64, Reverse<Option<u32>>)> = FastMap::default();
    for ((program, spawner), processes) in started {
        let most = main.entry(program).or_insert((processes, Reverse(spawner)));
        *most = (*most).max((processes, Reverse(spawner)));
    }
    let numbered = |(program, of): (u32, ProgramSum)| {
        let main = main.get(&program);
        ProgramSum {
            program: program as usize,
            life_median_ns: lives.of_program.get(&program).copied(),
            main_spawner: main.and_then(|main| main.1.0).map(|spawner| spawner as usize),
            main_spawner_processes: main.map(|main| main.0),
            ..of
        }
    };
    let mut programs: Vec<_> = programs.into_iter().map(numbered).collect();
    programs.sort_unstable_by_key(|row| {
        // Programs that only executed another come last, by their execs.
        let only_executed = if row.sum.processes == 0 { row.sum.execs } else { 0 };
        (Reverse((row.sum.processes, row.sum.cpu_ns(), only_executed)), row.program)
    });
    programs
}

/// The sums of each group of processes, and its largest peak RSS
/// (docs/decisions/0023-grouped-sums.md).
fn of_groups(recording: &Recording, groups: &Groups) -> Vec<(Sum, Option<u64>)> {
    let mut sums = vec![<(Sum, Option<u64>)>::default(); groups.groups.len()];
    let (processes, count) = (recording.processes(), recording.processes().len());
    for from in (0..count).step_by(PASS_PROCESSES) {
        let range = from..count.min(from + PASS_PROCESSES);
        let failed_lookups = recording.failed_lookups_of(range.clone());
        let of_process = &groups.of_process[range.clone()];
        let rows = processes[range].iter().zip(of_process).zip(failed_lookups);
        for ((process, group), failed_lookups) in rows {
            let (sum, peak_rss_bytes) = &mut sums[*group as usize];
            let threads = (process.tasks().len() as u64).saturating_sub(1);
            sum.processes += 1;
            sum.forked += u64::from(groups.groups[*group as usize].forked);
            sum.there_before += u64::from(process.was_there());
            sum.threads = sum.threads.saturating_add(threads);
            sum.used.add(&recording.divided_of(process));
            sum.failed_lookups = sum.failed_lookups.saturating_add(failed_lookups.unwrap_or(0));
            sum.lookups_unseen += u64::from(failed_lookups.is_none());
            *peak_rss_bytes = (*peak_rss_bytes).max(recording.known_peak_rss_bytes(process));
        }
    }
    sums
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, S, Scene};

    /// make runs sed twice and env once, which replaces itself with awk; a fork of make runs
    /// nothing.
    fn recording() -> Recording {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/make", (0, 0));
        for (child, ends_ms) in [(2, 10), (3, 30)] {
            scene.fork(MS, 1, child).exec(MS, child, "/bin/sed", (0, 0));
            scene.exit(ends_ms * MS, child, (MS, 2 * MS));
        }
        scene.fork(40 * MS, 1, 4).exec(40 * MS, 4, "/usr/bin/env", (0, 0));
        scene.exec(41 * MS, 4, "/bin/awk", (0, 0)).open_failed(42 * MS, 4, "/no");
        scene.exit(50 * MS, 4, (MS, 0)).fork(60 * MS, 1, 5).thread(61 * MS, 5, 6);
        scene.exit(S, 1, (0, 0)).load(None)
    }

    #[test]
    fn programs_are_the_sums_of_their_processes() {
        let recording = recording();
        let sums = Sums::of(&recording);
        let rows: Vec<_> = sums
            .programs()
            .iter()
            .map(|row| {
                let (name, sum) = (&*recording.programs()[row.program].name, &row.sum);
                (name, sum.processes, sum.forked, sum.execs, sum.failed_lookups, row.life_median_ns)
            })
            .collect();
        assert_eq!(
            rows,
            [
                ("sed", 2, 0, 2, 0, Some(9 * MS)),
                // The fork that is alive has no lifetime yet.
                ("make", 2, 1, 1, 0, Some(S)),
                ("awk", 1, 0, 1, 1, Some(10 * MS)),
                ("env", 0, 0, 1, 0, None),
            ]
        );
        let execs: u64 = sums.by([Label::Class]).iter().map(|sum| sum.execs).sum();
        assert_eq!(execs, recording.counts().execs);
        let text = sums.by([Label::Category]);
        let text = text.iter().find(|sum| sum.labels == ["text"]).unwrap();
        assert_eq!((text.processes, text.cpu_ns()), (3, 7 * MS));
    }

    #[test]
    fn pairs_are_the_sums_of_edges() {
        let recording = recording();
        let sums = Sums::of(&recording);
        let name = |program: usize| &*recording.programs()[program].name;
        let pairs = sums.pairs();
        let says: Vec<_> = pairs
            .iter()
            .map(|pair| (name(pair.spawner), name(pair.program), pair.forked, pair.processes))
            .collect();
        assert_eq!(
            says,
            [("make", "sed", false, 2), ("make", "awk", false, 1), ("make", "make", true, 1)]
        );
        assert_eq!(pairs[0].used.cpu.total_ns(), 6 * MS);
        let edges = sums.edges();
        let processes = |edges: &[Edge]| edges.iter().map(|edge| edge.processes).sum::<u64>();
        assert_eq!(processes(edges), processes(&pairs));
        assert_eq!(edges[0].life_median_ns, Some(9 * MS));
    }
}
