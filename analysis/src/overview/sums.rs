//! Sums over processes, by program and by spawner: every table of programs, every metric by program
//! and every pair of a program and its spawner is one of these sums.

use polars::prelude::*;
use proctrace_replay::CpuTime;

use crate::classify::labels::class_name;
use crate::error::AnalysisError;
use crate::overview::lives::{Groups, Medians};
use crate::recording::Recording;
use crate::recording::split::{Divided, Ticks};

/// The summed columns, whatever they are grouped by.
const SUMMED: [&str; 11] = [
    "processes",
    "there_before",
    "forked",
    "threads",
    "execs",
    "user_ns",
    "system_ns",
    "user_ticks_ns",
    "system_ticks_ns",
    "failed_lookups",
    "lookups_unseen",
];

/// The sums of one group of processes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Sum {
    /// The labels of the group, in the order requested.
    pub(crate) labels: Vec<String>,
    pub(crate) processes: u64,
    /// Number of these that were there before the recording began.
    pub(crate) there_before: u64,
    /// Number of these that never called exec: they count as their parent's program.
    pub(crate) forked: u64,
    /// Threads other than the first of each process.
    pub(crate) threads: u64,
    /// Successful execs while recording. An exec counts for the program executed, whatever the
    /// process ran after it.
    pub(crate) execs: u64,
    pub(crate) used: Divided,
    pub(crate) failed_lookups: u64,
    /// Processes whose look-ups are not seen.
    pub(crate) lookups_unseen: u64,
}

impl Sum {
    pub(crate) fn cpu_ns(&self) -> u64 {
        self.used.cpu.total_ns()
    }

    /// Processes that were created while recording.
    pub(crate) fn created(&self) -> u64 {
        self.processes.saturating_sub(self.there_before)
    }
}

/// The sums of one program.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ProgramSum {
    /// Number of the program.
    pub(crate) program: usize,
    pub(crate) sum: Sum,
    /// Median lifetime of its processes.
    pub(crate) life_median_ns: Option<u64>,
    /// The largest of any of its processes.
    pub(crate) peak_rss_bytes: Option<u64>,
    /// Number of the program that started most of them, and how many it started.
    pub(crate) main_spawner: Option<usize>,
    pub(crate) main_spawner_processes: Option<u64>,
}

/// Processes that ran the same program and have the same spawner.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Edge {
    /// Number of the program that forked them, and of its command line's template if it called
    /// exec.
    pub(crate) spawner: usize,
    pub(crate) shape: Option<u32>,
    /// Number of the program they ran last.
    pub(crate) program: usize,
    /// They never called exec.
    pub(crate) forked: bool,
    pub(crate) processes: u64,
    pub(crate) used: Divided,
    /// Median lifetime.
    pub(crate) life_median_ns: Option<u64>,
}

/// Processes whose failed look-ups are counted at a time: so few that their counts stay in a cache.
const PASS_PROCESSES: usize = 1 << 15;

/// Sums over all processes.
#[derive(Debug)]
pub(crate) struct Sums {
    /// Groups by spawner, its command line, and the program they ran last.
    edges: DataFrame,
    /// Sums by program number; a program that was only executed, and replaced by another, has no
    /// processes.
    programs: DataFrame,
    life_median_ns: Option<u64>,
}

impl Sums {
    pub(crate) fn of(recording: &Recording) -> Result<Self, AnalysisError> {
        let groups = Groups::of(recording);
        let lives = Medians::of(recording, &groups);
        let edges = frame(&groups, &of_groups(recording, &groups), &lives)?
            .lazy()
            .with_column((col("user_ns") + col("system_ns")).alias("cpu_ns"))
            .sort_by_exprs(
                ["processes", "cpu_ns", "spawner", "spawner_shape", "program", "forked"].map(col),
                descending([true, true, false, false, false, false]),
            )
            .collect()?;
        // The sums of programs are sums of these groups.
        let programs = programs(recording, &edges, &lives)?;
        Ok(Self { edges, programs, life_median_ns: lives.of_all })
    }

    /// Median lifetime of all processes that ended.
    pub(crate) fn life_median_ns(&self) -> Option<u64> {
        self.life_median_ns
    }

    /// Groups of programs that share these labels (`class`, `category`, `name`), most processes
    /// first.
    pub(crate) fn by<const N: usize>(&self, labels: [&str; N]) -> Result<Vec<Sum>, AnalysisError> {
        let keys = labels.map(col);
        let order: Vec<Expr> =
            ["processes", "execs", "threads"].map(col).into_iter().chain(keys.clone()).collect();
        let largest_first = [true; 3].into_iter().chain([false; N]);
        let table = self
            .programs
            .clone()
            .lazy()
            .group_by(keys)
            .agg(SUMMED.map(|name| col(name).sum()))
            .sort_by_exprs(order, descending(largest_first))
            .collect()?;
        sums(&table, &labels)
    }

    /// Every program: most processes first, then those that only executed another program.
    pub(crate) fn programs(&self) -> Result<Vec<ProgramSum>, AnalysisError> {
        let table = &self.programs;
        let of = |name: &str| wholes(table, name);
        let (program, life, peak) = (of("program")?, of("life_median_ns")?, of("peak_rss_bytes")?);
        let (spawner, spawned) = (of("main_spawner")?, of("main_spawner_processes")?);
        let sums = sums(table, &[])?.into_iter().enumerate();
        Ok(sums
            .map(|(row, sum)| ProgramSum {
                program: place(program[row]),
                sum,
                life_median_ns: life[row],
                peak_rss_bytes: peak[row],
                main_spawner: spawner[row].map(|spawner| place(Some(spawner))),
                main_spawner_processes: spawned[row],
            })
            .collect())
    }

    /// Spawners by command line and what they started, most frequent first.
    pub(crate) fn edges(&self) -> Result<Vec<Edge>, AnalysisError> {
        edges(&self.edges.clone().lazy().filter(col("spawner").is_not_null()).collect()?)
    }

    /// The same over all command lines, without lifetimes.
    pub(crate) fn pairs(&self) -> Result<Vec<Edge>, AnalysisError> {
        let table = self
            .edges
            .clone()
            .lazy()
            .filter(col("spawner").is_not_null())
            .group_by(["spawner", "program", "forked"].map(col))
            .agg(
                ["processes", "cpu_ns", "user_ns", "system_ns", "user_ticks_ns", "system_ticks_ns"]
                    .map(|name| col(name).sum()),
            )
            .with_columns([
                lit(NULL).cast(DataType::UInt32).alias("spawner_shape"),
                lit(NULL).cast(DataType::UInt64).alias("life_median_ns"),
            ])
            .sort_by_exprs(
                ["processes", "cpu_ns", "spawner", "program", "forked"].map(col),
                descending([true, true, false, false, false]),
            )
            .collect()?;
        edges(&table)
    }
}

/// Aggregates groups of processes to programs, with their execs, labels and main spawner.
fn programs(
    recording: &Recording,
    edges: &DataFrame,
    lives: &Medians,
) -> Result<DataFrame, AnalysisError> {
    let edges = || edges.clone().lazy();
    let sum = |name: &str| col(name).sum();
    let ran = edges().group_by([col("program")]).agg([
        sum("processes"),
        sum("there_before"),
        col("processes").filter(col("forked")).sum().alias("forked"),
        sum("threads"),
        sum("user_ns"),
        sum("system_ns"),
        sum("user_ticks_ns"),
        sum("system_ticks_ns"),
        sum("failed_lookups"),
        sum("lookups_unseen"),
        col("peak_rss_bytes").max(),
    ]);
    let main_spawners = edges()
        .group_by([col("program"), col("spawner")])
        .agg([sum("processes").alias("main_spawner_processes")])
        .sort_by_exprs([col("main_spawner_processes"), col("spawner")], descending([true, false]))
        .group_by_stable([col("program")])
        .agg([col("spawner").first().alias("main_spawner"), col("main_spawner_processes").first()]);
    let here = recording.runs.iter().filter(|run| run.happened_here);
    let executed = df!("program" => here.map(|run| run.program).collect::<Vec<u32>>())?
        .lazy()
        .group_by([col("program")])
        .agg([len().cast(DataType::UInt64).alias("execs")]);
    let join = |left: LazyFrame, right: LazyFrame, how: JoinType| {
        let args = JoinArgs::new(how).with_coalesce(JoinCoalesce::CoalesceColumns);
        left.join(right, [col("program")], [col("program")], args)
    };
    let (programs, medians): (Vec<u32>, Vec<u64>) = lives.of_program.iter().unzip();
    let lives = df!("program" => programs, "life_median_ns" => medians)?;
    let table = join(join(ran, lives.lazy(), JoinType::Left), main_spawners, JoinType::Left);
    let table = join(table, executed, JoinType::Full);
    let table = join(table, labels(recording)?.lazy(), JoinType::Left);
    // Programs that only executed another come last, by their execs.
    let only_executed =
        when(col("processes").eq(lit(0u64))).then(col("execs")).otherwise(lit(0u64));
    Ok(table
        .with_columns(SUMMED.map(|name| col(name).fill_null(lit(0u64))))
        .with_column((col("user_ns") + col("system_ns")).alias("cpu_ns"))
        .sort_by_exprs(
            [col("processes"), col("cpu_ns"), only_executed, col("program")],
            descending([true, true, true, false]),
        )
        .collect()?)
}

/// The sums of one group, which has a number instead of labels.
#[derive(Debug, Clone, Default)]
struct GroupSum {
    processes: u64,
    there_before: u64,
    threads: u64,
    used: Divided,
    failed_lookups: u64,
    lookups_unseen: u64,
    peak_rss_bytes: Option<u64>,
}

/// Sums the processes of each group. The groups have consecutive numbers: a query would hash them, and needs columns of
/// all processes first (docs/decisions/0023-grouped-sums.md).
fn of_groups(recording: &Recording, groups: &Groups) -> Vec<GroupSum> {
    let mut sums = vec![GroupSum::default(); groups.groups.len()];
    let (processes, count) = (&recording.processes, recording.processes.len());
    for from in (0..count).step_by(PASS_PROCESSES) {
        let range = from..count.min(from + PASS_PROCESSES);
        let failed_lookups = recording.failed_lookups_of(range.clone());
        let of_process = &groups.of_process[range.clone()];
        let rows = processes[range].iter().zip(of_process).zip(failed_lookups);
        for ((process, group), failed_lookups) in rows {
            let sum = &mut sums[*group as usize];
            let threads = (process.tasks().len() as u64).saturating_sub(1);
            sum.processes += 1;
            sum.there_before += u64::from(process.was_there());
            sum.threads = sum.threads.saturating_add(threads);
            sum.used.add(&recording.divided_of(process));
            sum.failed_lookups = sum.failed_lookups.saturating_add(failed_lookups.unwrap_or(0));
            sum.lookups_unseen += u64::from(failed_lookups.is_none());
            sum.peak_rss_bytes = sum.peak_rss_bytes.max(recording.known_peak_rss_bytes(process));
        }
    }
    sums
}

/// The sums of each group, what its processes have in common, and their median lifetime.
fn frame(groups: &Groups, sums: &[GroupSum], lives: &Medians) -> Result<DataFrame, AnalysisError> {
    let group = || groups.groups.iter();
    let sum = |of: fn(&GroupSum) -> u64| sums.iter().map(of).collect::<Vec<u64>>();
    Ok(df!(
        "program" => group().map(|group| group.program).collect::<Vec<_>>(),
        "spawner" => group().map(|group| group.spawner).collect::<Vec<_>>(),
        "spawner_shape" => group().map(|group| group.shape).collect::<Vec<_>>(),
        "forked" => group().map(|group| group.forked).collect::<Vec<_>>(),
        "life_median_ns" => &lives.of_group,
        "processes" => sum(|sum| sum.processes),
        "there_before" => sum(|sum| sum.there_before),
        "threads" => sum(|sum| sum.threads),
        "user_ns" => sum(|sum| sum.used.cpu.user_ns),
        "system_ns" => sum(|sum| sum.used.cpu.system_ns),
        "user_ticks_ns" => sum(|sum| sum.used.ticks.user_ns),
        "system_ticks_ns" => sum(|sum| sum.used.ticks.system_ns),
        "failed_lookups" => sum(|sum| sum.failed_lookups),
        "lookups_unseen" => sum(|sum| sum.lookups_unseen),
        "peak_rss_bytes" => sums.iter().map(|sum| sum.peak_rss_bytes).collect::<Vec<_>>(),
    )?)
}

/// The labels that programs are grouped by, by program number.
fn labels(recording: &Recording) -> Result<DataFrame, AnalysisError> {
    let programs = &recording.programs;
    let numbers = 0..u32::try_from(programs.len()).unwrap_or(u32::MAX);
    let texts = |of: fn(&crate::classify::Program) -> &str| -> Vec<&str> {
        programs.iter().map(of).collect()
    };
    Ok(df!(
        "program" => numbers.collect::<Vec<u32>>(),
        "class" => texts(|program| class_name(program.class)),
        "category" => texts(|program| program.category()),
        "name" => texts(|program| &program.name),
    )?)
}

fn descending(columns: impl IntoIterator<Item = bool>) -> SortMultipleOptions {
    SortMultipleOptions::default().with_order_descending_multi(columns)
}

fn place(number: Option<u64>) -> usize {
    number.and_then(|number| usize::try_from(number).ok()).unwrap_or(0)
}

/// A column of integers.
pub(crate) fn wholes(table: &DataFrame, name: &str) -> Result<Vec<Option<u64>>, AnalysisError> {
    Ok(table.column(name)?.cast(&DataType::UInt64)?.u64()?.iter().collect())
}

/// The same for a column without nulls.
fn counts(table: &DataFrame, name: &str) -> Result<Vec<u64>, AnalysisError> {
    Ok(wholes(table, name)?.into_iter().map(Option::unwrap_or_default).collect())
}

fn divided(table: &DataFrame) -> Result<Vec<Divided>, AnalysisError> {
    let (user_ns, system_ns) = (counts(table, "user_ns")?, counts(table, "system_ns")?);
    let user_ticks_ns = counts(table, "user_ticks_ns")?;
    let system_ticks_ns = counts(table, "system_ticks_ns")?;
    Ok((0..table.height())
        .map(|row| Divided {
            cpu: CpuTime { user_ns: user_ns[row], system_ns: system_ns[row] },
            ticks: Ticks { user_ns: user_ticks_ns[row], system_ns: system_ticks_ns[row] },
        })
        .collect())
}

fn sums(table: &DataFrame, labels: &[&str]) -> Result<Vec<Sum>, AnalysisError> {
    let labels = labels
        .iter()
        .map(|label| Ok(table.column(label)?.str()?))
        .collect::<Result<Vec<_>, AnalysisError>>()?;
    let (processes, forked) = (counts(table, "processes")?, counts(table, "forked")?);
    let there_before = counts(table, "there_before")?;
    let (threads, execs) = (counts(table, "threads")?, counts(table, "execs")?);
    let (used, failed_lookups) = (divided(table)?, counts(table, "failed_lookups")?);
    let lookups_unseen = counts(table, "lookups_unseen")?;
    let text = |row: usize, label: &StringChunked| label.get(row).unwrap_or_default().to_owned();
    Ok((0..table.height())
        .map(|row| Sum {
            labels: labels.iter().map(|label| text(row, label)).collect(),
            processes: processes[row],
            there_before: there_before[row],
            forked: forked[row],
            threads: threads[row],
            execs: execs[row],
            used: used[row],
            failed_lookups: failed_lookups[row],
            lookups_unseen: lookups_unseen[row],
        })
        .collect())
}

fn edges(table: &DataFrame) -> Result<Vec<Edge>, AnalysisError> {
    let (spawner, program) = (wholes(table, "spawner")?, wholes(table, "program")?);
    let (shape, life) = (wholes(table, "spawner_shape")?, wholes(table, "life_median_ns")?);
    let forked = table.column("forked")?.bool()?;
    let (processes, used) = (counts(table, "processes")?, divided(table)?);
    Ok((0..table.height())
        .map(|row| Edge {
            spawner: place(spawner[row]),
            shape: shape[row].and_then(|shape| u32::try_from(shape).ok()),
            program: place(program[row]),
            forked: forked.get(row).unwrap_or(false),
            processes: processes[row],
            used: used[row],
            life_median_ns: life[row],
        })
        .collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{MS, S, Scene};

    /// make runs sed twice and env once, which replaces itself with awk; a fork of make runs
    /// nothing.
    fn sums() -> (Recording, Sums) {
        let mut scene = Scene::new(1, S);
        scene.exec(0, 1, "/bin/make", (0, 0));
        for (child, ends_ms) in [(2, 10), (3, 30)] {
            scene.fork(MS, 1, child).exec(MS, child, "/bin/sed", (0, 0));
            scene.exit(ends_ms * MS, child, (MS, 2 * MS));
        }
        scene.fork(40 * MS, 1, 4).exec(40 * MS, 4, "/usr/bin/env", (0, 0));
        scene.exec(41 * MS, 4, "/bin/awk", (0, 0)).open_failed(42 * MS, 4, "/no");
        scene.exit(50 * MS, 4, (MS, 0)).fork(60 * MS, 1, 5).thread(61 * MS, 5, 6);
        let recording = scene.exit(S, 1, (0, 0)).load(None);
        let sums = Sums::of(&recording).unwrap();
        (recording, sums)
    }

    #[test]
    fn programs_are_the_sums_of_their_processes() {
        let (recording, sums) = sums();
        let rows: Vec<_> = sums
            .programs()
            .unwrap()
            .into_iter()
            .map(|row| {
                let (name, sum) = (&*recording.programs[row.program].name, row.sum);
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
        let execs: u64 = sums.by(["class"]).unwrap().iter().map(|sum| sum.execs).sum();
        assert_eq!(execs, recording.counts.execs);
        let text = sums.by(["category"]).unwrap();
        let text = text.iter().find(|sum| sum.labels == ["text"]).unwrap();
        assert_eq!((text.processes, text.cpu_ns()), (3, 7 * MS));
    }

    #[test]
    fn pairs_are_the_sums_of_edges() {
        let (recording, sums) = sums();
        let name = |program: usize| &*recording.programs[program].name;
        let pairs = sums.pairs().unwrap();
        let says: Vec<_> = pairs
            .iter()
            .map(|pair| (name(pair.spawner), name(pair.program), pair.forked, pair.processes))
            .collect();
        assert_eq!(
            says,
            [("make", "sed", false, 2), ("make", "awk", false, 1), ("make", "make", true, 1)]
        );
        assert_eq!(pairs[0].used.cpu.total_ns(), 6 * MS);
        let edges = sums.edges().unwrap();
        let processes = |edges: &[Edge]| edges.iter().map(|edge| edge.processes).sum::<u64>();
        assert_eq!(processes(&edges), processes(&pairs));
        assert_eq!(edges[0].life_median_ns, Some(9 * MS));
    }
}
