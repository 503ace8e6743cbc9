//! `proctrace dump`: prints the events of a recording as lines of JSON.

mod unknown;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{BufWriter, Write, stdout};
use std::process::ExitCode;

use anyhow::Result;
use proctrace_replay::{Replay, Summary};
use proctrace_report::escape;
use proctrace_trace::{BlockInfo, DamageKind, Reader};
use proctrace_wire::Kind;
use rustix::fs::{FileType, fstat};
use serde::Serialize;

use crate::args::DumpArgs;
use crate::waiting::during;
use crate::{live, say};

/// Prints the events.
///
/// # Errors
/// If the trace cannot be read.
pub fn run(args: &DumpArgs) -> Result<ExitCode> {
    if args.header {
        return header(args);
    }
    let wanted: Vec<&str> = args.kind.iter().map(<&str>::from).collect();
    let recording_now = live::is_held(&args.trace);
    let mut replay = Replay::open(&args.trace)?;
    let unknown = unknown::keys(replay.header());
    let mut out = BufWriter::with_capacity(1 << 16, stdout().lock());
    let mut dump = || -> Result<()> {
        for event in replay.by_ref() {
            if wanted.is_empty() || wanted.contains(&event.kind()) {
                let line = event.to_json();
                out.write_all(escape::json(&unknown::without(&line, &unknown)).as_bytes())?;
                out.write_all(b"\n")?;
            }
        }
        Ok(out.flush()?)
    };
    // On a terminal, or to whoever reads a pipe, the events themselves show that there is progress.
    let is_file = fstat(stdout())
        .is_ok_and(|status| FileType::from_raw_mode(status.st_mode) == FileType::RegularFile);
    if is_file {
        during("dumping", dump)?
    } else {
        dump()?
    }
    warn(&replay.summary(), recording_now);
    Ok(ExitCode::SUCCESS)
}

fn header(args: &DumpArgs) -> Result<ExitCode> {
    let recording_now = live::is_held(&args.trace);
    let mut reader = Reader::open(&args.trace)?;
    let streams = RefCell::new(BTreeMap::<String, StreamSize>::new());
    let count = |info: &BlockInfo| {
        let mut streams = streams.borrow_mut();
        let size = streams.entry(format!("{:?}", info.stream).to_lowercase()).or_default();
        size.blocks += 1;
        size.records += u64::from(info.records);
        size.bytes += u64::from(info.raw_bytes);
        size.stored_bytes += u64::from(info.stored_bytes);
        // the contents are not needed
        false
    };
    while reader.next_block_where(count).is_some() {}
    let text = serde_json::json!({
        "header": reader.header(),
        "lookup_time_resolution_ns": reader.header().tick_ns,
        "recording_now": recording_now && reader.trailer().is_none(),
        "streams": streams.into_inner(),
        "trailer": reader.trailer(),
    });
    let mut out = stdout().lock();
    out.write_all(escape::json_text(&text)?.as_bytes())?;
    Ok(ExitCode::SUCCESS)
}

/// The size of a stream in the file.
#[derive(Debug, Default, Serialize)]
struct StreamSize {
    blocks: u64,
    records: u64,
    bytes: u64,
    /// Compressed size.
    stored_bytes: u64,
}

/// Reports damage to a trace, after its events.
fn warn(summary: &Summary, recording_now: bool) {
    let recording_now = recording_now && summary.trailer.is_none();
    let damage = summary.damage.iter().filter(|damage| {
        // The incomplete block that is still being written.
        !(recording_now && damage.what == DamageKind::Truncated)
    });
    for damage in damage {
        say::note(&format!("the trace is damaged: {damage}"));
    }
    if recording_now {
        say::note("the trace is being recorded right now: these are the events written so far");
    } else if summary.trailer.is_none() {
        say::note("the trace is incomplete: the recorder did not finish it");
    }
    if summary.decoded.unknown > 0 {
        say::note(&format!("{} records of a later version were skipped", summary.decoded.unknown));
    }
    if summary.decoded.undecodable > 0 {
        say::note(&format!("{} records could not be decoded", summary.decoded.undecodable));
    }
    let losses = || summary.trailer.iter().flat_map(|trailer| &trailer.losses);
    let lost: u64 = losses().map(|loss| loss.count).sum();
    if lost > 0 {
        let with = losses().map(|loss| Kind::missing_with(loss.kind.name())).max().unwrap_or("");
        say::note(&format!("{lost} records were lost during the recording{with}"));
    }
}
