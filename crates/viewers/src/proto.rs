//! Encodes protobuf messages.

/// A message, or the content of one. Fields are written in the order of the calls.
#[derive(Debug, Default, Clone)]
pub(crate) struct Message {
    bytes: Vec<u8>,
}

/// Wire types of protobuf.
const VARINT: u32 = 0;
const FIXED64: u32 = 1;
const LENGTH: u32 = 2;

impl Message {
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    pub(crate) fn clear(&mut self) {
        self.bytes.clear();
    }

    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.varint(u64::from(field << 3 | wire_type));
    }

    pub(crate) fn uint(&mut self, field: u32, value: u64) {
        self.key(field, VARINT);
        self.varint(value);
    }

    pub(crate) fn int(&mut self, field: u32, value: i64) {
        self.uint(field, value.cast_unsigned());
    }

    pub(crate) fn flag(&mut self, field: u32, value: bool) {
        self.uint(field, value.into());
    }

    pub(crate) fn fixed64(&mut self, field: u32, value: u64) {
        self.key(field, FIXED64);
        self.bytes.extend(value.to_le_bytes());
    }

    pub(crate) fn double(&mut self, field: u32, value: f64) {
        self.fixed64(field, value.to_bits());
    }

    pub(crate) fn text(&mut self, field: u32, text: &str) {
        self.key(field, LENGTH);
        self.varint(text.len() as u64);
        self.bytes.extend_from_slice(text.as_bytes());
    }

    /// A message within this one.
    pub(crate) fn message(&mut self, field: u32, fill: impl FnOnce(&mut Self)) {
        self.key(field, LENGTH);
        let begin = self.bytes.len();
        fill(self);
        let length = self.bytes.len() - begin;
        let mut prefix = Self::default();
        prefix.varint(length as u64);
        self.bytes.splice(begin..begin, prefix.bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_those_of_the_specification() {
        // Examples from "Encoding" of the protobuf documentation.
        let mut message = Message::default();
        message.uint(1, 150);
        assert_eq!(message.bytes(), [0x08, 0x96, 0x01]);
        message.clear();
        message.text(2, "testing");
        assert_eq!(message.bytes(), b"\x12\x07testing");
        message.clear();
        message.message(3, |inner| inner.uint(1, 150));
        assert_eq!(message.bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        message.clear();
        message.int(1, -2);
        assert_eq!(message.bytes(), b"\x08\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01");
        message.clear();
        message.message(1, |inner| inner.text(1, &"x".repeat(200)));
        assert_eq!(message.bytes()[..6], [0x0a, 0xcb, 0x01, 0x0a, 0xc8, 0x01]);
        message.clear();
        message.fixed64(1, 1);
        assert_eq!(message.bytes(), b"\x09\x01\0\0\0\0\0\0\0");
    }
}
