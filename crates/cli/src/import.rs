//! `proctrace import`: logs of other tools become recordings.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, stdin};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_import::{Doubts, ImportError, Imported, Log, Push, is_without_pids};
use proctrace_record::Sink;
use proctrace_recorder::output::Output;
use proctrace_recorder::record::closing::tell_kept;
use proctrace_recorder::waiting::during;
use proctrace_recorder::{invoker, say};
use proctrace_report::number::{bytes, count, counted, time};
use proctrace_trace::{Knowledge, Reader, Spool, Writer};
use proctrace_wire::{Frames, Quantity};

use crate::args::{ImportArgs, ImportLog, ImportOutput};

/// Number of bytes that are read of a log to find out whether its lines have pids.
const BEGINNING: u64 = 1 << 16;

/// Makes a recording of a log.
///
/// # Errors
/// If the log cannot be read, or the recording cannot be written.
pub(crate) fn run(args: &ImportArgs) -> Result<ExitCode> {
    match &args.log {
        ImportLog::Strace(args) => {
            let logs = args.logs.iter().map(|path| log(path)).collect::<Result<Vec<_>>>()?;
            let from_stdin = args.logs.iter().filter(|path| is_stdin(path)).count();
            if from_stdin > 0 && logs.len() > 1 {
                bail!("standard input cannot be merged with other logs");
            }
            import(&args.output, |push| {
                during("reading the log", || proctrace_import::strace(logs, push))
            })
        }
        ImportLog::Prmon(args) => {
            let name = args.text.display().to_string();
            let mut text: Box<dyn BufRead> = match is_stdin(&args.text) {
                true => Box::new(stdin().lock()),
                false => {
                    let file = File::open(&args.text);
                    Box::new(BufReader::new(file.with_context(|| format!("cannot read {name}"))?))
                }
            };
            import(&args.output, |push| {
                during("reading the log", || proctrace_import::prmon(&name, &mut *text, push))
            })
        }
    }
}

fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

fn log(path: &Path) -> Result<Log> {
    let name = path.display().to_string();
    if is_stdin(path) {
        return Ok(Log { name, pid: None, open: Box::new(|| Ok(Box::new(stdin()))) });
    }
    let file = File::open(path).with_context(|| format!("cannot read {name}"))?;
    let mut beginning = Vec::new();
    // A pipe could not be read again.
    if file.metadata().is_ok_and(|file| file.is_file()) {
        let mut file = file;
        file.by_ref()
            .take(BEGINNING)
            .read_to_end(&mut beginning)
            .with_context(|| format!("cannot read {name}"))?;
        let path = path.to_owned();
        let pid = pid_of_name(&path).filter(|_| is_without_pids(&beginning));
        let open = move || File::open(&path).map(|file| Box::new(file) as Box<dyn Read>);
        return Ok(Log { name, pid, open: Box::new(open) });
    }
    let mut file = Some(file);
    let open = move || match file.take() {
        Some(file) => Ok(Box::new(file) as Box<dyn Read>),
        None => Err(io::Error::other("a pipe cannot be merged with other logs")),
    };
    Ok(Log { name, pid: None, open: Box::new(open) })
}

/// `strace -ff -o LOG` writes LOG.PID.
fn pid_of_name(path: &Path) -> Option<i32> {
    path.extension()?.to_str()?.parse().ok().filter(|pid| *pid > 0)
}

/// Writes the records to a file that has no name, because their header is known only at the end, and
/// then header and records to the output.
fn import(
    output: &ImportOutput,
    run: impl FnOnce(&mut Push<'_>) -> Result<Imported, ImportError>,
) -> Result<ExitCode> {
    let path = &output.output;
    let cannot = || format!("cannot write {}", path.display());
    let outputs = invoker::outputs();
    let file = outputs.unnamed_beside(path).with_context(cannot)?;
    let provisional = proctrace_import::blank("import", "pids", 0);
    let writer = Writer::new(file, &provisional).with_context(cannot)?;
    let mut spool = Spool::new(writer).with_context(cannot)?;
    let imported = run(&mut |stream, time_ns, record| {
        spool.push(stream, time_ns, record).map_err(io::Error::other)
    })?;
    let (mut unnamed, _) = spool.finish(&imported.trailer).with_context(cannot)?;
    unnamed.rewind().with_context(cannot)?;
    let mut records = Reader::new(BufReader::new(unnamed), "imported records")?;
    let mut out = Output::create(path, &outputs, &imported.header)?;
    while let Some(block) = records.next_block_where(|_| true) {
        for frame in Frames::new(&block.bytes) {
            let frame = frame?;
            out.push(block.info.stream, frame.head.time_ns, frame.bytes).with_context(cannot)?;
        }
    }
    if let Some(damage) = records.damage().first() {
        out.discard();
        bail!("the imported records cannot be read back: {damage}");
    }
    let written = out.finish(&imported.trailer)?;
    if !output.quiet {
        tell(&imported, &written.path, written.bytes);
        tell_kept(&written);
    }
    warn(&imported);
    Ok(ExitCode::SUCCESS)
}

fn tell(imported: &Imported, path: &Path, written_bytes: u64) {
    let took_ns = imported.trailer.ended_ns.saturating_sub(imported.header.started_ns);
    let tasks = match &*imported.header.backend {
        "prmon" => counted(imported.lines, "row", "rows"),
        // Which of them are threads is not known.
        _ if matches!(imported.header.knows(Quantity::Forks), Knowledge::Absent { .. }) => format!(
            "{}, {}",
            counted(imported.lines, "line", "lines"),
            counted(imported.trailer.tasks, "task", "tasks")
        ),
        _ => format!(
            "{}, {}, {}",
            counted(imported.lines, "line", "lines"),
            counted(imported.processes, "process", "processes"),
            counted(imported.threads, "thread", "threads")
        ),
    };
    let path = path.display();
    let took = match imported.header.knows(Quantity::Times) {
        Knowledge::Absent { reason } => format!("no times: {reason}"),
        _ => time(took_ns),
    };
    say::note(&format!("{tasks}, {took} · {path} ({})", bytes(written_bytes)));
}

/// Names the first lines that were not understood.
fn warn(imported: &Imported) {
    let Doubts { first, lines, .. } = &imported.doubts;
    if *lines > 0 {
        say::note(&format!(
            "{} not understood{}",
            if *lines == 1 { "1 line was".into() } else { format!("{} lines were", count(*lines)) },
            if *lines > first.len() as u64 { "; the first:" } else { ":" },
        ));
        for doubt in first {
            let text = proctrace_report::escape::terminal(&doubt.text).into_owned();
            say::note(&format!("  {}:{}: {text}", doubt.log, doubt.line));
        }
    }
    for remark in &imported.remarks {
        say::note(remark);
    }
    let lost = imported.trailer.losses.iter().fold(0_u64, |lost, it| lost.saturating_add(it.count));
    if lost > 0 {
        say::note(&format!("{} missing: see `proctrace check`", {
            if lost == 1 { "1 record is".into() } else { format!("{} records are", count(lost)) }
        }));
    }
}
