//! Tests that no record and no key makes the view panic.

use proctrace_live::{Progress, Status, progress_line};
use proctrace_wire::Stream;
use proptest::prelude::*;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::testing::{Told, view};
use crate::{Key, Screen};

fn any_record() -> impl Strategy<Value = Vec<u8>> {
    let small = prop_oneof![4 => 0u8..4, 1 => any::<u8>()];
    (0u16..27, proptest::collection::vec(small, 0..64)).prop_map(|(kind, words)| {
        // Small numbers, so that serials and pids meet again.
        let mut body: Vec<u8> = words.iter().flat_map(|word| [*word, 0, 0, 0]).collect();
        body.resize(body.len().max(8).next_multiple_of(8) + 240, 0);
        let size = u16::try_from(body.len() + 8).unwrap();
        let mut bytes = kind.to_le_bytes().to_vec();
        bytes.extend(size.to_le_bytes());
        bytes.extend(u32::from(words.first().copied().unwrap_or(0)).to_le_bytes());
        bytes.extend(body);
        bytes
    })
}

proptest! {
    #[test]
    fn hostile_records_do_not_make_it_panic(
        records in proptest::collection::vec(any_record(), 0..60),
        garbage: Vec<u8>,
        keys in "[ a-zA-Z1-4/?]{0,20}",
    ) {
        let mut view = view(&["sh"]).with_root("sh");
        let mut screen = Screen::new(true);
        for (at, record) in records.iter().enumerate() {
            view.given(Stream::ALL[at % 3], (u64::MAX / 7).wrapping_mul(at as u64), record);
        }
        view.given(Stream::Lifecycle, 1, &garbage);
        let area = Rect::new(0, 0, 80, 24);
        for key in keys.chars() {
            screen.press(Key::Char(key));
            let mut buffer = Buffer::empty(area);
            screen.draw(&view, Status::Recording, None, &mut buffer);
            view.keep(screen.opened());
        }
        let _ = progress_line(&view, Progress::default());
    }
}
