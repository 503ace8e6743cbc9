//! Usage and end of a task, stored compactly for most tasks.

use crate::exit::{End, Exit, TinyExit};
use crate::split::Ticks;
use proctrace_replay::Usage;

/// Usage and end of a task.
#[derive(Debug, Clone, Default)]
pub enum StoredUsage {
    #[default]
    Nothing,
    /// Nearly all tasks are short-lived, with small counters.
    Tiny(TinyExit),
    /// Tasks whose lifetime or counters do not fit there.
    Large(Box<End>),
    /// The few tasks that have more than an exit record.
    Rare(Box<Rare>),
}

/// Data that only a few tasks have.
#[derive(Debug, Clone, Copy, Default)]
pub struct Rare {
    end: Option<End>,
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
            Self::Large(end) => Some(end.record),
            Self::Rare(rare) => rare.end.map(|end| end.record),
        }
    }

    /// Time of the end of a task that was born then; `None` if it has not ended.
    #[inline]
    pub(crate) fn ended_ns(&self, born_ns: u64) -> Option<u64> {
        match self {
            Self::Nothing => None,
            Self::Tiny(tiny) => Some(born_ns + u64::from(tiny.life_ns)),
            Self::Large(end) => Some(end.time_ns),
            Self::Rare(rare) => rare.end.map(|end| end.time_ns),
        }
    }

    /// Keeps the end of a task that was born then.
    pub fn ends(&mut self, born_ns: u64, end: End) {
        if let Self::Rare(rare) = self {
            rare.end = Some(end);
            return;
        }
        // In a broken trace, a task may end before its birth.
        let life_ns = end.time_ns.checked_sub(born_ns);
        let tiny = life_ns.and_then(|life_ns| end.record.tiny(life_ns));
        *self = tiny.map_or_else(|| Self::Large(Box::new(end)), Self::Tiny);
    }

    /// CPU time and ticks of the usual task, followed from birth to end.
    #[inline]
    pub(crate) fn tiny_cpu(&self) -> Option<(u64, Ticks)> {
        match self {
            Self::Tiny(tiny) => Some(tiny.cpu()),
            _ => None,
        }
    }

    /// Bytes read and written by the usual task.
    #[inline]
    pub(crate) fn tiny_bytes(&self) -> Option<[u64; 3]> {
        match self {
            Self::Tiny(tiny) => Some(tiny.bytes()),
            _ => None,
        }
    }

    /// See [`Exit::tail_ns`].
    #[inline]
    pub(crate) fn tail_ns(&self) -> u64 {
        match self {
            Self::Nothing => 0,
            Self::Tiny(tiny) => tiny.tail_ns(),
            Self::Large(end) => end.record.tail_ns,
            Self::Rare(rare) => rare.end.map_or(0, |end| end.record.tail_ns),
        }
    }

    #[inline]
    pub fn rare(&self) -> Option<&Rare> {
        match self {
            Self::Rare(rare) => Some(rare),
            _ => None,
        }
    }

    /// What few tasks have, of a task that was born then.
    pub(crate) fn rare_mut(&mut self, born_ns: u64) -> &mut Rare {
        if !matches!(self, Self::Rare(_)) {
            let end = self.exit().zip(self.ended_ns(born_ns));
            let end = end.map(|(record, time_ns)| End { time_ns, record });
            let rare = Rare { end, ..Rare::default() };
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
        fn no_figure_is_too_large(
            mut bytes: [u8; size_of::<proctrace_wire::layout::Exit>()],
            zeros: u64,
            (born_ns, life_ns) in (0_u64..10, prop_oneof![0_u64..10, any::<u64>()]),
        ) {
            for (at, byte) in bytes.iter_mut().enumerate() {
                if at % 8 > 1 && zeros & (1 << (at % 64)) != 0 {
                    *byte = 0;
                }
            }
            let record = proctrace_wire::layout::Exit::read_from_bytes(&bytes).unwrap();
            let record = Exit::from(&record);
            // Also before its birth: traces may be broken.
            let time_ns = life_ns.saturating_add(born_ns / 2);
            let mut known = StoredUsage::default();
            prop_assert_eq!(known.ended_ns(born_ns), None);
            known.ends(born_ns, End { time_ns, record });
            prop_assert_eq!((known.exit(), known.ended_ns(born_ns)), (Some(record), Some(time_ns)));
            known.rare_mut(born_ns);
            prop_assert_eq!((known.exit(), known.ended_ns(born_ns)), (Some(record), Some(time_ns)));
            if let Some(tiny) = record.tiny(0) {
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
        (record.used.rchar, record.used.wchar) = (15 << 20, 1 << 20);
        (record.used.read_bytes, record.used.write_bytes) = (512, 1 << 20);
        (record.used.majflt, record.used.nvcsw, record.opens) = (1, 20, 300);
        let mut known = StoredUsage::default();
        let (born_ns, mut end) = (1 << 40, End { time_ns: (1 << 40) + 4_000_000_000, record });
        known.ends(born_ns, end);
        assert!(matches!(known, StoredUsage::Tiny(_)));
        end.record.used.run_ns += 1;
        known.ends(born_ns, end);
        assert!(matches!(known, StoredUsage::Large(_)));
        assert_eq!(end.record.used.run_ns, known.exit().unwrap().used.run_ns);
        assert!(size_of::<crate::task::Task>() <= 72, "{}", size_of::<crate::task::Task>());
        assert!(
            size_of::<crate::process::Process>() <= 80,
            "{}",
            size_of::<crate::process::Process>()
        );
    }
}
