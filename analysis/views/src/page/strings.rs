//! The strings of a page, each of them once.

use proctrace_findings::LeftOut;
use proctrace_wire::escape::to_text;

use proctrace_classify::fast::FastMap;

/// Numbers of strings, up to a total size; strings beyond it have no number.
#[derive(Debug)]
pub(super) struct Strings {
    strings: Vec<String>,
    numbers: FastMap<String, u64>,
    room_bytes: usize,
    refused: u64,
}

impl Strings {
    pub(super) fn new(room_bytes: usize) -> Self {
        Self { strings: Vec::new(), numbers: FastMap::default(), room_bytes, refused: 0 }
    }

    /// The number of a string; `None` if there is no room for it.
    pub(super) fn number_of(&mut self, text: &str) -> Option<u64> {
        if let Some(number) = self.numbers.get(text) {
            return Some(*number);
        }
        let Some(room_bytes) = self.room_bytes.checked_sub(text.len()) else {
            self.refused += 1;
            return None;
        };
        self.room_bytes = room_bytes;
        let number = self.strings.len() as u64;
        self.strings.push(text.to_owned());
        self.numbers.insert(text.to_owned(), number);
        Some(number)
    }

    pub(super) fn number_of_bytes(&mut self, bytes: &[u8]) -> Option<u64> {
        self.number_of(&to_text(bytes))
    }

    pub(super) fn left_out(&self) -> Option<LeftOut> {
        let shown = self.strings.len() as u64;
        (self.refused > 0).then(|| LeftOut { what: "strings", shown, of: shown + self.refused })
    }

    pub(super) fn into_inner(self) -> Vec<String> {
        self.strings
    }
}
