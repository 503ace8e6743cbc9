//! Records as bytes.

use proctrace_wire::layout::Head;
use proctrace_wire::{IntoBytes, Kind};
use zerocopy::Immutable;

/// The head of a record whose size is not known yet.
pub(crate) fn head(kind: Kind, task: u32, time_ns: u64) -> Head {
    Head { kind: kind as u16, size: 0, task, time_ns }
}

/// Replaces `buffer` with a record: the fixed part, then `parts`, then padding. The size in its head is
/// filled in. Callers limit the parts, so that all of it fits.
pub(crate) fn assemble(
    buffer: &mut Vec<u8>,
    fixed: &(impl IntoBytes + Immutable),
    parts: &[&[u8]],
) {
    buffer.clear();
    buffer.extend_from_slice(fixed.as_bytes());
    for part in parts {
        buffer.extend_from_slice(part);
    }
    buffer.resize(buffer.len().next_multiple_of(8), 0);
    // The size is the second field of the head.
    let size = u16::try_from(buffer.len()).unwrap_or(0);
    buffer[2..4].copy_from_slice(&size.to_le_bytes());
}

#[cfg(test)]
mod tests {
    use proctrace_wire::layout::ExecArgsFixed;
    use proctrace_wire::{Frames, Record};

    use super::*;

    #[test]
    fn a_record_is_read_back() {
        let fixed = ExecArgsFixed { head: head(Kind::ExecArgs, 3, 9), offset: 1, bytes: 5 };
        let mut record = vec![1; 100];
        assemble(&mut record, &fixed, &[b"ab", b"c", b"de"]);
        let mut frames = Frames::new(&record);
        let frame = frames.next().and_then(Result::ok).expect("a record");
        assert!(frames.next().is_none());
        let Ok(Record::ExecArgs(args, bytes)) = Record::decode(frame) else { panic!("{frame:?}") };
        assert_eq!((args.head.size, bytes), (32, &b"abcde"[..]));
    }
}
