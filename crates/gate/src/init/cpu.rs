//! Limits of CPU time by program and by group of steps in a first budget, from the spread over the recordings.

use std::fmt::Write as _;

use proctrace_findings::MetricFamily;

use super::{round_up, sample, toml_key};
use crate::side::{Key, Side};
use crate::words;
use proctrace_stats::median;

/// Minimum recordings with which the spread is known.
const FEWEST_FOR_SPREAD: usize = 3;
/// Minimum recordings whose range is a good measure of the spread.
const ENOUGH_FOR_RANGE: usize = 5;

/// Number of ranges that a run may lie above the largest recorded value. A simulation in the tests
/// has the rate of false alarms.
const RANGES: f64 = 2.0;
const RANGES_OF_FEW: f64 = 4.0;

/// Percentage by which a program may use more even if the recordings hardly differ: caches and
/// clock rates change CPU time by some percent from day to day.
const FLOOR_PERCENT: f64 = 5.0;
/// The same in seconds: two ticks of the slowest common scheduler clock (100 Hz), in which
/// interrupts may be charged to a program.
const FLOOR_SECONDS: f64 = 0.02;

/// Ratio to the median above which a limit lets much pass, and says so.
const LOOSE_RATIO: f64 = 1.3;

/// Factor without a known spread.
const LOOSE_FACTOR: f64 = 1.5;
const LOOSE_SECONDS: f64 = 0.1;

/// Programs, and groups, with a rule of their own: at most so many, with at least this part of the CPU time.
const PROGRAMS: usize = 10;
const PART: f64 = 0.01;

/// Factor for a program or group without a rule of its own: it may use so many times what the largest of them used, and so many
/// seconds more.
const UNLISTED_FACTOR: f64 = 2.0;
const UNLISTED_SECONDS: f64 = 0.05;

/// Options of rules for CPU time: a single run proves nothing, since while other jobs run on the machine, a program may
/// take nearly twice the CPU time, also after several quiet recordings.
const OPTIONS: &str = "min_runs = 3, inconclusive = \"warn\"";

/// The largest CPU time that passes, given that of good runs.
fn ceiling(values: &[f64]) -> f64 {
    let greatest = values.iter().copied().fold(0.0, f64::max);
    let least = values.iter().copied().fold(f64::INFINITY, f64::min).min(greatest);
    let range = greatest - least;
    let loose = greatest * LOOSE_FACTOR + LOOSE_SECONDS;
    if values.len() < FEWEST_FOR_SPREAD {
        return loose;
    }
    let ranges = if values.len() < ENOUGH_FOR_RANGE { RANGES_OF_FEW } else { RANGES };
    let floor = (median(values).unwrap_or(greatest) * FLOOR_PERCENT / 100.0).max(FLOOR_SECONDS);
    let limit = greatest + (ranges * range).max(floor);
    // Of few recordings with a large range, no more than what is allowed without knowing it.
    limit.min(loose.max(greatest + range + floor))
}

/// Writes a limit for each program that matters, and one for all others.
pub(super) fn push_programs(out: &mut String, side: &Side<'_>, runs: usize) {
    push(out, side, runs, "command_cpu_seconds", &comment(runs));
}

/// Writes a limit for each group of steps that matters, and one for all others.
pub(super) fn push_steps(out: &mut String, side: &Side<'_>, runs: usize) {
    let comment = "\n# CPU time by group of steps, limited in the same way.\n";
    push(out, side, runs, "step_cpu_seconds", comment);
}

/// Writes limits of a family with one label: for each member that matters, and for all others.
fn push(out: &mut String, side: &Side<'_>, runs: usize, family: &str, comment: &str) {
    let Some(family) = MetricFamily::named(family) else { return };
    let [label] = family.labels else { return };
    let mut members: Vec<(f64, Key<'_>, Vec<f64>)> = side
        .family(family.name)
        .filter_map(|key| {
            let values = side.values(key)?;
            Some((median(&values)?, key, values))
        })
        .collect();
    if members.is_empty() {
        return;
    }
    members.sort_by(|(a, _, _), (b, _, _)| b.total_cmp(a));
    let total: f64 = members.iter().map(|(median, _, _)| median).sum();
    let matter =
        |(median, _, _): &&(f64, Key<'_>, Vec<f64>)| *median > 0.0 && *median >= PART * total;
    let listed = members.iter().take(PROGRAMS).take_while(matter).count();
    let others = members[listed..].iter().flat_map(|(_, _, values)| values);
    let unlisted = others.copied().fold(0.0, f64::max) * UNLISTED_FACTOR + UNLISTED_SECONDS;
    out.push_str(comment);
    let _ = writeln!(
        out,
        "'{}{{{label}=\"*\"}}' = {{ absolute = {}, {OPTIONS}, unmatched = \"allow\" }}",
        family.name,
        round_up(unlisted, 3)
    );
    for (_, key, values) in &members[..listed] {
        let Some(sample) = sample(side, *key) else { continue };
        let limit = round_up(ceiling(values), 3);
        let (least, greatest) =
            (words::value(family, sample.least), words::value(family, sample.greatest));
        let seen = if sample.n == 1 {
            format!("recorded: {greatest}")
        } else {
            format!("{least} to {greatest} in {} runs", sample.n)
        };
        let middle = median(values).unwrap_or(limit);
        let loose = match limit > LOOSE_RATIO * middle && runs >= FEWEST_FOR_SPREAD {
            true => format!("; loose: {:.1} times the median", limit / middle),
            false => String::new(),
        };
        let _ = writeln!(
            out,
            "{} = {{ absolute = {limit}, {OPTIONS} }}  # {seen}{loose}",
            toml_key(&key.to_string())
        );
    }
}

fn comment(runs: usize) -> String {
    let basis = if runs >= FEWEST_FOR_SPREAD {
        let ranges = if runs < ENOUGH_FOR_RANGE { RANGES_OF_FEW } else { RANGES };
        format!(
            "# These limits follow from the spread of {runs} recordings: the recorded maximum plus\n\
             # {ranges} times the range, and at least {FLOOR_PERCENT} % of the median and {} ms above it. They hold for\n\
             # the kind of machine that was recorded on.\n",
            FLOOR_SECONDS * 1e3
        )
    } else {
        let which = match runs {
            1 => "A single recording does",
            _ => "Two recordings do",
        };
        format!(
            "# {which} not show how it varies: the limits are {LOOSE_FACTOR} times the recorded maximum\n\
             # plus {LOOSE_SECONDS} s. With {FEWEST_FOR_SPREAD} or more recordings, better {ENOUGH_FOR_RANGE}, they follow from the spread.\n"
        )
    };
    format!(
        "\n# CPU time by program, for those with at least {} % of it. The first rule is for all others.\n\
         {basis}\
         # It may nearly double while other jobs run on the machine. So the gate fails only if 3 runs or\n\
         # more are all beyond a limit (`proctrace gate run` makes 5), and otherwise warns.\n",
        PART * 100.0
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_stats::noise::Noise;

    #[test]
    fn a_limit_follows_the_spread_and_has_a_floor() {
        let near = |found: f64, wanted: f64| assert!((found - wanted).abs() < 1e-9, "{found}");
        // a spread of 60 ms
        near(ceiling(&[1.0, 1.02, 1.06, 1.03, 1.0]), 1.06 + 0.12);
        // no spread: 5 % or 20 ms
        near(ceiling(&[1.0; 5]), 1.05);
        near(ceiling(&[0.1; 5]), 0.12);
        // few recordings
        near(ceiling(&[1.0]), 1.6);
        near(ceiling(&[1.0, 1.1]), 1.1 * 1.5 + 0.1);
        near(ceiling(&[1.0, 1.0, 1.05]), 1.05 + 0.2);
        // never below what good runs used
        assert!(ceiling(&[0.1, 2.0, 0.1]) > 2.0 + 1.9);
    }

    /// One more run like five good ones.
    fn alarms(relative: f64, recordings: usize, trials: usize) -> usize {
        let mut noise = Noise::new(7, relative);
        (0..trials)
            .filter(|_| noise.runs(1, 1.0)[0] > ceiling(&noise.runs(recordings, 1.0)))
            .count()
    }

    #[test]
    fn false_alarms_are_rare_at_any_noise() {
        for relative in [0.003, 0.01, 0.03, 0.1] {
            let of_five = alarms(relative, 5, 20_000);
            let of_three = alarms(relative, 3, 20_000);
            println!("noise {relative}: {of_five} of 20000 with 5, {of_three} with 3 recordings");
            assert!(of_five < 100, "noise {relative}: {of_five}");
            assert!(of_three < 300, "noise {relative}: {of_three}");
        }
    }

    #[test]
    fn a_tenth_of_a_second_in_half_a_second_is_caught() {
        let mut noise = Noise::new(8, 0.01);
        let caught =
            (0..1000).filter(|_| noise.runs(1, 0.6)[0] > ceiling(&noise.runs(5, 0.5))).count();
        assert!(caught > 990, "{caught}");
    }
}
