//! Writes a fleet of synthetic jobs, made from the summaries of recorded ones: `synthetic RECORDED LAKE JOBS`.
//!
//! Each job has 60 rows of `programs`, the largest table: those of a recorded job, and others drawn from all
//! recorded jobs. Their figures vary by the factor by which events of the payloads do
//! (crates/payload/src/random.rs). Days and sites are drawn. The seed is fixed. Used by `cargo xtask bench
//! fleet`.

use std::error::Error;
use std::path::{Path, PathBuf};

use proctrace_findings::{Rows, RowsColumn, RowsValues};
use proctrace_fleet::{Layout, Summary, ask, day, table_named};
use proctrace_outputs::Outputs;

const SEED: u64 = 22;
const TABLE: &str = "programs";
const PROGRAMS: usize = 60;
const DAYS: u64 = 10;
const SITES: u64 = 20;
const WRITERS: u64 = 2;
/// 2026-11-14.
const FIRST_DAY_UNIX_S: u64 = 1_794_614_400;
const DAY_S: u64 = 86_400;

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(recorded), Some(lake), Some(jobs)) =
        (arguments.next(), arguments.next(), arguments.next())
    else {
        return Err("usage: synthetic RECORDED LAKE JOBS".into());
    };
    let jobs: u64 = jobs.to_string_lossy().parse()?;
    let recorded = Recorded::read(&recorded)?;
    std::thread::scope(|scope| {
        let writer = |writer: u64| {
            let (recorded, lake) = (&recorded, &lake);
            scope.spawn(move || {
                for number in (writer..jobs).step_by(WRITERS as usize) {
                    Layout::default().write(
                        lake,
                        &recorded.job(number),
                        &Outputs::of_this_process(),
                    )?;
                }
                Ok::<(), Failure>(())
            })
        };
        let writers: Vec<_> = (0..WRITERS).map(writer).collect();
        for writer in writers {
            writer.join().map_err(|_| "a writer panicked")??;
        }
        Ok(())
    })
}

/// SplitMix64, with the payloads' factor.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn uneven(&mut self) -> f64 {
        let u = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        0.5 + 2.0 * u * u * u
    }
}

/// The programs of the recorded jobs.
struct Recorded {
    programs: Rows,
    /// Rows of each job.
    of_job: Vec<Vec<usize>>,
}

impl Recorded {
    fn read(root: &Path) -> Result<Self, Failure> {
        // Without a name, a row is the remainder of its job.
        let sql = "SELECT * FROM programs WHERE program IS NOT NULL ORDER BY job, cpu_us DESC";
        let answer = ask(root, &Layout::default(), sql)?;
        let programs = answer.rows(0, answer.height())?;
        let owners = texts(&programs, "job");
        let mut of_job: Vec<Vec<usize>> = Vec::new();
        for row in 0..owners.len() {
            match of_job.last_mut() {
                Some(rows) if owners[rows[0]] == owners[row] => rows.push(row),
                _ => of_job.push(vec![row]),
            }
        }
        if of_job.is_empty() {
            return Err("no recorded jobs with programs".into());
        }
        Ok(Self { programs, of_job })
    }

    /// The programs of a job: the same for each call with this number.
    fn job(&self, number: u64) -> Summary {
        let mut random = Random(SEED ^ number.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let model = random.below(self.of_job.len());
        let job = format!("{:016x}", random.next());
        let site = format!("T2_{:02}", random.next() % SITES);
        let day = day::of_unix_s(FIRST_DAY_UNIX_S + random.next() % (DAYS * DAY_S));

        let mut picked = self.of_job[model].clone();
        picked.truncate(PROGRAMS);
        while picked.len() < PROGRAMS {
            picked.push(random.below(self.programs.height()));
        }
        // How large the job is, and how each of its programs differs from that.
        let size = random.uneven();
        let factors: Vec<f64> = picked.iter().map(|_| size * random.uneven()).collect();
        let of_all = |name: &str| match name {
            "job" => Some(job.clone()),
            "site" => Some(site.clone()),
            _ => None,
        };
        let rows = scaled(&self.programs, &picked, &factors, &of_all);
        let tables = table_named(TABLE).map(|schema| (schema, rows)).into_iter().collect();
        Summary { job, day: Some(day), tables }
    }
}

/// Rows with their amounts multiplied by factors, and texts that are the same in all of them.
fn scaled(
    from: &Rows,
    picked: &[usize],
    factors: &[f64],
    of_all: &dyn Fn(&str) -> Option<String>,
) -> Rows {
    let names = table_named(TABLE).into_iter().flat_map(|schema| schema.columns);
    let columns = names.map(|known| {
        let values = match (&column(from, known.name).values, of_all(known.name)) {
            (_, Some(text)) => RowsValues::Text(vec![Some(text); picked.len()]),
            (RowsValues::Text(values), None) => {
                RowsValues::Text(picked.iter().map(|row| values[*row].clone()).collect())
            }
            (RowsValues::Signed(values), None) => {
                let amount = |(row, factor): (&usize, &f64)| {
                    values[*row].map(|value| (value as f64 * factor).round() as i64)
                };
                RowsValues::Signed(picked.iter().zip(factors).map(amount).collect())
            }
            // The table has no other columns.
            (other, None) => other.clone(),
        };
        RowsColumn { name: known.name.to_owned(), values }
    });
    Rows { columns: columns.collect() }
}

fn column<'a>(rows: &'a Rows, name: &str) -> &'a RowsColumn {
    const NOTHING: &RowsColumn =
        &RowsColumn { name: String::new(), values: RowsValues::Text(Vec::new()) };
    rows.columns.iter().find(|column| column.name == name).unwrap_or(NOTHING)
}

fn texts(rows: &Rows, name: &str) -> Vec<Option<String>> {
    match &column(rows, name).values {
        RowsValues::Text(values) => values.clone(),
        _ => Vec::new(),
    }
}
