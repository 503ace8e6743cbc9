//! Traces of every format can be read, and rewritten in the current one.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use proctrace_trace::{Block, Reader, Writer};
use proctrace_wire::Stream;

fn recorded() -> Vec<PathBuf> {
    let traces =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    let files = std::fs::read_dir(traces).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|extension| extension == "ptrace")).collect()
}

fn blocks(reader: &mut Reader<impl std::io::Read + std::io::Seek>) -> Vec<Block> {
    let blocks = std::iter::from_fn(|| reader.next_block()).collect();
    assert_eq!(reader.damage(), []);
    blocks
}

/// All records of a stream, in blocks of at most this size.
fn merged(blocks: &[Block], stream: Stream, bytes: usize) -> Vec<Vec<u8>> {
    let mut merged = vec![Vec::new()];
    for block in blocks.iter().filter(|block| block.info.stream == stream) {
        for frame in proctrace_wire::Frames::new(&block.bytes) {
            let frame = frame.unwrap();
            if merged.last().unwrap().len() + frame.bytes.len() > bytes {
                merged.push(Vec::new());
            }
            merged.last_mut().unwrap().extend_from_slice(frame.bytes);
        }
    }
    merged
}

#[test]
fn recorded_traces_come_back_from_blocks_of_any_size() {
    let recorded = recorded();
    assert!(recorded.len() >= 2, "{recorded:?}");
    for path in recorded {
        let mut reader = Reader::open(&path).unwrap();
        let old = blocks(&mut reader);
        for bytes in [256, 4096, 512 << 10] {
            let mut writer = Writer::new(Vec::new(), reader.header()).unwrap();
            let mut written = Vec::new();
            for stream in Stream::ALL {
                for block in merged(&old, stream, bytes) {
                    writer.append(stream, 0, 1, 2, &block).unwrap();
                    written.push(block);
                }
            }
            let new = Cursor::new(writer.into_inner());
            let read = blocks(&mut Reader::new(new, "new").unwrap());
            let read: Vec<_> = read.into_iter().map(|block| block.bytes).collect();
            assert!(read == written, "{} in blocks of {bytes} bytes", path.display());
        }
    }
}

#[test]
fn a_trace_of_an_earlier_format_gets_smaller() {
    for name in ["tour-1.ptrace", "tour-2.ptrace"] {
        let traces = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../fixtures/traces");
        let mut reader = Reader::open(traces.join(name)).unwrap();
        let old = blocks(&mut reader);
        let mut writer = Writer::new(Vec::new(), reader.header()).unwrap();
        for Block { info, bytes } in old {
            writer.append(info.stream, info.records, info.first_ns, info.last_ns, &bytes).unwrap();
        }
        let (_, bytes) = writer.finish(reader.trailer().unwrap()).unwrap();
        assert!(bytes < reader.len_bytes(), "{name}: {bytes} of {}", reader.len_bytes());
    }
}
