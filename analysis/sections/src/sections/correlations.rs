//! Correlations over time: every pair of series, and how significant each is.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_findings::{Chart, ChartBody, Correlations, HeatMap, Table, Unit, count, counted};
use proctrace_overview::options::Content;
use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;
use proctrace_recording::bins::Bins;
use proctrace_recording::knowledge::Knows;
use proctrace_stats::{LAGS, autocorrelation, best_lag, effective_n, interval, pearson, ranks};
use proctrace_wire::Quantity;

use crate::analysis::Analysis;

/// Bins of one second, as in the published results, if the recording has enough of them.
const SECOND_NS: u64 = 1_000_000_000;
const SECONDS_MIN: u64 = 100;

/// Signs that ALICE found in its multi-core workflows: the effects of storms of short processes.
const EXPECTED: [(&str, &str, char); 9] = [
    ("switches", "forks", '+'),
    ("switches", "system CPU", '+'),
    ("switches", "user CPU", '-'),
    ("switches", "running", '-'),
    ("system CPU", "forks", '+'),
    ("system CPU", "read", '+'),
    ("system CPU", "write", '+'),
    ("system CPU", "user CPU", '-'),
    ("system CPU", "running", '-'),
];

/// Series by name, all over the same whole bins.
struct SeriesSet {
    bin_ns: u64,
    names: Vec<&'static str>,
    values: Vec<Vec<f64>>,
    /// The first bin in which each series is known.
    known_from: Vec<usize>,
}

impl SeriesSet {
    fn of(recording: &Recording) -> Self {
        let bins = recording.bins();
        let width_ns = bins.width_ns.max(1);
        let recorded_ns = recording.recorded_ns();
        let merged = if recorded_ns / SECOND_NS >= SECONDS_MIN {
            SECOND_NS.div_ceil(width_ns).max(1)
        } else {
            1
        };
        let bin_ns = width_ns.saturating_mul(merged);
        // Only whole bins: a rate over a part of one is a different quantity. Without times there are none.
        let whole = recording.knows().some(&[Quantity::Times], recorded_ns / bin_ns);
        let n = usize::try_from(whole.unwrap_or(0)).unwrap_or(0);
        let merged = usize::try_from(merged).unwrap_or(1);
        let mut set = Self { bin_ns, names: vec![], values: vec![], known_from: vec![] };
        for (name, of, needs) in SERIES {
            let (values, known_from) = series(bins, of);
            let knows = |quantity: &BinSeries| recording.knows().all(quantity.needs());
            let known = recording.knows().all(needs) && of.iter().all(knows);
            let known_from = if known { known_from } else { usize::MAX };
            let sums = values.chunks_exact(merged).map(|bins| bins.iter().sum());
            set.names.push(name);
            set.values.push(sums.take(n).collect());
            set.known_from.push(known_from.div_ceil(merged).min(n));
        }
        set
    }

    fn len(&self) -> usize {
        self.values.first().map_or(0, Vec::len)
    }
}

/// Series by name: the sum of some quantities, and what its course over time needs beside them. Counters of tasks are
/// spread over the time between samples; user and system time are divided by program. The first are those that `report`
/// shows.
const SERIES: [(&str, &[BinSeries], &[Quantity]); 13] = {
    use BinSeries::{
        Execs, Exits, Forks, Live, LookupsFailed, ReadBytes, Running, SwitchesInvoluntary,
        SwitchesVoluntary, System, User, WriteBytes,
    };
    const DIVIDED: &[Quantity] = &[Quantity::Execs, Quantity::Samples];
    const SPREAD: &[Quantity] = &[Quantity::Samples];
    const AT_TIMES: &[Quantity] = &[Quantity::Times];
    [
        ("system CPU", &[System], DIVIDED),
        ("user CPU", &[User], DIVIDED),
        ("forks", &[Forks], AT_TIMES),
        ("switches", &[SwitchesVoluntary, SwitchesInvoluntary], SPREAD),
        ("running", &[Running], &[]),
        ("read", &[ReadBytes], SPREAD),
        ("write", &[WriteBytes], SPREAD),
        ("execs", &[Execs], AT_TIMES),
        ("exits", &[Exits], AT_TIMES),
        ("voluntary", &[SwitchesVoluntary], SPREAD),
        ("involuntary", &[SwitchesInvoluntary], SPREAD),
        ("live tasks", &[Live], AT_TIMES),
        ("look-ups", &[LookupsFailed], AT_TIMES),
    ]
};

/// Sums or means per bin, which correlate equally, and the first bin in which they are known.
fn series(bins: &Bins, of: &[BinSeries]) -> (Vec<f64>, usize) {
    let mut values = vec![0.0; bins.len()];
    for quantity in of {
        values.iter_mut().zip(bins.of(*quantity)).for_each(|(sum, value)| *sum += value);
    }
    (values, of.iter().map(|quantity| bins.known_from(*quantity)).max().unwrap_or(0))
}

impl Analysis<'_> {
    pub(crate) fn correlations(&self) -> &Correlations {
        self.correlations.get_or_init(|| correlate(&SeriesSet::of(self.recording)))
    }
}

fn correlate(set: &SeriesSet) -> Correlations {
    let (n, size) = (set.len(), set.names.len());
    let empty = vec![vec![None; size]; size];
    let mut found = Correlations {
        series: set.names.iter().map(|name| (*name).to_owned()).collect(),
        r: empty.clone(),
        n,
        known_from_bin: set.known_from.clone(),
        bin_ns: set.bin_ns,
        n_effective: empty.clone(),
        r_low: empty.clone(),
        r_high: empty.clone(),
        lag_bins: vec![vec![None; size]; size],
        r_at_lag: empty.clone(),
        spearman: empty,
    };
    // Before a series is known it has no values: pairs begin where both are known.
    let starts: BTreeSet<usize> = set.known_from.iter().copied().collect();
    let views: BTreeMap<usize, View<'_>> =
        starts.into_iter().map(|from| (from, View::of(set, from))).collect();
    for a in 0..size {
        for b in a..size {
            let from = set.known_from[a].max(set.known_from[b]);
            let Some(View { values, own, ranks }) = views.get(&from) else { continue };
            let (x, y) = (values[a], values[b]);
            let Some(r) = pearson(x, y) else { continue };
            // Transcendental functions differ in the last digits between machines; printed results
            // must not.
            let effective = rounded(effective_n(x.len(), &own[a], &own[b]), 1e2);
            let (low, high) = interval(r, effective)
                .map(|(low, high)| (rounded(low, 1e6), rounded(high, 1e6)))
                .unzip();
            let rho = pearson(&ranks[a], &ranks[b]);
            let (lag, at_lag) = best_lag(x, y).unzip();
            for (row, column, sign) in [(b, a, -1), (a, b, 1)] {
                found.n_effective[row][column] = Some(effective);
                // A coefficient without an interval is not reliable. That of a series with itself
                // only shows that the series varies.
                if low.is_none() && a != b {
                    continue;
                }
                found.r[row][column] = Some(r);
                (found.r_low[row][column], found.r_high[row][column]) = (low, high);
                found.spearman[row][column] = rho;
                found.lag_bins[row][column] = lag.map(|lag| lag * sign);
                found.r_at_lag[row][column] = at_lag;
            }
        }
    }
    found
}

/// Every series, starting at a given bin.
struct View<'a> {
    values: Vec<&'a [f64]>,
    own: Vec<Vec<f64>>,
    ranks: Vec<Vec<f64>>,
}

impl<'a> View<'a> {
    fn of(set: &'a SeriesSet, from: usize) -> Self {
        let values: Vec<&[f64]> =
            set.values.iter().map(|values| values.get(from..).unwrap_or(&[])).collect();
        let own = values.iter().map(|values| autocorrelation(values)).collect();
        let ranks = values.iter().map(|values| ranks(values)).collect();
        Self { values, own, ranks }
    }
}

fn rounded(number: f64, per_one: f64) -> f64 {
    (number * per_one).round() / per_one
}

pub(crate) fn section(found: &Correlations, knows: &Knows) -> Content {
    let tables = vec![pairs(found), lags(found), signs(found), matrix(found, knows)];
    Content { tables, charts: chart(found) }
}

fn sampling(found: &Correlations) -> String {
    let bin_s = found.bin_ns as f64 / 1e9;
    let mut says = format!(
        "n = {} bins of {bin_s} s: rates of CPU time, events and bytes, mean numbers of tasks. \
         forks: new processes and threads; read, write: storage; look-ups: failed look-ups. \
         running: mean of the samples in a bin, or the last known value if it has none",
        count(found.n as u64)
    );
    // A series that is not known at all is not a gap at the start.
    match found.known_from_bin.iter().filter(|from| **from < found.n).max() {
        Some(unknown) if *unknown > 0 => says.push_str(&format!(
            "; its pairs exclude {} before the first sample.",
            counted(*unknown as u64, "bin", "bins")
        )),
        _ => says.push('.'),
    }
    says
}

/// Pairs of different series, strongest first; pairs with a constant series are left out.
fn strongest(found: &Correlations) -> Vec<(usize, usize, f64)> {
    let mut pairs: Vec<(usize, usize, f64)> = (0..found.series.len())
        .flat_map(|a| (a + 1..found.series.len()).map(move |b| (a, b)))
        .filter(|(a, b)| !is_part(&found.series[*a], &found.series[*b]))
        .filter_map(|(a, b)| Some((a, b, found.r[a][b]?)))
        .collect();
    pairs.sort_by(|x, y| y.2.abs().total_cmp(&x.2.abs()).then((x.0, x.1).cmp(&(y.0, y.1))));
    pairs
}

/// Pairs of non-constant series of which too little is known.
fn untold(found: &Correlations) -> usize {
    let pairs =
        (0..found.series.len()).flat_map(|a| (a + 1..found.series.len()).map(move |b| (a, b)));
    pairs.filter(|(a, b)| found.r[*a][*b].is_none() && found.n_effective[*a][*b].is_some()).count()
}

/// A sum correlates with its parts trivially.
fn is_part(a: &str, b: &str) -> bool {
    a == "switches" && matches!(b, "voluntary" | "involuntary")
}

fn pairs(found: &Correlations) -> Table {
    let rows = strongest(found);
    let of = |matrix: &[Vec<Option<f64>>]| -> Vec<Option<f64>> {
        rows.iter().map(|(a, b, _)| matrix[*a][*b]).collect()
    };
    let without_r = |is_known: bool| -> Vec<&str> {
        let series = found.series.iter().enumerate();
        series
            .filter(|(at, _)| found.r[*at][*at].is_none())
            .filter(|(at, _)| (found.known_from_bin[*at] < found.n) == is_known)
            .map(|(_, name)| name.as_str())
            .collect()
    };
    let (left_out, unknown) = (without_r(true), without_r(false));
    let mut table = Table::new("correlations", "Correlations over time, strongest first")
        .rows_need(&[Quantity::Times])
        .text("series", "series", rows.iter().map(|(a, _, _)| found.series[*a].clone()))
        .text("other", "and", rows.iter().map(|(_, b, _)| found.series[*b].clone()))
        .real("r", "r", Unit::Coefficient, of(&found.r))
        .real("r_low", "from", Unit::Coefficient, of(&found.r_low))
        .real("r_high", "to", Unit::Coefficient, of(&found.r_high))
        .real("n_effective", "n eff.", Unit::Count, of(&found.n_effective))
        .real("spearman", "Spearman", Unit::Coefficient, of(&found.spearman))
        .note(sampling(found))
        .note(
            "r: Pearson's; from, to: its 95 % interval (Fisher's z) for n eff. independent bins, n \
             reduced for autocorrelation (Bartlett 1935; Pyper and Peterman 1998, over lags up to \
             n/5). Spearman: rho, the correlation of ranks.",
        )
        .note(
            "User and system CPU: long tasks are split by their own ticks, short ones by the \
             pooled ticks of their program. The ticks of a single bin are too few: their noise \
             would bias r towards 0.",
        )
        .note(
            "Correlation does not imply causation. CPU time, switches and bytes of a task are \
             known when it is sampled, and spread evenly in between.",
        );
    let untold = untold(found);
    if untold > 0 {
        table = table.note(format!(
            "Left out: {} with three independent bins or fewer, too few for an interval. Record \
             for longer, or with a smaller --interval.",
            counted(untold as u64, "pair", "pairs")
        ));
    }
    if !left_out.is_empty() {
        table = table.note(format!("Constant, left out: {}.", left_out.join(", ")));
    }
    if !unknown.is_empty() {
        table = table.note(format!("Not known: {}.", unknown.join(", ")));
    }
    table
}

fn lags(found: &Correlations) -> Table {
    let rows: Vec<(usize, usize, i64, f64)> = strongest(found)
        .into_iter()
        .filter_map(|(a, b, _)| {
            let (lag, r) = (found.lag_bins[a][b]?, found.r_at_lag[a][b]?);
            // Reported with the leading series first.
            Some(if lag >= 0 { (a, b, lag, r) } else { (b, a, -lag, r) })
        })
        .collect();
    Table::new("correlation_lags", "Lags between series")
        .rows_need(&[Quantity::Times])
        .text("first", "first", rows.iter().map(|row| found.series[row.0].clone()))
        .text("then", "then", rows.iter().map(|row| found.series[row.1].clone()))
        .whole(
            "lag_ns",
            "lag",
            Unit::Nanoseconds,
            rows.iter().map(|row| row.2.unsigned_abs().saturating_mul(found.bin_ns)),
        )
        .real("r_at_lag", "r at lag", Unit::Coefficient, rows.iter().map(|row| row.3))
        .real("r", "r at 0", Unit::Coefficient, rows.iter().map(|row| found.r[row.0][row.1]))
        .note(sampling(found))
        .note(format!(
            "lag: the one of up to {LAGS} bins at which the correlation is strongest. It is the \
             best of many, so no interval is given."
        ))
}

/// The columns of the matrix: series, stable name, heading. The first ones fit on a terminal.
const COLUMNS: [(&str, &str, &str); 13] = [
    ("system CPU", "system_cpu", "sys CPU"),
    ("user CPU", "user_cpu", "user CPU"),
    ("forks", "forks", "forks"),
    ("switches", "switches", "switches"),
    ("running", "running", "running"),
    ("read", "read", "read"),
    ("write", "write", "write"),
    ("execs", "execs", "execs"),
    ("exits", "exits", "exits"),
    ("voluntary", "voluntary", "voluntary"),
    ("involuntary", "involuntary", "involuntary"),
    ("live tasks", "live_tasks", "live tasks"),
    ("look-ups", "lookups", "look-ups"),
];
const COLUMNS_SHOWN: usize = 7;
/// The table of all coefficients.
pub(crate) const MATRIX: &str = "correlation_matrix";
/// True if a matrix is meaningful: without any interval, the significance of the coefficients is
/// unknown.
fn tells(found: &Correlations) -> bool {
    let mut pairs = (0..found.series.len()).flat_map(|a| (0..a).map(move |b| (a, b)));
    found.n >= Correlations::BINS_MIN && pairs.any(|(a, b)| found.r_low[a][b].is_some())
}

/// Quantities without which a series is not known.
fn needs_of_all() -> Vec<Quantity> {
    let own = SERIES.iter().flat_map(|(_, of, _)| *of).flat_map(|quantity| quantity.needs());
    let over_time = SERIES.iter().flat_map(|(_, _, needs)| *needs);
    own.chain(over_time).copied().collect()
}

/// All coefficients at a glance; no rows where there is too little data.
fn matrix(found: &Correlations, knows: &Knows) -> Table {
    let rows = if tells(found) { found.series.len() } else { 0 };
    let sample = format!("n = {} bins of {} s", count(found.n as u64), found.bin_ns as f64 / 1e9);
    let mut table = Table::new(MATRIX, "Correlations over time: Pearson's r")
        .rows_need(&[Quantity::Times])
        .in_whole()
        .text("series", "", found.series[..rows].iter().cloned());
    for (at, (series, name, title)) in COLUMNS.into_iter().enumerate() {
        let Some(column) = found.series.iter().position(|found| found == series) else { continue };
        let r = found.r[..rows].iter().map(|row| row[column]);
        table = table.real(name, title, Unit::Coefficient, r);
        if at >= COLUMNS_SHOWN {
            table = table.detail();
        }
    }
    // Beside the notes on the sample, which hold for the other series.
    if let Some(why) = knows.why_not(&needs_of_all()) {
        table = table.note(format!("Not known: {why}."));
    }
    if rows == 0 {
        return table.note(format!(
            "Too few data: {sample}; at least {min} are needed, and more for series that \
             change slowly. Record with a smaller --interval, or for longer.",
            min = Correlations::BINS_MIN
        ));
    }
    table.note(format!(
        "{sample}; read, write: storage; look-ups: failed look-ups; -: not known, constant, or too \
         few independent bins. Intervals and lags: --section correlations."
    ))
}

fn signs(found: &Correlations) -> Table {
    let at = |name: &str| found.series.iter().position(|series| series == name);
    let rows: Vec<_> =
        EXPECTED.into_iter().filter_map(|(a, b, sign)| Some((at(a)?, at(b)?, sign))).collect();
    let says =
        |(a, b, sign): &(usize, usize, char)| -> &'static str {
            let Some(r) = found.r[*a][*b] else {
                return match found.n_effective[*a][*b] {
                    Some(_) => "too few bins",
                    None => "constant",
                };
            };
            match (found.r_low[*a][*b], found.r_high[*a][*b]) {
                (Some(low), Some(high)) if low > 0.0 || high < 0.0 => {
                    if (r > 0.0) == (*sign == '+') { "same" } else { "opposite" }
                }
                _ => "unclear",
            }
        };
    let of = |matrix: &[Vec<Option<f64>>]| -> Vec<Option<f64>> {
        rows.iter().map(|(a, b, _)| matrix[*a][*b]).collect()
    };
    Table::new("correlation_signs", "Comparison with the signs found by ALICE")
        .rows_need(&[Quantity::Times])
        .text("series", "series", rows.iter().map(|(a, _, _)| found.series[*a].clone()))
        .text("other", "and", rows.iter().map(|(_, b, _)| found.series[*b].clone()))
        .text("expected", "ALICE", rows.iter().map(|(_, _, sign)| sign.to_string()))
        .real("r", "r", Unit::Coefficient, of(&found.r))
        .real("r_low", "from", Unit::Coefficient, of(&found.r_low))
        .real("r_high", "to", Unit::Coefficient, of(&found.r_high))
        .text("here", "here", rows.iter().map(says))
        .note(sampling(found))
        .note(
            "Expected of a multi-core job that wastes its time on short processes. A healthy job \
             need not agree. unclear: the interval contains 0.",
        )
}

fn chart(found: &Correlations) -> Vec<Chart> {
    let body = HeatMap { names: found.series.clone(), values: found.r.clone() };
    vec![
        Chart::new("correlations", "Correlations: Pearson's r", ChartBody::HeatMap(body))
            .needs(&[])
            .note(sampling(found)),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_scenes::{MS, Scene};

    fn correlations(recording: &Recording) -> Correlations {
        Analysis::of(recording).correlations().clone()
    }

    #[test]
    fn rates_in_a_recording_correlate_as_they_were_made() {
        // Thirty bins: in some of them a burst of forks and system time, in the others user time.
        // If they alternated strictly, their effective number would be three.
        const BURSTS: u32 = 0x2c9a_1d73;
        let bin = 100 * MS;
        let mut scene = Scene::new(1, bin);
        let (mut user, mut system, mut task) = (0, 0, 2);
        for at in 0..30u64 {
            let begin = at * bin;
            let burst = BURSTS >> at & 1 == 1;
            if !burst {
                user += 80 * MS;
            } else {
                system += 40 * MS + at % 3 * MS;
                for _ in 0..(40 + at % 3) {
                    scene.fork(begin + MS, 1, task).exit(begin + 2 * MS, task, (0, 0));
                    task += 1;
                }
            }
            scene.sample(begin + bin, 1, (user, system));
            scene.tick(begin + bin - MS, [if burst { 3 } else { 1 }, 0, 0]);
        }
        let recording = scene.exit(30 * bin, 1, (user, system)).load(None);
        let found = correlations(&recording);
        assert_eq!((found.n, found.bin_ns), (30, bin));
        let at = |name: &str| found.series.iter().position(|series| series == name).unwrap();
        let (system, user, forks) = (at("system CPU"), at("user CPU"), at("forks"));
        // system = 1 ms for each fork, and identical births and exits
        for (a, b) in [(system, forks), (forks, at("exits"))] {
            let r = found.r[a][b].unwrap();
            assert!(r > 0.99, "{a} {b} {r}");
        }
        assert!(found.r[user][forks].unwrap() < -0.99);
        assert!((found.r[at("running")][user].unwrap() + 1.0).abs() < 1e-12);
        assert_eq!(found.r[at("read")][user], None);
        assert_eq!(found.lag_bins[forks][forks], Some(0));

        let content = section(&correlations(&recording), recording.knows());
        let names: Vec<&str> = content.tables.iter().map(|table| table.name).collect();
        assert_eq!(names, ["correlations", "correlation_lags", "correlation_signs", MATRIX]);
        assert!(content.tables[0].notes.iter().any(|note| note.contains("Constant, left out: ")));
    }

    #[test]
    fn what_is_not_known_is_said_to_be() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.exec(0, 1, "/opt/job", (0, 0)).exit(4000 * MS, 1, (MS, 0));
        let mut recording = scene.load(None);
        let notes = |recording: &Recording| {
            let content = section(&correlations(recording), recording.knows());
            content.tables.into_iter().find(|table| table.name == MATRIX).unwrap().notes
        };
        assert!(!notes(&recording).iter().any(|note| note.contains("context switches")));
        recording.knows_mut().lacks(Quantity::Switches, "not in a log".to_owned());
        let notes = notes(&recording);
        assert!(
            notes.iter().any(|note| note.contains("context switches: not in a log")),
            "{notes:?}"
        );
        assert!(notes.iter().any(|note| note.contains("n = ")), "{notes:?}");
    }

    #[test]
    fn what_is_before_the_first_look_is_not_none_running() {
        let bin = 100 * MS;
        let mut scene = Scene::new(1, bin);
        let mut task = 2;
        for at in 0..10u64 {
            let begin = at * bin;
            // The first two bins have the most forks, and no sample.
            for _ in 0..if at < 2 { 50 } else { at } {
                scene.fork(begin + MS, 1, task).exit(begin + 2 * MS, task, (0, 0));
                task += 1;
            }
            if at >= 2 {
                scene.tick(begin + 50 * MS, [u32::try_from(at).unwrap(), 0, 0]);
            }
        }
        let found = correlations(&scene.exit(10 * bin, 1, (0, 0)).load(None));
        let at = |name: &str| found.series.iter().position(|series| series == name).unwrap();
        assert!((found.r[at("running")][at("forks")].unwrap() - 1.0).abs() < 1e-9);
        assert_eq!(found.known_from_bin[at("running")], 2);
        assert_eq!((found.n, found.known_from_bin[at("forks")]), (10, 0));
        assert!(sampling(&found).contains("exclude 2 bins"), "{}", sampling(&found));
    }

    #[test]
    fn long_runs_are_looked_at_by_the_second() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.sample(60_000 * MS, 1, (MS, MS));
        let recording = scene.exit(120_050 * MS, 1, (2 * MS, MS)).load(None);
        let found = correlations(&recording);
        assert_eq!((found.n, found.bin_ns), (120, 1_000 * MS));
    }

    #[test]
    fn without_an_interval_there_is_no_coefficient() {
        // Two strictly alternating series: eleven bins carry no more information than two.
        let turns: Vec<f64> = (0..11).map(|at| f64::from(at % 2)).collect();
        let others: Vec<f64> = (0..11).map(|at| f64::from(at % 2 * 50 + at % 3)).collect();
        let noise = vec![3.0, -1.0, 4.0, 1.0, -5.0, 9.0, -2.0, 6.0, 5.0, -3.0, 5.0];
        let values = vec![turns, others, noise];
        let set =
            SeriesSet { bin_ns: 1, names: vec!["a", "b", "c"], values, known_from: vec![0; 3] };
        let found = correlate(&set);
        for a in 0..3 {
            for b in (0..3).filter(|b| *b != a) {
                let has_interval = found.r_low[a][b].is_some();
                assert_eq!(found.n_effective[a][b].unwrap() > 3.0, has_interval);
                assert_eq!(found.r[a][b].is_some(), has_interval, "{a} {b} {found:?}");
                assert_eq!(found.spearman[a][b].is_some(), has_interval);
                assert_eq!(found.r_at_lag[a][b].is_some(), has_interval);
            }
            assert_eq!(found.r[a][a], Some(1.0));
        }
        assert_eq!((found.r[0][1], found.r[0][2].is_some()), (None, true), "{found:?}");
        let table = pairs(&found);
        assert!(table.notes.iter().any(|note| note.starts_with("Left out: 1 pair ")), "{table:?}");
    }

    #[test]
    fn a_mirror_image_says_the_same() {
        let values = vec![vec![1.0, 5.0, 2.0, 8.0, 3.0, 9.0, 1.0, 4.0]; 2];
        let names = vec!["a", "b"];
        let mut set = SeriesSet { bin_ns: 1, names, values, known_from: vec![0; 2] };
        set.values[1].rotate_left(1);
        let found = correlate(&set);
        assert_eq!(found.r[0][1], found.r[1][0]);
        assert_eq!(found.lag_bins[0][1].map(|lag| -lag), found.lag_bins[1][0]);
        assert_eq!(found.lag_bins[0][1], Some(-1));
    }
}
