//! Commands of each process: file, arguments, directory and environment, from the trace.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use proctrace_findings::{LeftOut, PackedColumn, PackedTable};
use proctrace_overview::details::calls::each_exec;
use proctrace_recording::Recording;
use proctrace_recording::error::AnalysisError;
use proctrace_replay::{Exec, variables};
use proctrace_wire::Quantity;
use proctrace_wire::escape::to_text;

use super::strings::Strings;
use super::{
    ARGUMENTS_BYTES_MAX, ENVIRONMENTS_BYTES_MAX, EXECS_MAX, VARIABLES_MAX, known, since, wide,
};

/// Mark after arguments that are not all there.
const CUT: &str = "…";

/// The execs of a page, by process and then in order of time.
#[derive(Debug, Default)]
pub(super) struct Execs {
    rows: Vec<Row>,
    left_out: u64,
    /// Name and value of each variable, by environment.
    variables: Vec<(u64, Option<u64>, Option<u64>)>,
    environments: u64,
    environments_left_out: u64,
}

#[derive(Debug)]
struct Row {
    process: u64,
    run: Option<u32>,
    since_ns: u64,
    exe: Option<u64>,
    interpreter: Option<u64>,
    cwd: Option<u64>,
    arguments: Option<u64>,
    environment: Option<u64>,
}

impl Execs {
    pub(super) fn read(
        recording: &Recording,
        path: &Path,
        strings: &mut Strings,
    ) -> Result<Self, AnalysisError> {
        let mut made = Self::default();
        let mut environments: HashMap<u64, u64> = HashMap::new();
        let mut blocks: BTreeMap<u64, Vec<u8>> = BTreeMap::new();
        let (mut blocks_bytes, mut without) = (0, 0);
        let take = |process: usize, run: Option<u32>, exec: &Exec| {
            let id = exec.record.env_id;
            let next = environments.len() as u64;
            let environment = (id != 0).then(|| *environments.entry(id).or_insert(next));
            made.add(recording, exec, (process, run, environment), strings);
        };
        each_exec(recording, path, take, |id, block| {
            let Entry::Vacant(entry) = blocks.entry(id) else { return };
            if blocks_bytes + block.len() > ENVIRONMENTS_BYTES_MAX {
                without += 1;
            } else {
                blocks_bytes += block.len();
                entry.insert(block.to_vec());
            }
        })?;
        made.rows.sort_by_key(|row| (row.process, row.since_ns));
        made.environments_left_out = without;
        let mut blocks: Vec<(u64, Vec<u8>)> = blocks
            .into_iter()
            .filter_map(|(id, block)| Some((environments.get(&id).copied()?, block)))
            .collect();
        blocks.sort_by_key(|(environment, _)| *environment);
        for (environment, block) in blocks {
            let variables = variables(&block);
            if made.variables.len() + variables.len() > VARIABLES_MAX {
                made.environments_left_out += 1;
                continue;
            }
            made.environments += 1;
            for (name, value) in variables {
                let (name, value) =
                    (strings.number_of_bytes(&name), strings.number_of_bytes(&value));
                made.variables.push((environment, name, value));
            }
        }
        Ok(made)
    }

    fn add(
        &mut self,
        recording: &Recording,
        exec: &Exec,
        (process, run, environment): (usize, Option<u32>, Option<u64>),
        strings: &mut Strings,
    ) {
        if self.rows.len() >= EXECS_MAX {
            self.left_out += 1;
            return;
        }
        self.rows.push(Row {
            process: wide(process),
            run,
            since_ns: since(recording, exec.record.head.time_ns),
            exe: strings.number_of_bytes(&exec.exe),
            interpreter: exec.interpreter.as_deref().and_then(|path| strings.number_of_bytes(path)),
            cwd: strings.number_of_bytes(&exec.cwd),
            arguments: strings.number_of(&arguments(exec)),
            environment,
        });
    }

    /// The tables of execs and of the variables of environments.
    pub(super) fn tables(
        self,
        recording: &Recording,
        left_out: &mut Vec<LeftOut>,
    ) -> (PackedTable, PackedTable) {
        let rows = &self.rows;
        let shown = rows.len() as u64;
        if self.left_out > 0 {
            left_out.push(LeftOut { what: "execs", shown, of: shown + self.left_out });
        }
        if self.environments_left_out > 0 {
            let (what, shown) = ("environments", self.environments);
            left_out.push(LeftOut { what, shown, of: shown + self.environments_left_out });
        }
        let run = |row: &Row| recording.runs().get(row.run? as usize);
        let mut execs = PackedTable::new("execs", rows.len());
        let column =
            |name, of: fn(&Row) -> Option<u64>| PackedColumn::of(name, rows.iter().map(of));
        execs.columns = vec![
            PackedColumn::ascending("process", rows.iter().map(|row| Some(row.process))),
            PackedColumn::ascending("time_ns", rows.iter().map(|row| Some(row.since_ns))),
            PackedColumn::of("program", rows.iter().map(|row| Some(run(row)?.program.into()))),
            PackedColumn::of(
                "happened_here",
                rows.iter().map(|row| Some(u64::from(run(row)?.happened_here))),
            ),
            column("exe", |row| row.exe),
            column("interpreter", |row| row.interpreter),
            column("cwd", |row| row.cwd),
            known(recording, &[Quantity::Argv], "arguments", || {
                rows.iter().map(|row| row.arguments)
            }),
            column("environment", |row| row.environment),
        ];
        let variables = &self.variables;
        let mut environments = PackedTable::new("variables", variables.len());
        environments.columns = vec![
            PackedColumn::ascending("environment", variables.iter().map(|row| Some(row.0))),
            PackedColumn::of("name", variables.iter().map(|row| row.1)),
            PackedColumn::of("value", variables.iter().map(|row| row.2)),
        ];
        (execs, environments)
    }
}

/// All arguments as one string with NUL between them, cut if it is too long.
fn arguments(exec: &Exec) -> String {
    let mut all = String::new();
    let mut cut = exec.argv_truncated;
    for (at, argument) in exec.argv.iter().enumerate() {
        if at > 0 {
            all.push('\0');
        }
        let shown = &argument[..argument.len().min(ARGUMENTS_BYTES_MAX)];
        all.push_str(&to_text(shown));
        if shown.len() < argument.len() || all.len() > ARGUMENTS_BYTES_MAX {
            cut |= shown.len() < argument.len() || at + 1 < exec.argv.len();
            break;
        }
    }
    if all.len() > ARGUMENTS_BYTES_MAX {
        let end = (0..=ARGUMENTS_BYTES_MAX).rev().find(|at| all.is_char_boundary(*at));
        all.truncate(end.unwrap_or(0));
        cut = true;
    }
    if cut {
        all.push_str(CUT);
    }
    all
}
