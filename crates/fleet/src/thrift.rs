//! Reads the compact protocol of Thrift, in which Parquet describes itself.
//!
//! <https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md>. Nothing is
//! allocated for what a length says, but only for what is there.

/// Maximum depth of structures in structures. parquet.thrift has five.
const DEPTH_MAX: u32 = 12;
/// Elements of all lists together: a file of many row groups has some 100,000.
const ELEMENTS_MAX: u64 = 1 << 20;

/// The bytes are no structure, or a larger one than any file of ours has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Damaged;

/// A value; of texts and floating-point numbers only that they are there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value {
    Number(i64),
    Other,
    List(Vec<Value>),
    Struct(Vec<(i64, Value)>),
}

impl Value {
    fn field(&self, number: i64) -> Option<&Value> {
        match self {
            Self::Struct(fields) => {
                // A reader takes the last of several.
                fields.iter().rev().find(|(at, _)| *at == number).map(|(_, value)| value)
            }
            _ => None,
        }
    }

    /// A field that is a number and not negative.
    pub(crate) fn number(&self, number: i64) -> Option<u64> {
        match self.field(number)? {
            Self::Number(value) => u64::try_from(*value).ok(),
            _ => None,
        }
    }

    /// A field that is a structure.
    pub(crate) fn structure(&self, number: i64) -> Option<&Value> {
        self.field(number).filter(|value| matches!(value, Self::Struct(_)))
    }

    /// The elements of a field that is a list; none if it is not there.
    pub(crate) fn structures(&self, number: i64) -> &[Value] {
        match self.field(number) {
            Some(Self::List(values)) => values,
            _ => &[],
        }
    }
}

/// Reads values from bytes.
pub(crate) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    elements: u64,
}

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const BYTE: u8 = 3;
const I16: u8 = 4;
const I64: u8 = 6;
const DOUBLE: u8 = 7;
const BINARY: u8 = 8;
const LIST: u8 = 9;
const SET: u8 = 10;
const STRUCT: u8 = 12;

impl<'a> Reader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, elements: 0 }
    }

    /// Bytes that were read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    /// A structure, with its fields in their order.
    pub(crate) fn structure(&mut self) -> Result<Value, Damaged> {
        self.fields(0)
    }

    fn fields(&mut self, depth: u32) -> Result<Value, Damaged> {
        let mut fields = Vec::new();
        let mut number = 0_i64;
        loop {
            let head = self.byte()?;
            if head == STOP {
                return Ok(Value::Struct(fields));
            }
            number = match i64::from(head >> 4) {
                0 => unzigzag(self.varint()?),
                more => number.checked_add(more).ok_or(Damaged)?,
            };
            let value = match head & 0xf {
                TRUE => Value::Number(1),
                FALSE => Value::Number(0),
                kind => self.value(kind, depth)?,
            };
            fields.push((number, value));
        }
    }

    fn value(&mut self, kind: u8, depth: u32) -> Result<Value, Damaged> {
        let depth = depth + 1;
        if depth > DEPTH_MAX {
            return Err(Damaged);
        }
        match kind {
            TRUE | FALSE | BYTE => Ok(Value::Number(i64::from(self.byte()?))),
            I16..=I64 => Ok(Value::Number(unzigzag(self.varint()?))),
            DOUBLE => self.skip(8),
            BINARY => {
                let length = self.varint()?;
                self.skip(length)
            }
            LIST | SET => self.list(depth),
            STRUCT => self.fields(depth),
            // parquet.thrift has no maps.
            _ => Err(Damaged),
        }
    }

    fn list(&mut self, depth: u32) -> Result<Value, Damaged> {
        let head = self.byte()?;
        let count = match u64::from(head >> 4) {
            15 => self.varint()?,
            count => count,
        };
        self.elements = self.elements.saturating_add(count);
        if self.elements > ELEMENTS_MAX {
            return Err(Damaged);
        }
        let mut values = Vec::new();
        for _ in 0..count {
            values.push(self.value(head & 0xf, depth)?);
        }
        Ok(Value::List(values))
    }

    fn byte(&mut self) -> Result<u8, Damaged> {
        let byte = *self.bytes.get(self.at).ok_or(Damaged)?;
        self.at += 1;
        Ok(byte)
    }

    fn skip(&mut self, length: u64) -> Result<Value, Damaged> {
        let length = usize::try_from(length).map_err(|_| Damaged)?;
        let end = self.at.checked_add(length).filter(|end| *end <= self.bytes.len());
        self.at = end.ok_or(Damaged)?;
        Ok(Value::Other)
    }

    fn varint(&mut self) -> Result<u64, Damaged> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(Damaged)
    }
}

fn unzigzag(value: u64) -> i64 {
    (value >> 1).cast_signed() ^ -(value & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_structure_has_its_fields() {
        // 1: -1, 2: "ab", 3: [1, 2], 20: {1: true}
        let bytes = [0x15, 1, 0x18, 2, b'a', b'b', 0x19, 0x25, 2, 4, 0x0c, 40, 0x11, 0, 0, 0xff];
        let mut reader = Reader::new(&bytes);
        let read = reader.structure().expect("a structure");
        assert_eq!(reader.position(), bytes.len() - 1);
        assert_eq!(read.number(1), None, "it is negative");
        assert_eq!(read.field(2), Some(&Value::Other));
        assert_eq!(read.structures(3), [Value::Number(1), Value::Number(2)]);
        assert_eq!(read.structure(20).and_then(|it| it.number(1)), Some(1));
        for end in 0..bytes.len() - 1 {
            assert_eq!(Reader::new(&bytes[..end]).structure(), Err(Damaged), "{end}");
        }
    }

    #[test]
    fn lengths_are_not_believed() {
        // A text and a list of 2^63 elements, and structures without an end.
        let long = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f];
        for head in [&[0x18][..], &[0x19, 0xfc]] {
            assert_eq!(Reader::new(&[head, &long].concat()).structure(), Err(Damaged));
        }
        assert_eq!(Reader::new(&[0x1c; 1_000_000]).structure(), Err(Damaged));
        assert_eq!(unzigzag(u64::MAX), i64::MIN);
    }
}
