//! The summary of a job: from a loaded recording to the rows of the tables of a fleet.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::path::Path;

use proctrace_analysis::{
    AdviceRules, Analysis, Options, Recording, Section, TableSchema, advise, job_root, requests,
};
use proctrace_findings::{Advice, Cell, Findings, Gain, Knowledge, Outcome, Rows, Table};

use crate::claims::{KnownBy, Who, cgroup_of_job};
use crate::columns::us;
use crate::error::FleetError;
use crate::identity::Identity;
use crate::key::Key;
use crate::programs;
use crate::redact::{Redaction, sentence};
use crate::schema::{ADVICE, JOBS, MISSES, PROGRAMS, STEP_GROUPS};
use crate::user::user_hash;

/// Characters of a command line that are kept.
const COMMAND_CHARS_MAX: usize = 120;
/// Characters of a piece of advice that are kept.
const ADVICE_CHARS_MAX: usize = 120;
/// Names of commands in a piece of redacted advice.
const REDACTED_COMMANDS_MAX: usize = 3;
/// Advice that gains less than this part of the wall time, of the CPU time or of memory is left out.
const ADVICE_MIN_PERCENT: f64 = 1.0;
/// Pieces of advice that are kept, the best ones.
const ADVICE_MAX: usize = 5;
/// Directories that are kept, those with most failed look-ups.
pub const MISSES_MAX: usize = 200;
/// Groups of steps that are kept, those with the longest steps.
const STEP_GROUPS_MAX: usize = 50;
/// The simulated sampler: prmon at its default interval.
const SAMPLER: &str = "prmon-like, -i 30";

/// Data about a job besides its recording.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct About {
    /// Labels: name and value.
    pub labels: Vec<(String, String)>,
    /// The key for hashes; without it, users have none.
    pub site_key: Option<Vec<u8>>,
    /// True if names become hashes, which needs the key.
    pub redact: bool,
    /// CPU time by the batch system.
    pub batch_cpu_us: Option<u64>,
}

/// The summary of a job.
#[derive(Debug, Clone)]
pub struct Summary {
    /// The job.
    pub job: String,
    /// The day on which it began.
    pub day: Option<String>,
    /// The rows of each table.
    pub tables: Vec<(&'static TableSchema, Rows)>,
}

/// Summarizes a recording, whose trace is at `path`.
///
/// # Errors
/// If the trace cannot be read again, or a table cannot be computed.
pub fn summarize(recording: &Recording, path: &Path, about: &About) -> Result<Summary, FleetError> {
    let redaction = match (about.redact, &about.site_key) {
        (false, _) => Redaction::none(),
        (true, Some(key)) => Redaction::by(key),
        (true, None) => return Err(FleetError::NoKey),
    };
    let mut who = Who::of(recording);
    let analysis = Analysis::of(recording);
    let mut findings = analysis.without_advice();
    if cgroup_of_job(recording).is_some() {
        let root = job_root(recording, path)?;
        findings.run.outcome = root.outcome.or(findings.run.outcome);
        findings.run.command = named(root.command, who.claimed_job_name.as_deref());
    }
    let identity = std::mem::take(&mut who.identity).redacted(redaction).labelled(&about.labels);
    if about.labels.iter().any(|(name, _)| name == "batch_id") {
        who.batch_id_from = Some(KnownBy::Label);
    }
    let key = Key::of(&findings, &identity, redaction);
    let sampled = Sampled::of(&analysis)?;
    let tables = vec![
        (&JOBS, job(&key, &findings, (&identity, &who), about, &sampled, redaction, recording)),
        (&PROGRAMS, programs::rows(&key, recording, path, redaction)?),
        (&MISSES, misses(&key, &findings, redaction)),
        (&ADVICE, advice(&key, recording, redaction)),
        (&STEP_GROUPS, step_groups(&key, recording, redaction)),
    ];
    Ok(Summary { job: key.job, day: key.day, tables })
}

fn job(
    key: &Key,
    findings: &Findings,
    (identity, who): (&Identity, &Who),
    about: &About,
    sampled: &Sampled,
    redaction: Redaction<'_>,
    recording: &Recording,
) -> Rows {
    let Findings { run, summary, health, .. } = findings;
    let hash = |user: Option<&str>| {
        let (key, user) = about.site_key.as_deref().zip(user)?;
        Some(user_hash(key, user))
    };
    let secret = |text: &Option<String>| text.clone().map(|text| redaction.text(text));
    let of_node = recording.trailer().and_then(|trailer| trailer.of_node.as_ref());
    let partial = !health.complete || of_node.is_some_and(|node| node.began_before);
    let labels: Vec<String> =
        identity.labels.iter().map(|(name, value)| format!("{name}={value}")).collect();
    let started = (run.started_unix_ns > 0).then(|| redaction.start_ns(run.started_unix_ns));
    let cores = identity.cores.or((run.cores > 0).then_some(u64::from(run.cores)));
    let exit_code = run.outcome.and_then(|outcome| match outcome {
        Outcome::Code(code) => u64::try_from(code).ok(),
        Outcome::Signal(signal) => u64::try_from(signal).ok().map(|signal| 128 + signal),
    });
    let absent = findings.known.iter().filter(|known| known.state == Knowledge::Absent);
    let absent: Vec<&str> = absent.map(|known| known.quantity).collect();

    let mut row = key.columns(&JOBS, 1);
    row.text("day", vec![key.day.clone()]);
    let texts = [
        ("queue", identity.queue.clone()),
        ("batch_system", identity.batch_system.clone()),
        ("batch_id", identity.batch_id.clone().map(|id| redaction.text(id))),
        ("user_hash", hash(identity.user.as_deref())),
        ("release", identity.release.clone()),
        ("labels", none_if_empty(labels.join(" "))),
        ("command", none_if_empty(cut(&redaction.command(&run.command), COMMAND_CHARS_MAX))),
        ("not_known", none_if_empty(absent.join(" "))),
        ("batch_id_from", who.batch_id_from.map(|by| by.name().to_owned())),
        ("claimed_batch_id", secret(&who.claimed.batch_id)),
        ("claimed_user_hash", hash(who.claimed.user.as_deref())),
        ("claimed_job_name", secret(&who.claimed_job_name)),
    ];
    for (name, value) in texts {
        row.text(name, vec![value]);
    }
    let times_ns = [
        ("started_unix_us", started),
        ("wall_us", run.wall_ns),
        ("recorded_us", run.recorded_ns.max(run.wall_ns)),
        ("cpu_us", summary.cpu_ns),
        ("system_us", summary.system_ns),
        ("waited_cpu_us", summary.waited_cpu_ns),
        ("unwaited_cpu_us", summary.unwaited_cpu_ns),
        ("sampled_cpu_us", sampled.cpu_ns),
        ("unseen_cpu_us", sampled.unseen_ns),
        ("late_cpu_us", sampled.late_ns),
        ("outside_cpu_us", sampled.outside_ns),
        ("hidden_cpu_us", sampled.hidden_ns),
        ("run_delay_us", summary.run_delay_ns),
        ("before_cpu_us", of_node.and_then(|node| node.before_cpu_ns)),
    ];
    for (name, value_ns) in times_ns {
        row.whole(name, vec![value_ns.map(us)]);
    }
    let figures = [
        ("batch_cpu_us", about.batch_cpu_us),
        ("cores", cores),
        ("processes", summary.processes),
        ("threads", summary.threads),
        ("execs", summary.execs),
        ("failed_lookups", summary.lookups_in_vain),
        ("peak_rss_bytes", summary.maxrss_bytes),
        ("read_bytes", summary.read_bytes),
        ("write_bytes", summary.write_bytes),
        ("exit_code", exit_code),
        ("lost_records", Some(health.lost)),
    ];
    for (name, value) in figures {
        row.whole(name, vec![value]);
    }
    let sound = !partial && health.damage.is_empty() && health.laws_hold();
    row.flag("sound", vec![Some(sound)]);
    row.flag("partial", vec![Some(partial)]);
    row.finish()
}

/// Slurm copies the script of a job to a path with the job's number, by which no two jobs would be the same command:
/// the name of the job stands for it, or that of the copy.
fn named(mut command: Vec<String>, job_name: Option<&str>) -> Vec<String> {
    for argument in command.iter_mut().take(2) {
        if argument.ends_with("/slurm_script") {
            *argument = job_name.unwrap_or("slurm_script").to_owned();
        }
    }
    command
}

fn none_if_empty(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The first characters of a text.
fn cut(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// CPU time that a sampler would have reported, and the reasons it would have missed the rest.
#[derive(Debug, Clone, Copy, Default)]
struct Sampled {
    cpu_ns: Option<u64>,
    unseen_ns: Option<u64>,
    late_ns: Option<u64>,
    outside_ns: Option<u64>,
    hidden_ns: Option<u64>,
}

impl Sampled {
    fn of(analysis: &Analysis<'_>) -> Result<Self, FleetError> {
        let Some(section) = Section::named("accounting") else { return Ok(Self::default()) };
        let content = analysis.section(section, &Options::default());
        let table = |name: &str| content.tables.iter().find(|table| table.name == name);
        let cpu_ns =
            table("accounting").and_then(|table| figure(table, &[("method", SAMPLER)], "cpu_ns"));
        // Nothing but rounding is left out of the reasons.
        let missed = |why: &str| {
            cpu_ns?;
            let found =
                figure(table("accounting_why")?, &[("method", SAMPLER), ("why", why)], "cpu_ns");
            Some(found.unwrap_or(0))
        };
        Ok(Self {
            cpu_ns,
            unseen_ns: missed("lived between two readings"),
            late_ns: missed("after the last reading"),
            outside_ns: missed("no longer in the tree"),
            hidden_ns: missed("live children of non-main threads"),
        })
    }
}

/// The figure of a column in the row with these texts.
fn figure(table: &Table, texts: &[(&str, &str)], column: &str) -> Option<u64> {
    let is = |row: usize, (name, text): &(&str, &str)| {
        table.named(name).is_some_and(|column| column.values.get(row) == Cell::Text(text))
    };
    let row = (0..table.height()).find(|row| texts.iter().all(|text| is(*row, text)))?;
    match table.named(column)?.values.get(row) {
        Cell::Real(value) => Some(value.max(0.0).round() as u64),
        Cell::Whole(value) => Some(value),
        _ => None,
    }
}

/// A directory that was searched in vain.
struct Searched<'a> {
    directory: String,
    errno: &'a str,
    misses: u64,
}

/// The change that advice proposes. Redacted, it is put together anew: the text has names in places
/// that are not marked.
fn what(advice: &Advice, redaction: Redaction<'_>) -> Option<String> {
    if !redaction.is_on() {
        return Some(cut(&advice.what, ADVICE_CHARS_MAX));
    }
    let says = sentence(advice.kind)?;
    let commands = advice.commands.iter().take(REDACTED_COMMANDS_MAX);
    let mut commands: Vec<String> = commands.map(|name| redaction.program(name)).collect();
    // Their order would tell that of the names.
    commands.sort_unstable();
    let separator = if commands.is_empty() { "" } else { ": " };
    Some(cut(&format!("{says}{separator}{}", commands.join(", ")), ADVICE_CHARS_MAX))
}

/// The remainder row comes last.
fn misses(key: &Key, findings: &Findings, redaction: Redaction<'_>) -> Rows {
    // By directory and errno, over all calls.
    let mut sums: BTreeMap<(String, &str), u64> = BTreeMap::new();
    for row in &findings.lookups {
        let sum = sums.entry((redaction.path(&row.directory), &row.errno)).or_default();
        *sum = sum.saturating_add(row.count);
    }
    let searched = |((directory, errno), misses)| Searched { directory, errno, misses };
    let mut all: Vec<Searched<'_>> = sums.into_iter().map(searched).collect();
    // Stable: of equal numbers in the order of names.
    all.sort_by_key(|row| Reverse(row.misses));
    let kept = &all[..all.len().min(MISSES_MAX)];
    let others: u64 = all[kept.len()..].iter().map(|row| row.misses).fold(0, u64::saturating_add);
    let more = (others > 0).then_some(());
    let mut columns = key.columns(&MISSES, kept.len() + usize::from(more.is_some()));
    let names = |of: &dyn Fn(&Searched<'_>) -> String| {
        kept.iter().map(|row| Some(of(row))).chain(more.map(|()| None)).collect()
    };
    columns.text("directory", names(&|row| row.directory.clone()));
    columns.text("errno", names(&|row| row.errno.to_owned()));
    let counts = kept.iter().map(|row| Some(row.misses)).chain(more.map(|()| Some(others)));
    columns.whole("misses", counts.collect());
    columns.finish()
}

fn advice(key: &Key, recording: &Recording, redaction: Redaction<'_>) -> Rows {
    let mut advised = advise(recording, &AdviceRules::built_in(), ADVICE_MIN_PERCENT).advice;
    advised.retain(|advice| advice.part_of.is_none() && advice.is_certain());
    advised.truncate(ADVICE_MAX);
    let mut columns = key.columns(&ADVICE, advised.len());
    columns.text("kind", advised.iter().map(|it| Some(it.kind.to_owned())).collect());
    columns.text("what", advised.iter().map(|it| what(it, redaction)).collect());
    columns.whole("processes", advised.iter().map(|it| Some(it.processes)).collect());
    let mut gain = |name, of: fn(&Advice) -> Gain, end: fn(Gain) -> u64| {
        columns.whole(name, advised.iter().map(|it| Some(us(end(of(it))))).collect());
    };
    gain("wall_us", |it| it.wall_ns, |gain| gain.middle);
    gain("wall_low_us", |it| it.wall_ns, |gain| gain.low);
    gain("cpu_us", |it| it.cpu_ns, |gain| gain.middle);
    columns.finish()
}

fn step_groups(key: &Key, recording: &Recording, redaction: Redaction<'_>) -> Rows {
    // The first one is that of the job.
    let all = requests(recording, None).into_iter();
    let mut groups: Vec<_> = all.filter_map(|of| Some((of.group.clone()?, of))).collect();
    groups.truncate(STEP_GROUPS_MAX);
    if redaction.is_on() {
        for (name, _) in &mut groups {
            *name = redaction.text(std::mem::take(name));
        }
        // Their order would tell more than the figures do.
        groups.sort_by(|a, b| a.0.cmp(&b.0));
    }
    let mut columns = key.columns(&STEP_GROUPS, groups.len());
    let of = || groups.iter().map(|(_, of)| of);
    columns.whole("steps", of().map(|of| Some(of.steps)).collect());
    columns.whole("cores", of().map(|of| of.cores).collect());
    columns.whole("memory_peak_bytes", of().map(|of| of.memory_used_bytes).collect());
    let from = of().map(|of| of.memory_used_bytes.map(|_| of.memory_from.name().to_owned()));
    columns.text("memory_from", from.collect());
    columns.whole("written_peak_bytes", of().map(|of| of.disk_used_bytes).collect());
    columns.whole("wall_max_us", of().map(|of| Some(us(of.wall_used_ns))).collect());
    columns.text("step_group", groups.into_iter().map(|(name, _)| Some(name)).collect());
    columns.finish()
}
