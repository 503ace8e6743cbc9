//! The strings of a page, each of them once.

use proctrace_findings::LeftOut;
use proctrace_wire::escape::to_text;

use proctrace_classify::fast::FastIndexSet;

/// Numbers of strings, up to a total size; strings beyond it have no number.
#[derive(Debug)]
pub(super) struct Strings {
    strings: FastIndexSet<String>,
    room_bytes: usize,
    refused: u64,
}

impl Strings {
    pub(super) fn new(room_bytes: usize) -> Self {
        Self { strings: FastIndexSet::default(), room_bytes, refused: 0 }
    }

    /// The number of a string; `None` if there is no room for it.
    pub(super) fn number_of(&mut self, text: &str) -> Option<u64> {
        if let Some(number) = self.strings.get_index_of(text) {
            return Some(number as u64);
        }
        let Some(room_bytes) = self.room_bytes.checked_sub(text.len()) else {
            self.refused += 1;
            return None;
        };
        self.room_bytes = room_bytes;
        Some(self.strings.insert_full(text.to_owned()).0 as u64)
    }

    pub(super) fn number_of_bytes(&mut self, bytes: &[u8]) -> Option<u64> {
        self.number_of(&to_text(bytes))
    }

    pub(super) fn left_out(&self) -> Option<LeftOut> {
        let shown = self.strings.len() as u64;
        (self.refused > 0).then(|| LeftOut { what: "strings", shown, of: shown + self.refused })
    }

    pub(super) fn into_inner(self) -> Vec<String> {
        self.strings.into_iter().collect()
    }
}
