//! `proctrace libs`: failed look-ups by cause, what would avoid them, and what carries that out.

mod attempt;
mod farm;
mod shell;
mod tables;

use std::io::{Write, stdout};
use std::path::Path;
use std::process::{Command, ExitCode};
use std::sync::Arc;

use anyhow::{Context, Result};
use proctrace_analysis::{Fixes, Machine, Recording, Rules, libs};
use proctrace_findings::{Libs, Table};
use proctrace_libsearch::{Cache, Elf, Files, Linker, Root};
use proctrace_replay::MountTable;
use proctrace_wire::Family;

use crate::args::{LibsAction, LibsArgs};
use crate::waiting::during;
use crate::{check, exit_code, incomplete, print};

pub(crate) fn run(args: &LibsArgs) -> Result<ExitCode> {
    if let Some(LibsAction::Try(args)) = &args.action {
        return attempt::run(args);
    }
    let recording = check::read(&args.trace, &Rules::generic())?;
    incomplete::warn(&args.trace, &recording);
    for family in [Family::Open, Family::Stat] {
        anyhow::ensure!(
            recording.header.misses.iter().any(|recorded| recorded == family.name()),
            "{} was recorded without failed {} calls, so their causes are not known; record with \
             --misses open,stat or without --misses",
            args.trace.display(),
            family.name()
        );
    }
    let (mut found, fixes) = during("modelling searches", || read(recording, &args.trace))?;
    if args.env {
        return raw(&shell::environment(&found, &fixes));
    }
    if args.patchelf {
        return raw(&shell::patchelf(&found, &fixes));
    }
    if let Some(directory) = &args.farm {
        let (remedy, plan) = match (args.merge, args.with_system) {
            (true, _) => ("merge", &fixes.merge),
            (false, true) => ("farm-system", &fixes.farm_system),
            (false, false) => ("farm", &fixes.farm),
        };
        found.farm = Some(farm::make(directory, remedy, plan)?);
    }
    if args.json {
        let mut out = stdout().lock();
        print::json(&mut out, &found)?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let tables = match &found.farm {
        Some(farm) => tables::farm(farm, &found),
        None => tables::causes(&found),
    };
    put(&tables, args)
}

/// The exit code of a failure of our own: a script must be able to tell it from the status of a command
/// that is run.
pub(crate) fn own_failure(args: &LibsArgs) -> u8 {
    match args.action {
        Some(LibsAction::Try(_)) => exit_code::RECORDING_FAILED,
        None => exit_code::FAILED,
    }
}

/// The causes and remedies of a recording on this machine.
fn read(recording: Recording, trace: &Path) -> Result<(Libs, Fixes)> {
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
    libs(recording, trace, machine).with_context(|| format!("cannot read {}", trace.display()))
}

fn put(tables: &[Table], args: &LibsArgs) -> Result<ExitCode> {
    let mut out = stdout().lock();
    let style = print::style((!args.all).then_some(args.top));
    print::tables(&mut out, tables, args.format, args.csv.dialect(), style)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// Prints text for a shell, which may contain bytes that are not UTF-8.
fn raw(text: &[u8]) -> Result<ExitCode> {
    let mut out = stdout().lock();
    out.write_all(text)?;
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}

/// The dynamic linker that this program was linked for.
pub(crate) fn path_of_linker() -> Result<String> {
    let own = std::fs::File::open("/proc/self/exe").context("cannot read our own executable")?;
    let elf = Elf::read(own).context("cannot read our own executable")?;
    let path = elf.interpreter.context("proctrace is linked statically: which linker to ask?")?;
    String::from_utf8(path).context("the path of the dynamic linker is not UTF-8")
}

/// This machine's dynamic linker, which describes itself.
fn linker() -> Result<Linker> {
    let path = path_of_linker()?;
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
