//! What can be believed of a recording: what was lost, whether the books balance, what is known and what
//! could not be seen.

use proctrace_findings::{Health, Knowledge, Known, Table, Unit, Values};

use crate::analysis::Analysis;
use crate::error::AnalysisError;
use crate::options::{Content, Options};
use crate::overview::blind_spots;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Result<Content, AnalysisError> {
    let recording = analysis.recording;
    let health = analysis.health();
    let known = recording.knows.findings(&health.losses);
    let tables = vec![
        laws(&health),
        losses(&health),
        knowledge(&known),
        unseen(&blind_spots::spots(recording)),
    ];
    Ok(Content { tables, charts: Vec::new() })
}

fn laws(health: &Health) -> Table {
    let of = || health.laws.iter();
    let says = |holds: Option<bool>| match holds {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "not checked",
    };
    let mut table = Table::new("laws", "Whether the books balance")
        .text("law", "law", of().map(|law| law.name))
        .text("holds", "holds", of().map(|law| says(law.holds)))
        .real("expected", "expected", Unit::Count, of().map(|law| law.expected))
        .real("found", "found", Unit::Count, of().map(|law| law.found))
        .text("unit", "of", of().map(|law| law.unit))
        .text("says", "what must be so", of().map(|law| law.says))
        .column(
            "not_checked",
            "why not checked",
            Unit::Text,
            Values::Text(of().map(|law| law.not_checked.clone()).collect()),
        )
        .detail();
    if health.recording_now {
        table = table.note("It is being recorded right now: the books balance at the end only.");
    } else if !health.complete {
        table = table.note("Incomplete: the recorder did not get to finish this trace.");
    }
    table
}

fn losses(health: &Health) -> Table {
    let of = || health.losses.iter();
    let mut table = Table::new("losses", "Records that were lost")
        .text("kind", "kind", of().map(|loss| &*loss.kind))
        .text("reason", "why", of().map(|loss| &*loss.reason))
        .whole("records", "records", Unit::Count, of().map(|loss| loss.count));
    for damage in &health.damage {
        table = table.note(format!("Damaged: {damage}."));
    }
    table
}

fn knowledge(known: &[Known]) -> Table {
    let state = |known: &Known| match known.state {
        Knowledge::Exact => "exact",
        Knowledge::Estimate => "estimate",
        Knowledge::LowerBound => "lower bound",
        Knowledge::Absent => "absent",
    };
    Table::new("known", "How well each quantity is known")
        .text("quantity", "quantity", known.iter().map(|known| known.quantity))
        .text("state", "known", known.iter().map(state))
        .column(
            "why",
            "how, or why not",
            Unit::Text,
            Values::Text(known.iter().map(|known| known.why.clone()).collect()),
        )
}

fn unseen(spots: &[proctrace_findings::BlindSpot]) -> Table {
    Table::new("unseen", "What could not be seen")
        .text("what", "what", spots.iter().map(|spot| spot.what))
        .whole("processes", "processes", Unit::Count, spots.iter().map(|spot| spot.processes))
        .lists("programs", "programs", spots.iter().map(|spot| spot.programs.join(", ")))
        .text("says", "in words", spots.iter().map(|spot| &*spot.says))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{S, Scene};
    use proctrace_findings::Cell;

    #[test]
    fn each_law_says_whether_it_holds() {
        let recording = Scene::new(1, S).exit(S, 1, (0, 0)).load(Some((S, 0, 0)));
        let content = section(&Analysis::of(&recording), &Options::default()).unwrap();
        let names: Vec<&str> = content.tables.iter().map(|table| table.name).collect();
        assert_eq!(names, ["laws", "losses", "known", "unseen"]);
        let laws = &content.tables[0];
        let holds = &laws.named("holds").unwrap().values;
        assert!((0..laws.height()).all(|row| holds.get(row) == Cell::Text("yes")), "{laws:#?}");
        assert!(laws.height() >= 7);
        assert_eq!(content.tables[1].height(), 0);
    }
}
