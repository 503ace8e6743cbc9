//! Processes that outlived their parent: no process that the command waits for waits for them.

use proctrace_findings::{Table, Unit, Values, counted};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::processes::{cpu_columns, labels};
use proctrace_recording::books::detached::phase;
use proctrace_wire::Quantity;

use crate::analysis::Analysis;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Content {
    let recording = analysis.recording;
    let rows = analysis.detached();
    let of = || rows.iter().map(|at| &recording.processes()[*at]);
    let sum_ns = of().map(|process| process.cpu.total_ns()).fold(0, u64::saturating_add);
    let parents = of().map(|process| {
        let parent = &recording.processes()[process.parent()?];
        Some(recording.program_of(parent).name.clone())
    });
    let phases = of().map(|process| phase(recording, process).map(str::to_owned));
    let lines = rows.iter().map(|at| recording.left_line_of(*at).map(str::to_owned));
    let table =
        Table::new("detached", "Processes that outlived their parent").rows_need(&Quantity::WHO);
    let table = labels(table, recording, rows).whole(
        "life_ns",
        "life",
        Unit::Nanoseconds,
        of().map(|process| process.life_ns()),
    );
    let mut table = cpu_columns(table, recording, rows)
        .column("parent", "parent", Unit::Text, Values::Text(parents.collect()))
        .detail()
        .column("phase", "started in", Unit::Text, Values::Text(phases.collect()))
        .column("command", "command", Unit::Text, Values::Text(lines.collect()))
        .column(
            "waited_for",
            "waited",
            Unit::Flag,
            Values::Flag(of().map(|process| Some(process.reaper().is_some())).collect()),
        )
        .note(format!(
            "n = {}, with {:.3} s of CPU time.",
            proctrace_findings::count(rows.len() as u64),
            sum_ns as f64 / 1e9
        ));
    if of().any(|process| process.reaper().is_some()) {
        table = table.note(
            "waited: another process of the recording adopted it (PR_SET_CHILD_SUBREAPER) and \
             waited for it, so `time` includes it.",
        );
    }
    let alive = of().filter(|process| process.ended_ns().is_none()).count() as u64;
    if alive > 0 {
        table = table.note(format!(
            "{} still alive when the recording ended: lifetime unknown.",
            counted(alive, "was", "were")
        ));
    }
    Content { tables: vec![table], charts: Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;
    use proctrace_scenes::{MS, S, daemon};

    #[test]
    fn what_outlived_its_parent_is_named() {
        let recording = daemon();
        let content = section(&Analysis::of(&recording), &Options::default());
        let table = &content.tables[0];
        let of = |column: &str| table.named(column).unwrap().values.get(0);
        assert_eq!(table.height(), 1);
        assert_eq!(of("cpu_ns"), Cell::Whole(3 * S));
        assert_eq!(of("life_ns"), Cell::Whole(4 * S - 20 * MS));
        assert_eq!(of("parent"), Cell::Text("job"));
        assert_eq!(of("waited_for"), Cell::Flag(false));
    }
}
