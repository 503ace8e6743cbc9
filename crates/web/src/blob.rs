//! A container of named byte strings behind a JSON header, deflated.

use std::io::{self, Write};

use flate2::Compression;
use flate2::write::ZlibEncoder;
use serde_json::{Value, json};

use crate::visible::visible_value;

/// A header, whose member `blobs` has the length of each byte string, and the byte strings.
#[derive(Debug, Default)]
pub(crate) struct Blob {
    lengths: Vec<usize>,
    bytes: Vec<u8>,
}

impl Blob {
    /// Adds a byte string and returns its number.
    pub(crate) fn add(&mut self, bytes: &[u8]) -> usize {
        self.lengths.push(bytes.len());
        self.bytes.extend_from_slice(bytes);
        self.lengths.len() - 1
    }

    /// The container: the length of the header in four bytes, little-endian, the header, the byte strings.
    pub(crate) fn deflated(self, mut header: Value) -> io::Result<Vec<u8>> {
        visible_value(&mut header);
        header["blobs"] = json!(self.lengths);
        let header = header.to_string();
        let length = u32::try_from(header.len()).map_err(io::Error::other)?;
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::new(6));
        encoder.write_all(&length.to_le_bytes())?;
        encoder.write_all(header.as_bytes())?;
        encoder.write_all(&self.bytes)?;
        encoder.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read as _;

    #[test]
    fn a_header_is_followed_by_its_byte_strings() {
        let mut blob = Blob::default();
        assert_eq!((blob.add(b"one"), blob.add(b""), blob.add(b"three")), (0, 1, 2));
        let deflated = blob.deflated(json!({"name": "a\u{2028}"})).unwrap();
        let mut all = Vec::new();
        flate2::read::ZlibDecoder::new(&*deflated).read_to_end(&mut all).unwrap();
        let (length, rest) = all.split_at(4);
        let length = u32::from_le_bytes(length.try_into().unwrap()) as usize;
        let header: Value = serde_json::from_slice(&rest[..length]).unwrap();
        assert_eq!(header, json!({"name": "a\\u{2028}", "blobs": [3, 0, 5]}));
        assert_eq!(&rest[length..], b"onethree");
    }
}
