//! Usage and end of a task, stored compactly for most tasks.

use crate::exit::{Exit, TinyExit};
use crate::split::Ticks;
use proctrace_replay::Usage;

/// Usage and end of a task.
#[derive(Debug, Clone, Default)]
pub enum StoredUsage {
    #[default]
    Nothing,
    /// Nearly all tasks are short-lived, with small counters.
    Tiny(TinyExit),
    /// Tasks whose counters do not fit there.
    Large(Box<Exit>),
    /// The few tasks that have more than an exit record.
    Rare(Box<Rare>),
}

/// Data that only a few tasks have.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rare {
    exit: Option<Exit>,
    /// Its last sample.
    pub seen: Option<proctrace_wire::layout::Sample>,
    /// Usage before it was followed.
    pub before: Option<Usage>,
}

impl StoredUsage {
    #[inline]
    pub fn exit(&self) -> Option<Exit> {
        match self {
            Self::Nothing => None,
            Self::Tiny(tiny) => Some(tiny.into()),
            Self::Large(record) => Some(**record),
            Self::Rare(rare) => rare.exit,
        }
    }

    #[inline]
    pub(crate) fn has_exit(&self) -> bool {
        match self {
            Self::Nothing => false,
            Self::Tiny(_) | Self::Large(_) => true,
            Self::Rare(rare) => rare.exit.is_some(),
        }
    }

    pub fn ends(&mut self, record: Exit) {
        if let Self::Rare(rare) = self {
            rare.exit = Some(record);
            return;
        }
        *self = record.tiny().map_or_else(|| Self::Large(Box::new(record)), Self::Tiny);
    }

    /// CPU time and ticks of the usual task, followed from birth to end.
    #[inline]
    pub(crate) fn tiny_cpu(&self) -> Option<(u64, Ticks)> {
        match self {
            Self::Tiny(tiny) => Some(tiny.cpu()),
            _ => None,
        }
    }

    /// See [`Exit::tail_ns`].
    #[inline]
    pub(crate) fn tail_ns(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Tiny(tiny) => tiny.tail_ns(),
            Self::Large(record) => record.tail_ns,
            Self::Rare(rare) => rare.exit.map_or(0, |record| record.tail_ns),
        }
    }

    #[inline]
    pub fn rare(&self) -> Option<&Rare> {
        match self {
            Self::Rare(rare) => Some(rare),
            _ => None,
        }
    }

    pub(crate) fn rare_mut(&mut self) -> &mut Rare {
        if !matches!(self, Self::Rare(_)) {
            let rare = Rare { exit: self.exit(), ..Rare::default() };
            *self = Self::Rare(Box::new(rare));
        }
        match self {
            Self::Rare(rare) => rare,
            _ => unreachable!("it was made one"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromBytes;

    proptest! {
        #[test]
        fn no_figure_is_too_large(mut bytes: [u8; size_of::<proctrace_wire::layout::Exit>()], zeros: u64) {
            for (at, byte) in bytes.iter_mut().enumerate() {
                if at % 8 > 1 && zeros & (1 << (at % 64)) != 0 {
                    *byte = 0;
                }
            }
            let record = proctrace_wire::layout::Exit::read_from_bytes(&bytes).unwrap();
            let record = Exit::from(&record);
            let mut known = StoredUsage::default();
            known.ends(record);
            prop_assert_eq!(known.exit(), Some(record));
            known.rare_mut();
            prop_assert_eq!(known.exit(), Some(record));
            if let Some(tiny) = record.tiny() {
                prop_assert_eq!(Exit::from(&tiny), record);
            }
        }
    }

    #[test]
    fn most_ends_are_tiny() {
        let zero = proctrace_wire::layout::Exit::read_from_bytes(
            &[0; size_of::<proctrace_wire::layout::Exit>()],
        );
        let mut record = Exit::from(&zero.unwrap());
        record.used.run_ns = u64::from(u32::MAX);
        (record.used.read_bytes, record.used.write_bytes) = (512, 1 << 20);
        (record.used.majflt, record.used.nvcsw, record.opens) = (1, 20, 300);
        let mut known = StoredUsage::default();
        known.ends(record);
        assert!(matches!(known, StoredUsage::Tiny(_)));
        record.used.run_ns += 1;
        known.ends(record);
        assert!(matches!(known, StoredUsage::Large(_)));
        assert_eq!(record.used.run_ns, known.exit().unwrap().used.run_ns);
        assert!(size_of::<crate::process::Task>() <= 80, "{}", size_of::<crate::process::Task>());
        assert!(
            size_of::<crate::process::Process>() <= 96,
            "{}",
            size_of::<crate::process::Process>()
        );
    }
}
