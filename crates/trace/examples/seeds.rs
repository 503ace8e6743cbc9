//! Writes seeds for the fuzzing of records, from traces: `seeds TARGET CORPUS TRACE…`. Used by `cargo xtask fuzz`.

use std::error::Error;
use std::path::{Path, PathBuf};

use proctrace_trace::Reader;
use proctrace_wire::{Frames, Kind};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(target), Some(corpus)) = (arguments.next(), arguments.next()) else {
        return Err("usage: seeds TARGET CORPUS TRACE...".into());
    };
    let mut number = 0;
    for trace in arguments {
        for block in blocks(&trace)? {
            let seed = if target.as_os_str() == "replay" { as_replayed(&block) } else { block };
            std::fs::write(corpus.join(format!("seed-{number}")), seed)?;
            number += 1;
        }
    }
    Ok(())
}

/// The record blocks of a trace, cut into pieces at record boundaries.
fn blocks(trace: &Path) -> Result<Vec<Vec<u8>>, Failure> {
    let mut blocks = Vec::new();
    let mut reader = Reader::open(trace)?;
    while let Some(block) = reader.next_block() {
        let frames: Vec<&[u8]> =
            Frames::new(&block.bytes).flatten().map(|frame| frame.bytes).collect();
        blocks.extend(frames.chunks(40).map(<[&[u8]]>::concat));
    }
    Ok(blocks)
}

/// A mark for a complete trace, then each record in the input format of fuzz/harness/replay.rs: its
/// kind, the length of its tail, and the rest without kind and size.
fn as_replayed(block: &[u8]) -> Vec<u8> {
    let mut out = vec![1];
    for frame in Frames::new(block).flatten() {
        let Some(kind) = Kind::from_number(frame.head.kind) else { continue };
        let Some(tail) = frame.bytes.len().checked_sub(kind.layout().size) else { continue };
        let Ok(tail) = u8::try_from(tail) else { continue };
        out.extend([kind as u8, tail]);
        out.extend_from_slice(&frame.bytes[4..]);
    }
    out
}
