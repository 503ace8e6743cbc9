//! `proctrace libs`: failed look-ups by cause, and what would avoid them.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::io::{Write, stdout};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::{Context, Result};
use proctrace_analysis::{Machine, Rules, libs};
use proctrace_findings::{Libs, Remedy, Table, Unit};
use proctrace_libsearch::{Cache, Elf, Files, Linker, Root};
use proctrace_replay::MountTable;
use proctrace_report::number::{count, counted};
use proctrace_wire::Family;

use crate::args::LibsArgs;
use crate::{check, print, rules};

pub(crate) fn run(args: &LibsArgs) -> Result<ExitCode> {
    let recording = rules::read(&args.trace, &Rules::generic())?;
    check::warn(&args.trace, &recording);
    for family in [Family::Open, Family::Stat] {
        anyhow::ensure!(
            recording.header.misses.iter().any(|recorded| recorded == family.name()),
            "{} was recorded without failed {} calls, so their causes are not known; record with \
             --misses open,stat or without --misses",
            args.trace.display(),
            family.name()
        );
    }
    let linker = linker()?;
    // A system without a cache, or with one of another C library, is searched without it.
    let cache = std::fs::read("/etc/ld.so.cache").ok();
    let cache = cache.and_then(|bytes| Cache::parse(&bytes).ok()).unwrap_or_default();
    let files = Root::new("/");
    let mounts = std::fs::read("/proc/self/mountinfo").unwrap_or_default();
    let mounts = MountTable::parse(0, &mounts);
    let view = |mounts| -> Arc<dyn Files> { Arc::new(Root::of_mounts(mounts)) };
    let machine =
        Machine { linker: &linker, cache: &cache, files: &files, mounts: &mounts, view: &view };
    let found = libs(&args.trace, machine)
        .with_context(|| format!("cannot read {}", args.trace.display()))?;
    let mut out = stdout().lock();
    if args.json {
        print::json(&mut out, &found)?;
    } else {
        let style = print::style((!args.all).then_some(args.top));
        print::tables(&mut out, &tables(&found), args.format, style)?;
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// This machine's dynamic linker, which describes itself.
fn linker() -> Result<Linker> {
    let own = std::fs::File::open("/proc/self/exe").context("cannot read our own executable")?;
    let elf = Elf::read(own).context("cannot read our own executable")?;
    let path = elf.interpreter.context("proctrace is linked statically: which linker to ask?")?;
    let path = String::from_utf8(path).context("the path of the dynamic linker is not UTF-8")?;
    let output = Command::new(Path::new(&path))
        .arg("--help")
        .output()
        .with_context(|| format!("cannot run {path}"))?;
    let linker = Linker::of_help(&String::from_utf8_lossy(&output.stdout));
    anyhow::ensure!(
        !linker.default_directories.is_empty(),
        "{path} --help does not name its directories: glibc 2.33 or later is needed"
    );
    Ok(linker)
}

fn tables(found: &Libs) -> Vec<Table> {
    let causes = &found.causes;
    let figure = |number: Option<u64>| number.map_or("-".to_owned(), count);
    let mut kinds: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    for cause in causes.iter().filter(|cause| cause.misses > 0) {
        let (misses, entries) = kinds.entry(cause.kind).or_default();
        *misses += cause.misses;
        *entries += 1;
    }
    let mut kinds: Vec<_> = kinds.into_iter().collect();
    kinds.sort_by_key(|(kind, (misses, _))| (Reverse(*misses), *kind));
    let all: u64 = kinds.iter().map(|(_, (misses, _))| misses).sum();
    let share = |misses: u64| format!("{:.1} %", misses as f64 / all.max(1) as f64 * 100.0);
    let by_kind = Table::new("kinds", "Failed look-ups by kind of cause")
        .whole("misses", "failed", Unit::Count, kinds.iter().map(|(_, (misses, _))| *misses))
        .figures("share", "share", kinds.iter().map(|(_, (misses, _))| share(*misses)))
        .whole("entries", "places", Unit::Count, kinds.iter().map(|(_, (_, entries))| *entries))
        .text("kind", "cause", kinds.iter().map(|(kind, _)| *kind));
    let table = Table::new("causes", "Failed look-ups by cause and place")
        .whole("misses", "failed", Unit::Count, causes.iter().map(|cause| cause.misses))
        .whole("processes", "processes", Unit::Count, causes.iter().map(|cause| cause.processes))
        .figures("probes", "probes", causes.iter().map(|cause| figure(cause.probes)))
        .figures("hits", "hits", causes.iter().map(|cause| figure(cause.hits)))
        .text("kind", "cause", causes.iter().map(|cause| cause.kind))
        .text("entry", "where", causes.iter().map(|cause| cause.entry.clone()))
        .note(format!(
            "Starts modelled: {}; {} failed look-ups predicted, {} of them recorded; {} failed look-ups \
             of libraries unexplained. Starts not modelled, because files are gone or the \
             environment was not recorded: {}.",
            count(found.starts),
            count(found.predicted_library_misses),
            count(found.confirmed_library_misses),
            count(found.unexplained_library_misses),
            count(found.starts_not_modelled)
        ))
        .note("probes, hits: look-ups of the dynamic linker there, and libraries that it found.");
    let today = found.remedies.iter().find(|remedy| remedy.name == "none");
    let today = today.map_or(0, |remedy| remedy.predicted_misses);
    let change = |misses: u64| match today {
        0 => "-".to_owned(),
        _ => format!("{:+.0} %", (misses as f64 / today as f64 - 1.0) * 100.0),
    };
    let remedies = &found.remedies;
    let misses = || remedies.iter().map(|remedy| remedy.predicted_misses);
    let remedies = Table::new("remedies", "What would avoid failed look-ups of the dynamic linker")
        .text("name", "remedy", remedies.iter().map(|remedy| remedy.name))
        .whole("predicted_misses", "failed", Unit::Count, misses())
        .figures("change", "change", misses().map(change))
        .text("does", "what it does", remedies.iter().map(|remedy| remedy.does.clone()))
        .detail()
        .text("risk", "risk", remedies.iter().map(|remedy| remedy.risk))
        .detail();
    let explained = |table: Table, remedy: &Remedy| {
        let risk =
            if remedy.risk.is_empty() { String::new() } else { format!(" Risk: {}.", remedy.risk) };
        table.note(format!("{}: {}.{risk}", remedy.name, remedy.does))
    };
    let changes = found.remedies.iter().filter(|remedy| remedy.name != "none");
    let mut remedies = changes.fold(remedies, explained);
    if found.starts_not_modelled > 0 {
        remedies = remedies.note(format!(
            "{} not modelled: an entry in which only they find libraries counts as unused.",
            counted(found.starts_not_modelled, "start is", "starts are")
        ));
    }
    vec![by_kind, table, remedies]
}
