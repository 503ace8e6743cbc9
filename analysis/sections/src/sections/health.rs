//! Trustworthiness of a recording: losses, conservation laws, what is known, and what could not be
//! seen.

use proctrace_findings::{BlindSpot, Health, Knowledge, Known, Table, Unit, Values, figure};
use proctrace_overview::blind_spots;
use proctrace_overview::options::{Content, Options};
use proctrace_wire::Kind;

use crate::analysis::Analysis;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Content {
    let recording = analysis.recording;
    let health = analysis.health();
    let known = recording.knows().findings(&health.losses);
    let tables = vec![
        laws(&health),
        losses(&health),
        knowledge(&known),
        unseen(&blind_spots::spots(recording)),
    ];
    Content { tables, charts: Vec::new() }
}

fn laws(health: &Health) -> Table {
    let of = || health.laws.iter();
    let holds = |holds: Option<bool>| match holds {
        Some(true) => "yes",
        Some(false) => "NO",
        None => "not checked",
    };
    let side = |number: Option<f64>, unit: &str| {
        Some(match unit {
            // The sums of CPU time agree to microseconds.
            "s" => format!("{:.6} s", number?),
            _ => figure(number?, Unit::Count),
        })
    };
    let expected = of().map(|law| side(law.expected, law.unit)).collect();
    let found = of().map(|law| side(law.found, law.unit)).collect();
    let why = of().map(|law| law.not_checked.clone()).collect();
    let mut table = Table::new("laws", "Consistency checks")
        .rows_need(&[])
        .in_whole()
        .text("law", "check", of().map(|law| law.name))
        .text("holds", "holds", of().map(|law| holds(law.holds)))
        .column("expected", "expected", Unit::Figure, Values::Text(expected))
        .column("found", "found", Unit::Figure, Values::Text(found))
        .real("expected_number", "expected", Unit::Count, of().map(|law| law.expected))
        .detail()
        .real("found_number", "found", Unit::Count, of().map(|law| law.found))
        .detail()
        .text("unit", "unit", of().map(|law| law.unit))
        .text("says", "condition", of().map(|law| law.says))
        .detail()
        .column("not_checked", "why not checked", Unit::Text, Values::Text(why))
        .detail();
    if health.recording_now {
        table =
            table.note("It is being recorded right now: consistency is checked only at the end.");
    } else if !health.complete {
        table = table.note("Incomplete: the recorder did not finish this trace.");
    }
    let reasons = of().filter_map(|law| Some((law.name, law.not_checked.as_deref()?)));
    let notes = of().map(|law| format!("{}: {}.", law.name, law.says)).collect::<Vec<_>>();
    notes.into_iter().chain(told_once(reasons)).fold(table, Table::note)
}

/// Groups names by reason, so that each reason is stated once.
fn told_once<'a>(reasons: impl Iterator<Item = (&'a str, &'a str)>) -> Vec<String> {
    let mut says: Vec<(&str, Vec<&str>)> = Vec::new();
    for (name, why) in reasons {
        match says.iter_mut().find(|(known, _)| *known == why) {
            Some((_, names)) => names.push(name),
            None => says.push((why, vec![name])),
        }
    }
    says.into_iter().map(|(why, names)| format!("{}: {why}.", names.join(", "))).collect()
}

fn losses(health: &Health) -> Table {
    let of = || health.losses.iter();
    let mut table = Table::new("losses", "Lost records")
        .rows_need(&[])
        .text("kind", "kind", of().map(|loss| &*loss.kind))
        .text("reason", "reason", of().map(|loss| &*loss.reason))
        .whole("records", "records", Unit::Count, of().map(|loss| loss.count));
    for loss in of().filter(|loss| !Kind::missing_with(&loss.kind).is_empty()) {
        let (kind, with) = (&loss.kind, Kind::missing_with(&loss.kind));
        table = table.note(format!("Missing: the tasks of kind {kind}{with}."));
    }
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
    let why = known.iter().map(|known| known.why.clone()).collect();
    let table = Table::new("known", "Accuracy of each quantity")
        .rows_need(&[])
        .in_whole()
        .text("quantity", "quantity", known.iter().map(|known| known.quantity))
        .text("state", "accuracy", known.iter().map(state))
        .column("why", "method or reason", Unit::Text, Values::Text(why))
        .detail();
    let reasons = known.iter().filter_map(|known| Some((known.quantity, known.why.as_deref()?)));
    told_once(reasons).into_iter().fold(table, Table::note)
}

fn unseen(spots: &[BlindSpot]) -> Table {
    let table = Table::new("unseen", "What could not be recorded")
        .rows_need(&[])
        .in_whole()
        .text("what", "what", spots.iter().map(|spot| spot.what))
        .whole("processes", "processes", Unit::Count, spots.iter().map(|spot| spot.processes))
        .lists("programs", "programs", spots.iter().map(|spot| spot.programs.join(", ")))
        .text("says", "description", spots.iter().map(|spot| &*spot.says))
        .detail();
    spots.iter().map(|spot| format!("{}: {}.", spot.what, spot.says)).fold(table, Table::note)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;
    use proctrace_scenes::{S, Scene};

    #[test]
    fn each_law_says_whether_it_holds() {
        let recording = Scene::new(1, S).exit(S, 1, (0, 0)).load(Some((S, 0, 0)));
        let content = section(&Analysis::of(&recording), &Options::default());
        let names: Vec<&str> = content.tables.iter().map(|table| table.name).collect();
        assert_eq!(names, ["laws", "losses", "known", "unseen"]);
        let laws = &content.tables[0];
        let holds = &laws.named("holds").unwrap().values;
        assert!((0..laws.height()).all(|row| holds.get(row) == Cell::Text("yes")), "{laws:#?}");
        assert!(laws.height() >= 7);
        assert_eq!(content.tables[1].height(), 0);
    }

    #[test]
    fn what_has_one_reason_is_told_once() {
        let reasons = [("a", "left out"), ("b", "lost"), ("c", "left out")];
        assert_eq!(told_once(reasons.into_iter()), ["a, c: left out.", "b: lost."]);
    }
}
