//! Copies a trace block by block, without the details of the machine it was recorded on: `publishable TRACE COPY`. Used by
//! `cargo xtask fixtures`.

use std::error::Error;
use std::path::PathBuf;

use proctrace_trace::{Reader, Writer};
use proctrace_wire::{Frames, IntoBytes, Record};

type Failure = Box<dyn Error + Send + Sync>;

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(trace), Some(copy)) = (arguments.next(), arguments.next()) else {
        return Err("usage: publishable TRACE COPY".into());
    };
    let mut reader = Reader::open(trace)?;
    let mut header = reader.header().clone();
    header.host = "example".to_owned();
    header.kernel = "6.18.0".to_owned();
    header.processor.model = header.processor.model.map(|_| "Example CPU".to_owned());
    let mut writer = Writer::new(Vec::new(), &header)?;
    while let Some(block) = reader.next_block() {
        let info = block.info;
        let bytes = with_common_mounts(&block.bytes)?;
        writer.append(info.stream, info.records, info.first_ns, info.last_ns, &bytes)?;
    }
    let trailer = reader.trailer().ok_or("the recording is incomplete")?;
    let (bytes, _) = writer.finish(trailer)?;
    Ok(std::fs::write(copy, bytes)?)
}

/// The records of a block, with mount tables reduced to what every machine has.
fn with_common_mounts(block: &[u8]) -> Result<Vec<u8>, Failure> {
    const COMMON: [&str; 4] = ["/", "/dev", "/proc", "/sys"];
    let mut bytes = Vec::with_capacity(block.len());
    for frame in Frames::new(block) {
        let frame = frame?;
        let Record::Mounts(mut fixed, table) = Record::decode(frame)? else {
            bytes.extend_from_slice(frame.bytes);
            continue;
        };
        if fixed.bytes != fixed.total_bytes {
            return Err("a mount table in several parts".into());
        }
        let table = String::from_utf8_lossy(table);
        let lines = table
            .lines()
            .filter(|line| line.split(' ').nth(4).is_some_and(|point| COMMON.contains(&point)));
        let table: String = lines.map(|line| format!("{line}\n")).collect();
        let size = (size_of_val(&fixed) + table.len()).next_multiple_of(8);
        fixed.head.size = u16::try_from(size)?;
        fixed.bytes = u32::try_from(table.len())?;
        fixed.total_bytes = fixed.bytes;
        let end = bytes.len() + size;
        bytes.extend_from_slice(fixed.as_bytes());
        bytes.extend_from_slice(table.as_bytes());
        bytes.resize(end, 0);
    }
    Ok(bytes)
}
