//! The tables of `proctrace libs`.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use proctrace_findings::{
    Farm, FarmCandidate, LibrarySearch, Libs, LookupCause, LookupCost, LookupPlace, NotModelled,
    ProgramSearch, Remedy, Table, Trial, TrialRun, Unit, Values, time,
};
use proctrace_report::number::{count, counted};

/// Maximum number of programs that are named where there is little room.
const NAMED_MAX: usize = 3;

/// Tables of what caused failed look-ups, and of what would avoid them.
pub fn causes(found: &Libs) -> Vec<Table> {
    let mut tables = vec![by_kind(found)];
    if !found.file_systems.is_empty() {
        tables.push(by_file_system(found));
    }
    tables.extend([by_place(found), programs(found), libraries(found), remedies(found)]);
    tables
}

fn by_kind(found: &Libs) -> Table {
    let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for cause in found.causes.iter().filter(|cause| cause.misses > 0) {
        let (misses, entries) = kinds.entry(cause.kind).or_default();
        *misses += cause.misses;
        *entries += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(kind, (misses, _))| (Reverse(*misses), *kind));
    let all: u64 = kinds.iter().map(|(_, (misses, _))| misses).sum();
    let share = |misses: u64| format!("{:.1} %", misses as f64 / all.max(1) as f64 * 100.0);
    Table::new("kinds", "Failed look-ups by kind of cause")
        .whole("misses", "failed", Unit::Count, kinds.iter().map(|(_, (misses, _))| *misses))
        .figures("share", "share", kinds.iter().map(|(_, (misses, _))| share(*misses)))
        .whole("entries", "places", Unit::Count, kinds.iter().map(|(_, (_, entries))| *entries))
        .text("kind", "cause", kinds.iter().map(|(kind, _)| *kind))
}

/// Time with its margin: "12.3 ms ± 4 %".
fn cost(cost: Option<&LookupCost>) -> String {
    let Some(cost) = cost else { return "-".to_owned() };
    let total = cost.total_ns as f64;
    let margin = (cost.high_ns.saturating_sub(cost.low_ns)) as f64 / 2.0;
    let percent = if total > 0.0 { margin / total * 100.0 } else { 0.0 };
    format!("{} ±{percent:.0} %", time(cost.total_ns))
}

fn by_file_system(found: &Libs) -> Table {
    let rows = &found.file_systems;
    let text = |name: &Option<String>| name.clone().unwrap_or_else(|| "not known".to_owned());
    let each = |row: &LookupPlace| match &row.cost {
        Some(cost) => time(cost.total_ns / row.misses.max(1)),
        None => "-".to_owned(),
    };
    let table = Table::new("file_systems", "Failed look-ups by file system and call")
        .whole("misses", "failed", Unit::Count, rows.iter().map(|row| row.misses))
        .whole("processes", "processes", Unit::Count, rows.iter().map(|row| row.processes))
        .figures("cost", "time", rows.iter().map(|row| cost(row.cost.as_ref())))
        .figures("each", "each", rows.iter().map(each))
        .text("call", "call", rows.iter().map(|row| row.call))
        .text("fs_type", "type", rows.iter().map(|row| text(&row.fs_type)))
        .text("source", "source", rows.iter().map(|row| text(&row.source)))
        .text("mount_point", "mount", rows.iter().map(|row| text(&row.mount_point)))
        .note(
            "time: estimated from the look-ups that were timed, one in 16, with the 95 % confidence \
             interval; \"-\" if fewer than two were.",
        );
    if rows.iter().any(|row| row.fs_type.is_none()) {
        return table.note(
            "not known: relative to a directory that is not recorded, or in a mount namespace whose \
             table could not be read.",
        );
    }
    table
}

fn programs(found: &Libs) -> Table {
    let rows: Vec<_> = found.programs.iter().filter(|row| row.misses > 0).collect();
    let of = || rows.iter();
    let each = |row: &&&ProgramSearch| match row.fewest_misses == row.most_misses {
        true => count(row.most_misses),
        false => format!("{} to {}", count(row.fewest_misses), count(row.most_misses)),
    };
    Table::new("programs", "Failed look-ups of libraries at the starts of programs")
        .whole("misses", "failed", Unit::Count, of().map(|row| row.misses))
        .whole("starts", "starts", Unit::Count, of().map(|row| row.starts))
        .figures("each", "per start", of().map(|row| each(&row)))
        .text("exe", "program", of().map(|row| row.exe.clone()))
}

fn libraries(found: &Libs) -> Table {
    let rows: Vec<_> = found.libraries.iter().filter(|row| row.misses > 0).collect();
    let of = || rows.iter();
    let mean =
        |row: &LibrarySearch| format!("{:.1}", row.misses as f64 / row.searches.max(1) as f64);
    Table::new("libraries", "Failed look-ups until a library is found")
        .whole("misses", "failed", Unit::Count, of().map(|row| row.misses))
        .whole("searches", "searches", Unit::Count, of().map(|row| row.searches))
        .figures("mean_misses", "per search", of().map(|row| mean(row)))
        .whole("most_misses", "at most", Unit::Count, of().map(|row| row.most_misses))
        .text("name", "library", of().map(|row| row.name.clone()))
        .text("path", "found at", of().map(|row| row.path.clone().unwrap_or_default()))
}

/// Place of a cause: an entry, and the object that contains the list.
fn place(cause: &LookupCause) -> String {
    match &cause.object {
        Some(object) => format!("{} (of {object})", cause.entry),
        None => cause.entry.clone(),
    }
}

/// The share of the dynamic linker's look-ups there that fail.
fn miss_rate(cause: &LookupCause) -> String {
    match (cause.probes, cause.hits) {
        (Some(probes @ 1..), Some(hits)) => {
            format!("{:.1} %", probes.saturating_sub(hits) as f64 / probes as f64 * 100.0)
        }
        _ => "-".to_owned(),
    }
}

fn by_place(found: &Libs) -> Table {
    let causes = &found.causes;
    let figure = |number: Option<u64>| number.map_or("-".to_owned(), count);
    Table::new("causes", "Failed look-ups by cause and place")
        .whole("misses", "failed", Unit::Count, causes.iter().map(|cause| cause.misses))
        .whole("processes", "processes", Unit::Count, causes.iter().map(|cause| cause.processes))
        .figures("probes", "probes", causes.iter().map(|cause| figure(cause.probes)))
        .detail()
        .figures("hits", "hits", causes.iter().map(|cause| figure(cause.hits)))
        .figures("miss_rate", "miss rate", causes.iter().map(miss_rate))
        .detail()
        .figures("cost", "time", causes.iter().map(|row| cost(row.cost.as_ref())))
        .text("kind", "cause", causes.iter().map(|cause| cause.kind))
        .text("entry", "where", causes.iter().map(place))
        .note(format!(
            "Starts modelled: {}; {} failed look-ups predicted, {} of them recorded; {} failed look-ups \
             of libraries unexplained. Starts not modelled: {}{}.",
            count(found.starts),
            count(found.predicted_library_misses),
            count(found.confirmed_library_misses),
            count(found.unexplained_library_misses),
            count(found.starts_not_modelled),
            reasons(found)
        ))
        .note("hits: libraries that the dynamic linker found there, headers that compilers did.")
}

/// Reasons why starts are not modelled: " (libraries are gone: 3; the program is gone: 1)".
pub fn reasons(found: &Libs) -> String {
    let reason = |reason: &NotModelled| format!("{}: {}", reason.why, count(reason.starts));
    let reasons: Vec<String> = found.not_modelled.iter().map(reason).collect();
    if reasons.is_empty() { String::new() } else { format!(" ({})", reasons.join("; ")) }
}

/// The time that a remedy saves.
fn saved(saves_ns: Option<i64>) -> String {
    match saves_ns {
        None => "-".to_owned(),
        Some(saves) if saves < 0 => format!("-{}", time(saves.unsigned_abs())),
        Some(saves) => time(saves.unsigned_abs()),
    }
}

fn remedies(found: &Libs) -> Table {
    let remedies = &found.remedies;
    let misses = || remedies.iter().map(|remedy| remedy.predicted_misses);
    let changes =
        remedies.iter().map(|remedy| change(remedy.today_misses, remedy.predicted_misses));
    let later = remedies.iter().map(|remedy| remedy.predicted_dlopen_misses);
    let table = Table::new("remedies", "What would avoid failed look-ups")
        .text("name", "remedy", remedies.iter().map(|remedy| remedy.name))
        .text("about", "look-ups of", remedies.iter().map(|remedy| remedy.about))
        .whole("today_misses", "today", Unit::Count, remedies.iter().map(|r| r.today_misses))
        .whole("predicted_misses", "with it", Unit::Count, misses())
        .figures("change", "change", changes)
        .figures("saves", "saves", remedies.iter().map(|remedy| saved(remedy.saves_ns)))
        .whole("predicted_dlopen_misses", "dlopen", Unit::Count, later)
        .text("does", "what it does", remedies.iter().map(|remedy| remedy.does.clone()))
        .detail()
        .text("risk", "risk", remedies.iter().map(|remedy| remedy.risk))
        .detail()
        .note(
            "libraries: failed look-ups of the dynamic linker at starts; dlopen: those of \
             libraries later. programs: failed look-ups in the entries of PATH.",
        );
    let explained = |table: Table, remedy: &Remedy| {
        let risk =
            if remedy.risk.is_empty() { String::new() } else { format!(" Risk: {}.", remedy.risk) };
        table.note(format!("{}: {}.{risk}", remedy.name, remedy.does))
    };
    let changes = found.remedies.iter().filter(|remedy| remedy.name != "none");
    let table = changes.fold(table.in_whole(), explained);
    match not_modelled(found) {
        Some(note) => table.note(note),
        None => table,
    }
}

/// Note on what starts that are not modelled hide.
pub(crate) fn not_modelled(found: &Libs) -> Option<String> {
    (found.starts_not_modelled > 0).then(|| {
        format!(
            "{} not modelled: an entry in which only they find libraries may count as unused.",
            counted(found.starts_not_modelled, "start is", "starts are")
        )
    })
}

/// The relative change of a count.
pub(crate) fn change(before: u64, after: u64) -> String {
    match before {
        0 => "-".to_owned(),
        _ => format!("{:+.0} %", (after as f64 / before as f64 - 1.0) * 100.0),
    }
}

/// A few of these programs, without their directories.
pub(crate) fn some(programs: &[String]) -> String {
    let name = |program: &String| program.rsplit('/').next().unwrap_or_default().to_owned();
    let mut names: Vec<String> = programs.iter().map(name).collect();
    names.dedup();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let names = names.join(", ");
    if more > 0 { format!("{names}, {more} more") } else { names }
}

/// A directory of links that was made.
pub fn farm(farm: &Farm, found: &Libs) -> Vec<Table> {
    let links = Table::new("links", format!("Links in {}", farm.directory))
        .text("name", "name", farm.links.iter().map(|link| link.name.clone()))
        .text("target", "library", farm.links.iter().map(|link| link.target.clone()))
        .note(format!(
            "{}: {} new or changed, {} removed.",
            counted(farm.links.len() as u64, "link", "links"),
            count(farm.renewed),
            count(farm.removed)
        ));
    let remedy = found.remedies.iter().find(|remedy| remedy.name == farm.remedy);
    let links = match remedy {
        Some(remedy) => links.note(format!(
            "Predicted with it: {} failed look-ups of the dynamic linker at starts instead of {}. \
             Risk: {}.",
            count(remedy.predicted_misses),
            count(remedy.today_misses),
            remedy.risk
        )),
        None => links.note("No program of the recording had an LD_LIBRARY_PATH."),
    };
    let costs = remedy.is_some_and(|remedy| remedy.predicted_misses > remedy.today_misses);
    let links = [
        (costs && farm.remedy == "farm").then(|| {
            "It costs more than it avoids, because libraries of the system are searched in it in vain: \
             try --with-system."
                .to_owned()
        }),
        (!farm.left_out.is_empty()).then(|| {
            format!("Left out, as no file may have this name: {}.", farm.left_out.join(", "))
        }),
        (!farm.failing.is_empty()).then(|| {
            format!(
                "Warning: with it these programs would not find all of their libraries, because \
                 one of them looks for others relative to its own place, or because they have \
                 another root directory: {}.",
                some(&farm.failing)
            )
        }),
        not_modelled(found).map(|_| {
            format!(
                "{} not modelled: libraries that only they find may not be linked to.",
                counted(found.starts_not_modelled, "start is", "starts are")
            )
        }),
        (!farm.replaced.is_empty()).then(|| {
            format!(
                "It replaces {} of LD_LIBRARY_PATH and keeps {}.",
                counted(farm.replaced.len() as u64, "entry", "entries"),
                count(farm.kept.len() as u64)
            )
        }),
        (!farm.stops.is_empty()).then(|| {
            format!(
                "Links to themselves, at which searches end, for names that were found nowhere: {}.",
                some(&farm.stops)
            )
        }),
        Some(format!("To use it: . {}", farm.environment)),
    ]
    .into_iter()
    .flatten()
    .fold(links, Table::note);
    let mut tables = vec![links, conflicts(farm), dangling(farm)];
    tables.extend((farm.remedy == "merge").then(|| kept(farm)));
    tables
}

fn kept(farm: &Farm) -> Table {
    Table::new("kept", "Entries of LD_LIBRARY_PATH that stay")
        .text("entry", "entry", farm.kept.iter().map(|kept| kept.entry.clone()))
        .text("why", "why", farm.kept.iter().map(|kept| kept.why))
}

fn conflicts(farm: &Farm) -> Table {
    let rows: Vec<(&str, &str, &FarmCandidate)> = farm
        .conflicts
        .iter()
        .flat_map(|conflict| {
            let name = conflict.name.as_str();
            let lost = conflict.lost.iter().map(move |lost| (name, "no", lost));
            [(name, "yes", &conflict.chosen)].into_iter().chain(lost)
        })
        .collect();
    let table = Table::new("conflicts", "Names for which starts find different libraries")
        .text("name", "name", rows.iter().map(|(name, ..)| *name))
        .text("linked", "linked", rows.iter().map(|(_, linked, _)| *linked))
        .whole("starts", "starts", Unit::Count, rows.iter().map(|(.., file)| file.starts))
        .lists("programs", "programs", rows.iter().map(|(.., file)| some(&file.programs)))
        .text("path", "library", rows.iter().map(|(.., file)| file.path.clone()));
    if rows.is_empty() {
        return table;
    }
    table.note("With it, programs that find another library today take the one that is linked to.")
}

fn dangling(farm: &Farm) -> Table {
    let target = farm.dangling.iter().map(|link| link.target.clone());
    let table = Table::new("dangling", "Libraries that are gone")
        .text("name", "name", farm.dangling.iter().map(|link| link.name.clone()))
        .text("now", "link", farm.dangling.iter().map(|link| link.now))
        .lists("programs", "programs", farm.dangling.iter().map(|link| some(&link.programs)))
        .column("target", "it led to", Unit::Text, Values::Text(target.collect()));
    if farm.dangling.is_empty() {
        return table;
    }
    table.note("programs: those of the recording that asked for it and would not start today.")
}

/// Figure of a trial that is compared: its stable name, heading, unit and value.
type Figure = (&'static str, &'static str, Unit, fn(&TrialRun) -> Option<u64>);

const FIGURES: [Figure; 7] = [
    ("misses", "failed look-ups of the remedy's kind", Unit::Count, |run| Some(run.misses)),
    ("dlopen_misses", "failed look-ups by dlopen(3)", Unit::Count, |run| Some(run.dlopen_misses)),
    ("lookups_failed", "all failed look-ups", Unit::Count, |run| run.lookups_failed),
    ("lookups", "opens and failed look-ups", Unit::Count, |run| run.lookups),
    ("system_ns", "system CPU", Unit::Nanoseconds, |run| run.system_ns),
    ("cpu_ns", "CPU", Unit::Nanoseconds, |run| run.cpu_ns),
    ("wall_ns", "wall time", Unit::Nanoseconds, |run| Some(run.wall_ns)),
];

/// A command without and with a remedy.
pub fn trial(trial: &Trial) -> Table {
    let text = |unit: Unit, value: Option<u64>| match (value, unit) {
        (None, _) => "-".to_owned(),
        (Some(value), Unit::Nanoseconds) => time(value),
        (Some(value), _) => count(value),
    };
    let predicted = |name: &str| match name {
        "misses" => Some(trial.predicted_misses),
        "dlopen_misses" => trial.predicted_dlopen_misses,
        "lookups_failed" => trial.predicted_lookups_failed,
        _ => None,
    };
    let title = |(name, title, ..): &Figure| match (*name, trial.about) {
        ("misses", "programs") => "failed look-ups in PATH",
        ("misses", _) => "failed look-ups at starts",
        _ => title,
    };
    let row = |of: &TrialRun| FIGURES.map(|(_, _, unit, value)| text(unit, value(of)));
    let changes = FIGURES.map(|(.., value)| match (value(&trial.before), value(&trial.after)) {
        (Some(before), Some(after)) => change(before, after),
        _ => "-".to_owned(),
    });
    let names = FIGURES.map(|(name, ..)| Some(name.to_owned()));
    Table::new("trial", format!("Without and with the remedy {}", trial.remedy))
        .text("quantity", "", FIGURES.iter().map(title))
        .figures("before", "without", row(&trial.before))
        .figures("after", "with it", row(&trial.after))
        .figures("change", "change", changes)
        .figures("predicted", "predicted", FIGURES.map(|(name, ..)| text(Unit::Count, predicted(name))))
        .column("name", "name", Unit::Text, Values::Text(names.into()))
        .detail()
        .note(match trial.runs {
            1 => "One run of each; the second finds more files in memory (--repeat N alternates them)."
                .to_owned(),
            runs => format!("Medians of {runs} runs of each, alternating."),
        })
}
