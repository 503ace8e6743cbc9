//! Parses pages of the kernel's trace buffer, and counts their events by id.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};

/// Bytes of a page's time and length.
const HEADER: usize = 16;
/// Masks the flags at the top of a page's length, which report missed events.
const LENGTH: u64 = 0x0fff_ffff;

const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;

/// Number of events of each id in pages of `page` bytes.
pub(super) fn count(pages: &[u8], page: usize) -> Result<BTreeMap<u16, u64>> {
    ensure!(pages.len().is_multiple_of(page), "the trace does not consist of whole pages");
    let mut counts = BTreeMap::new();
    for page in pages.chunks(page) {
        let length = page.get(8..HEADER).and_then(|bytes| bytes.try_into().ok());
        let length = u64::from_le_bytes(length.context("a page has no header")?) & LENGTH;
        let data = page.get(HEADER..HEADER + usize::try_from(length)?);
        count_page(data.context("the length of a page exceeds its size")?, &mut counts)?;
    }
    Ok(counts)
}

/// Each event header has five bits of type or length in words and 27 bits of time; a length may
/// follow.
fn count_page(data: &[u8], counts: &mut BTreeMap<u16, u64>) -> Result<()> {
    let mut at = 0;
    while at < data.len() {
        let head = word(data, at)?;
        let (kind, delta) = (head & 31, head >> 5);
        let words = match kind {
            // a separate length, which includes itself
            0 => {
                *counts.entry(id(data, at + 8)?).or_default() += 1;
                word(data, at + 4)?.div_ceil(4) + 1
            }
            // the rest of the page, or a discarded event
            PADDING if delta == 0 => return Ok(()),
            PADDING => word(data, at + 4)?.div_ceil(4) + 1,
            TIME_EXTEND | TIME_STAMP => 2,
            length => {
                *counts.entry(id(data, at + 4)?).or_default() += 1;
                length + 1
            }
        };
        at += 4 * usize::try_from(words)?;
        ensure!(at <= data.len(), "an event is cut short");
    }
    Ok(())
}

fn word(data: &[u8], at: usize) -> Result<u32> {
    let bytes = data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok());
    Ok(u32::from_le_bytes(bytes.context("an event is cut short")?))
}

/// The id, the first field of every event.
fn id(data: &[u8], at: usize) -> Result<u16> {
    let bytes = data.get(at..at + 2).and_then(|bytes| bytes.try_into().ok());
    Ok(u16::from_le_bytes(bytes.context("an event is cut short")?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(events: &[u32], flags: u64) -> Vec<u8> {
        let mut page = 1_u64.to_le_bytes().to_vec();
        page.extend(((4 * events.len() as u64) | flags).to_le_bytes());
        page.extend(events.iter().flat_map(|word| word.to_le_bytes()));
        page.resize(128, 0xaa);
        page
    }

    #[test]
    fn events_of_every_form_are_walked_over() {
        let events = [
            // two words of event 7, a time, a long one of event 9 with 9 bytes, a discarded one
            2 | 5 << 5,
            0x1234_0007,
            0,
            TIME_EXTEND,
            0,
            0,
            12,
            9,
            0,
            PADDING | 1 << 5,
            8,
            0,
            // one word of event 7, then padding
            1,
            7,
            PADDING,
            0xffff_ffff,
        ];
        let mut pages = page(&events, 0x8000_0000);
        pages.extend(page(&[1, 9], 0));
        assert_eq!(count(&pages, 128).unwrap(), BTreeMap::from([(7, 2), (9, 2)]));
    }

    #[test]
    fn what_is_no_page_is_an_error() {
        assert!(count(&[0; 100], 128).is_err());
        assert!(count(&page(&[2, 7], 0), 128).is_err(), "cut short");
        assert!(count(&page(&[1, 7], 0x1000), 128).is_err(), "too long");
    }
}
