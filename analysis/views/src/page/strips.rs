//! Activity over time for a page: the strips of the Gantt chart in finer bins, and some more.

use proctrace_findings::{PageStrip, Series, Strip, Unit};
use proctrace_overview::passes::passes;
use proctrace_recording::Recording;
use proctrace_recording::bin_series::BinSeries;
use proctrace_wire::Quantity;

use crate::gantt::lanes::Lanes;
use crate::gantt::strips::Strips;

/// Maximum number of bins: enough to zoom in a little.
const BINS_MAX: usize = 3_000;

/// The edges of the bins, and the strips.
pub(super) fn strips(
    recording: &Recording,
    lanes: &Lanes,
    cores: u32,
) -> (Vec<u64>, Vec<PageStrip>) {
    let bins = Strips::of(recording, 0, recording.recorded_ns().max(1), BINS_MAX);
    let mut all = bins.all(recording, lanes, cores);
    let strip = |title: &str, unit: Unit, series: Vec<Series>| Strip {
        title: title.to_owned(),
        unit,
        series,
        by_lane: false,
        limit: None,
    };
    all.push(strip(
        "Tasks alive",
        Unit::Count,
        vec![bins.mean("processes and threads", recording, BinSeries::Live)],
    ));
    let failed = bins.rate("failed", recording, BinSeries::LookupsFailed);
    all.push(strip("Failed look-ups", Unit::PerSecond, vec![failed]));
    all.push(strip("Memory", Unit::Bytes, vec![memory(recording, &bins.edges_ns)]));
    let shown = |(title, needs): &(&str, &[Quantity])| {
        let why = recording.knows().why_not(needs);
        let unknown = (!recording.knows().all(needs))
            .then(|| why.unwrap_or_else(|| "it was not recorded".to_owned()));
        let found = all.iter().find(|strip| strip.title == *title).cloned();
        let strip = found.filter(|_| unknown.is_none());
        let strip = strip.unwrap_or_else(|| self::empty(title));
        PageStrip { strip, unknown }
    };
    let strips = needs().iter().map(shown).collect();
    (bins.edges_ns, strips)
}

/// The strips in their order, and what each needs.
fn needs() -> [(&'static str, &'static [Quantity]); 9] {
    [
        ("CPU by category", &[Quantity::Forks, Quantity::Execs, Quantity::Cpu]),
        ("CPU", BinSeries::System.needs()),
        ("Tasks alive", BinSeries::Live.needs()),
        ("Tasks", BinSeries::Running.needs()),
        ("New processes", &Quantity::WHO),
        ("Switches", BinSeries::SwitchesVoluntary.needs()),
        ("Storage per second", BinSeries::ReadBytes.needs()),
        ("Failed look-ups", BinSeries::LookupsFailed.needs()),
        ("Memory", &[Quantity::Forks, Quantity::Memory]),
    ]
}

fn empty(title: &str) -> Strip {
    Strip {
        title: title.to_owned(),
        unit: Unit::Count,
        series: Vec::new(),
        by_lane: false,
        limit: None,
    }
}

/// The sum of the PSS of all processes: the last pass in a bin, or the one before it.
fn memory(recording: &Recording, edges_ns: &[u64]) -> Series {
    let passes = passes(recording, |_| true);
    let mut values = Vec::with_capacity(edges_ns.len());
    let (mut next, mut last) = (0, None);
    for end_ns in edges_ns.iter().skip(1) {
        while let Some(pass) = passes.get(next)
            && pass.time_ns.saturating_sub(recording.first_ns()) < *end_ns
        {
            last = Some(pass.pss_bytes as f64);
            next += 1;
        }
        values.push(last);
    }
    Series { name: "PSS of all processes".to_owned(), values }
}
