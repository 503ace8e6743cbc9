//! The rule that classified each program, for authors of rules and for checking a result.

use std::collections::{BTreeSet, HashMap};

use proctrace_findings::{Table, Unit, Values};

use proctrace_classify::PackUse;
use proctrace_classify::labels::class_name;
use proctrace_recording::Recording;

/// Maximum roles shown per program.
const ROLES_SHOWN: usize = 3;

/// Execs of one program that one rule matched.
#[derive(Debug, Default)]
struct Caught<'a> {
    processes: u64,
    execs: u64,
    roles: BTreeSet<&'a str>,
}

/// Every program with the rule that matched it, its class and group, how many processes ran it last
/// and some of their roles. Most processes first.
pub fn classification(recording: &Recording) -> Table {
    let found = recording.classification();
    let mut caught: HashMap<(usize, Option<u32>), Caught<'_>> = HashMap::new();
    for (at, run) in recording.runs().iter().enumerate() {
        let outcome = found.of_run.get(at).copied();
        caught.entry((run.program as usize, outcome)).or_default().execs += 1;
    }
    for process in recording.processes() {
        let outcome = process.run().and_then(|run| found.of_run.get(run as usize).copied());
        let entry = caught.entry((process.program(), outcome)).or_default();
        entry.processes += 1;
        entry.roles.extend(recording.role_of(process));
    }
    let rule_of = |outcome: Option<u32>| {
        let number = found.outcomes.get(outcome? as usize)?.rule?;
        let pack = found.packs.get(number.pack as usize)?;
        Some(format!("{}:{}", pack.name, pack.rules.get(number.rule as usize)?.0))
    };
    let mut rows: Vec<_> = caught
        .into_iter()
        .map(|((program, outcome), caught)| {
            (&recording.programs()[program], rule_of(outcome), caught)
        })
        .collect();
    rows.sort_by(|(a, a_rule, a_caught), (b, b_rule, b_caught)| {
        (b_caught.processes, b_caught.execs)
            .cmp(&(a_caught.processes, a_caught.execs))
            .then_with(|| (&a.name, a_rule).cmp(&(&b.name, b_rule)))
    });
    let table = Table::new("classification", "Programs and the rules that matched them")
        .text("program", "program", rows.iter().map(|(program, ..)| &*program.name))
        .text("class", "class", rows.iter().map(|(program, ..)| class_name(program.class)))
        .text("group", "group", rows.iter().map(|(program, ..)| program.category()))
        .column(
            "rule",
            "rule",
            Unit::Text,
            Values::Text(rows.iter().map(|(_, rule, _)| rule.clone()).collect()),
        )
        .whole("processes", "processes", Unit::Count, rows.iter().map(|(.., c)| c.processes))
        .whole("execs", "execs", Unit::Count, rows.iter().map(|(.., c)| c.execs))
        .text("roles", "roles", rows.iter().map(|(.., caught)| examples(&caught.roles)));
    table.note(packs_that_apply(&found.packs)).note(
        "rule: pack and line; - if no rule matched. Processes are counted under the program they \
         ran last, or under their parent's if they never called exec.",
    )
}

fn examples(roles: &BTreeSet<&str>) -> String {
    let mut shown = roles.iter().take(ROLES_SHOWN).copied().collect::<Vec<_>>().join(", ");
    if roles.len() > ROLES_SHOWN {
        shown.push_str(&format!(", … ({})", roles.len()));
    }
    shown
}

fn packs_that_apply(packs: &[PackUse]) -> String {
    let named = packs.iter().filter(|pack| pack.applies).map(|pack| match &pack.told_by {
        Some(program) => format!("{} (because {program} ran)", pack.name),
        None if pack.asked_for => format!("{} (requested)", pack.name),
        None => pack.name.clone(),
    });
    format!("Packs that apply: {}.", named.collect::<Vec<_>>().join(", "))
}
