//! Types of a scenario's fields: each rejects invalid values at their position in the file.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected, Visitor};

/// A whole number from MIN to MAX.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Count<const MIN: u64, const MAX: u64>(pub(crate) u64);

impl<'de, const MIN: u64, const MAX: u64> Deserialize<'de> for Count<MIN, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Whole<const MIN: u64, const MAX: u64>;
        impl<const MIN: u64, const MAX: u64> Visitor<'_> for Whole<MIN, MAX> {
            type Value = u64;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "a whole number from {MIN} to {MAX}")
            }
            fn visit_u64<E: Error>(self, value: u64) -> Result<u64, E> {
                if (MIN..=MAX).contains(&value) {
                    Ok(value)
                } else {
                    Err(E::invalid_value(Unexpected::Unsigned(value), &self))
                }
            }
            fn visit_i64<E: Error>(self, value: i64) -> Result<u64, E> {
                match u64::try_from(value) {
                    Ok(value) => self.visit_u64(value),
                    Err(_) => Err(E::invalid_value(Unexpected::Signed(value), &self)),
                }
            }
        }
        deserializer.deserialize_u64(Whole::<MIN, MAX>).map(Self)
    }
}

/// Units of work, each about 0.1 ms at 3 GHz: 0 to a million, fractions allowed.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub(crate) struct Work(pub(crate) f64);

impl<'de> Deserialize<'de> for Work {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let units = f64::deserialize(deserializer)?;
        if (0.0..=1e6).contains(&units) {
            Ok(Self(units))
        } else {
            Err(D::Error::invalid_value(Unexpected::Float(units), &"a number from 0 to 1000000"))
        }
    }
}

/// Scale relative to the scenario's parameters: above 0, at most 100.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Scale(pub(crate) f64);

impl<'de> Deserialize<'de> for Scale {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let scale = f64::deserialize(deserializer)?;
        if scale > 0.0 && scale <= 100.0 {
            Ok(Self(scale))
        } else {
            Err(D::Error::invalid_value(Unexpected::Float(scale), &"a number above 0, at most 100"))
        }
    }
}

/// A valid file name: 1 to 64 of A-Z a-z 0-9 _ - . and no dot first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Name(pub(crate) String);

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = String::deserialize(deserializer)?;
        let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if (1..=64).contains(&name.len()) && name.chars().all(fits) && !name.starts_with('.') {
            Ok(Self(name))
        } else {
            let expected = "1 to 64 letters, digits, _, - and dots, not beginning with a dot";
            Err(D::Error::invalid_value(Unexpected::Str(&name), &expected))
        }
    }
}

/// The name of an O2 program, which must not collide with a program that a shell starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct O2Program(pub(crate) String);

impl<'de> Deserialize<'de> for O2Program {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Name(name) = Name::deserialize(deserializer)?;
        if name.starts_with("o2-") {
            Ok(Self(name))
        } else {
            Err(D::Error::invalid_value(Unexpected::Str(&name), &"a name that begins with o2-"))
        }
    }
}

/// A line of descriptive text: 1 to 1,000 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Line(pub(crate) String);

impl<'de> Deserialize<'de> for Line {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let line = String::deserialize(deserializer)?;
        if (1..=1000).contains(&line.len()) && !line.contains(char::is_control) {
            Ok(Self(line))
        } else {
            let expected = "1 to 1,000 bytes without control characters";
            Err(D::Error::invalid_value(Unexpected::Str(&line), &expected))
        }
    }
}

/// Arguments separated by blanks, which a shell passes on unchanged: 1 to 1,000 bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments(pub(crate) String);

impl<'de> Deserialize<'de> for Arguments {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let plain = |c: char| c.is_ascii_alphanumeric() || " -_=./,:+%".contains(c);
        if (1..=1000).contains(&text.len()) && text.chars().all(plain) {
            Ok(Self(text))
        } else {
            let expected = "1 to 1,000 letters, digits, blanks and - _ = . / , : + %";
            Err(D::Error::invalid_value(Unexpected::Str(&text), &expected))
        }
    }
}
