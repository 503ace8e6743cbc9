//! `proctrace dump`: a recording's events as lines of JSON.

use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use proctrace_replay::{Replay, Summary};
use proctrace_trace::Reader;
use proctrace_wire::Kind;

use crate::args::{DumpArgs, EventKind};
use crate::say;

pub(crate) fn run(args: &DumpArgs) -> Result<ExitCode> {
    if args.header {
        return header(args);
    }
    let wanted: Vec<Kind> = args.kind.iter().map(|kind| kind_of(*kind)).collect();
    let mut replay = Replay::open(&args.trace)?;
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    for event in replay.by_ref() {
        if wanted.is_empty() || wanted.contains(&event.kind()) {
            // as an io::Error, for the broken pipe that is none of ours
            serde_json::to_writer(&mut out, &event).map_err(std::io::Error::from)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()?;
    warn(&replay.summary());
    Ok(ExitCode::SUCCESS)
}

fn header(args: &DumpArgs) -> Result<ExitCode> {
    let mut reader = Reader::open(&args.trace)?;
    while reader.next_block_where(|_| false).is_some() {}
    let text = serde_json::json!({ "header": reader.header(), "trailer": reader.trailer() });
    let mut out = stdout().lock();
    serde_json::to_writer_pretty(&mut out, &text)?;
    out.write_all(b"\n")?;
    Ok(ExitCode::SUCCESS)
}

/// What is wrong with a trace, said after its events.
fn warn(summary: &Summary) {
    for damage in &summary.damage {
        say::note(&format!("the trace is damaged: {damage}"));
    }
    if summary.trailer.is_none() {
        say::note("the trace is incomplete: the recorder did not get to finish it");
    }
    if summary.decoded.unknown > 0 {
        say::note(&format!(
            "{} records of a later version were passed over",
            summary.decoded.unknown
        ));
    }
    if summary.decoded.undecodable > 0 {
        say::note(&format!("{} records make no sense", summary.decoded.undecodable));
    }
    let losses = summary.trailer.iter().flat_map(|trailer| &trailer.losses);
    let lost: u64 = losses.map(|loss| loss.count).sum();
    if lost > 0 {
        say::note(&format!("{lost} records were lost while recording"));
    }
}

fn kind_of(kind: EventKind) -> Kind {
    match kind {
        EventKind::Attach => Kind::Attach,
        EventKind::Fork => Kind::Fork,
        EventKind::Exec => Kind::Exec,
        EventKind::ExecFailed => Kind::ExecFailed,
        EventKind::Exit => Kind::Exit,
        EventKind::LookupFailed => Kind::LookupFailed,
        EventKind::Rename => Kind::Rename,
        EventKind::Sample => Kind::Sample,
        EventKind::Tick => Kind::Tick,
        EventKind::Memory => Kind::Memory,
        EventKind::Blind => Kind::Blind,
        EventKind::Loss => Kind::Loss,
    }
}
