//! Any bytes as records, and as text that is escaped and unescaped without loss.

use proctrace_wire::escape::{to_bytes, to_text};
use proctrace_wire::{DecodeError, Frames, Kind, Record};

pub(crate) fn run(data: &[u8]) {
    let mut passed = 0;
    for frame in Frames::new(data) {
        let Ok(frame) = frame else { break };
        passed += frame.bytes.len();
        match Record::decode(frame) {
            Ok(Record::Unknown(_)) => assert!(Kind::from_number(frame.head.kind).is_none()),
            Ok(_) => {
                let kind = Kind::from_number(frame.head.kind).expect("it was decoded");
                assert!(frame.bytes.len() >= kind.layout().size);
            }
            Err(error) => assert!(matches!(error, DecodeError::Contents { .. }), "{error}"),
        }
    }
    assert!(passed <= data.len());
    assert_eq!(to_bytes(&to_text(data)), data);
}
