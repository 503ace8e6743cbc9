//! The measurement rounds: for every payload and tracer a bare run and a traced one, in alternating
//! order.

use std::collections::{BTreeMap, HashSet};
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use proctrace_stats::{Order, Plan as Experiment, Round, Side};
use xtask::run::{built, fixture, target_dir};
use xtask::setup;

use super::payloads::{self, Payload};
use super::results::{self, Pair, PayloadResults, Results, Row, summarise};
use super::site::Site;
use super::tracers::{NONE, TRACERS, Tracer};
use super::trial;

/// Factor of slowing a payload down above which a tracer is run less often.
const SLOW: f64 = 3.0;

/// The measurements to make.
pub(super) struct Plan<'a> {
    pub(super) rounds: u32,
    pub(super) slow_rounds: u32,
    pub(super) scale: u64,
    /// Names of payloads; all if it is empty.
    pub(super) only: &'a [String],
    pub(super) tracers: Vec<&'static Tracer>,
    /// File in which results are saved after each payload.
    pub(super) json: Option<&'a Path>,
}

/// Builds proctrace and the fixtures, and prepares the directory for runs.
pub(super) fn site() -> Result<Site> {
    setup::run(setup::EVERYTHING)?;
    let release = built(&["proctrace", "proctrace-fixtures"])?;
    let scratch = target_dir()?.join("bench");
    std::fs::create_dir_all(&scratch)?;
    // So that orphans of a tracer are reaped by us, and their CPU time is accounted to us.
    nix::sys::prctl::set_child_subreaper(true)?;
    Ok(Site {
        directory: scratch.join("run"),
        scratch,
        timed: fixture(&release, "timed")?,
        release,
        root_pid: 0,
        others: HashSet::new(),
    })
}

pub(super) fn all(args: &Plan<'_>, site: &mut Site) -> Result<Results> {
    ensure!(
        args.rounds > 0 && args.slow_rounds > 0,
        "--rounds and --slow-rounds must be at least 1"
    );
    ensure!(args.scale > 0, "--scale must be at least 1");
    let mut left_out = BTreeMap::new();
    let tracers = find_tracers(&args.tracers, site, &mut left_out);
    let versions =
        tracers.iter().map(|(tracer, version)| (tracer.name.to_owned(), version.clone()));
    let machine = results::machine(versions.collect())?;
    let mut results = Results { machine, left_out, payloads: Vec::new() };
    for (name, _) in payloads::NAMES.iter().filter(|(name, _)| chosen(args.only, name)) {
        println!("\n{name}: preparing");
        match payloads::prepare(name, args.scale, &site.release, &site.scratch) {
            Ok(payload) => {
                results.payloads.push(measure_payload(&payload, &tracers, args, site)?);
            }
            Err(error) => {
                println!("skipped: {error:#}");
                results.left_out.insert((*name).to_owned(), format!("{error:#}"));
            }
        }
        if let Some(file) = args.json {
            results::save(file, &results)?;
        }
    }
    ensure!(!results.payloads.is_empty(), "no payload was measured");
    Ok(results)
}

pub(super) fn chosen(substrings: &[String], name: &str) -> bool {
    substrings.is_empty() || substrings.iter().any(|part| name.contains(part.as_str()))
}

/// The installed tracers, with their versions.
fn find_tracers(
    tracers: &[&'static Tracer],
    site: &Site,
    left_out: &mut BTreeMap<String, String>,
) -> Vec<(&'static Tracer, String)> {
    let mut found = Vec::new();
    for tracer in tracers {
        match tracer.version(site) {
            Ok(version) => found.push((*tracer, version)),
            Err(error) => {
                println!("{} skipped: {error:#}", tracer.name);
                left_out.insert(tracer.name.to_owned(), format!("{error:#}"));
            }
        }
    }
    found
}

fn measure_payload(
    payload: &Payload,
    tracers: &[(&Tracer, String)],
    args: &Plan<'_>,
    site: &mut Site,
) -> Result<PayloadResults> {
    let command = described(&payload.command);
    let mut rows: Vec<Row> = tracers
        .iter()
        .map(|(tracer, _)| Row {
            tracer: tracer.name.to_owned(),
            pairs: Vec::new(),
            summary: None,
            stopped: None,
        })
        .collect();
    let mut slow = vec![false; rows.len()];
    let mut bare_wall_ns = None;
    let experiment = Experiment { warm_ups: 1, rounds: args.rounds, order: Order::Alternating };
    for round in experiment.rounds() {
        for ((row, slow), (tracer, _)) in rows.iter_mut().zip(&mut slow).zip(tracers) {
            let enough = *slow && row.pairs.len() >= args.slow_rounds as usize;
            if row.stopped.is_some() || enough {
                continue;
            }
            match pair(tracer, payload, site, bare_wall_ns, round) {
                // The first round warms caches, and identifies slow tracers.
                Ok(pair) if round.is_warm_up() => {
                    bare_wall_ns = Some(pair.bare.payload_wall_ns);
                    *slow = pair.wall() > SLOW;
                }
                Ok(pair) => row.pairs.push(pair),
                Err(error) => {
                    println!("{}: {error:#}", tracer.name);
                    row.stopped = Some(format!("{error:#}"));
                }
            }
        }
        println!("{}: round {} of {}", payload.name, round.number, args.rounds);
    }
    for row in &mut rows {
        row.summary = summarise(&row.pairs);
    }
    Ok(PayloadResults { name: payload.name.to_owned(), command, declared: payload.declared, rows })
}

/// A bare and a traced run, in the order of the round. The duration of a bare run, which sets the time limit
/// of the traced one, is known from an earlier round or from the bare run of this pair, if that
/// comes first.
fn pair(
    tracer: &Tracer,
    payload: &Payload,
    site: &mut Site,
    bare_wall_ns: Option<u64>,
    round: Round,
) -> Result<Pair> {
    let Some(none) = TRACERS.iter().find(|tracer| tracer.name == NONE) else {
        bail!("the list of tracers lacks {NONE:?}");
    };
    let known = bare_wall_ns.map_or(BARE_LIMIT, limit);
    let mut of_traced = known;
    let (bare, traced) = round.pair(|side| {
        payload.reset()?;
        let (tracer, at_most) = match side {
            Side::A => (none, known),
            Side::B => (tracer, of_traced),
        };
        let run = trial::run(tracer, &payload.command, site, at_most)?;
        of_traced = limit(run.payload_wall_ns);
        anyhow::Ok(run)
    })?;
    Ok(Pair { bare, traced, bare_first: round.first == Side::A })
}

/// Time limit of a payload without a tracer.
const BARE_LIMIT: Duration = Duration::from_secs(300);

/// Time limit with a tracer: strace slows the storm of half a second down by a factor of 130.
fn limit(bare_wall_ns: u64) -> Duration {
    Duration::from_nanos(bare_wall_ns) * 20 + Duration::from_secs(120)
}

/// A machine-independent command line: our own programs and directories are reduced to their last
/// path component.
fn described(command: &[OsString]) -> String {
    let words = command.iter().map(|word| {
        let word = word.to_string_lossy();
        match word.split_once("=/") {
            Some((name, _)) => format!("{name}=…"),
            None if word.starts_with('/') && !word.starts_with("/bin/") => {
                word.rsplit('/').next().unwrap_or(&word).to_owned()
            }
            None if word.contains(' ') => format!("'{word}'"),
            None => word.into_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_described_without_this_machines_directories() {
        let command = ["env", "A=/somewhere/x:/y", "/somewhere/spawn", "3", "/bin/ls", "a b"];
        let command = command.map(OsString::from);
        assert_eq!(described(&command), "env A=… spawn 3 /bin/ls 'a b'");
    }

    #[test]
    fn payloads_are_chosen_by_any_part_of_their_names() {
        assert!(chosen(&[], "spawn"));
        assert!(chosen(&["fork".to_owned(), "spa".to_owned()], "spawn"));
        assert!(!chosen(&["fork".to_owned()], "spawn"));
    }
}
