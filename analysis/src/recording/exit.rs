//! The end of a task, and what is kept of its record.

/// The end of a task.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// When.
    pub time_ns: u64,
    /// What else its record says.
    pub record: Exit,
}

/// What is kept of a task's end, if it has ended.
#[derive(Debug, Clone, Default)]
pub(crate) enum Ended {
    #[default]
    Not,
    /// Nearly all tasks are short, and all of their figures small.
    Small(SmallExit),
    Large(Box<Exit>),
}

impl Ended {
    pub(crate) fn new(record: Exit) -> Self {
        record.small().map_or_else(|| Self::Large(Box::new(record)), Self::Small)
    }

    #[inline]
    pub(crate) fn record(&self) -> Option<Exit> {
        match self {
            Self::Not => None,
            Self::Small(small) => Some(small.into()),
            Self::Large(record) => Some(**record),
        }
    }

    #[inline]
    pub(crate) fn is(&self) -> bool {
        !matches!(self, Self::Not)
    }
}

macro_rules! kept_of_exit {
    ($($(#[$doc:meta])+ $field:ident: $type:ty as $small:ty,)+) => {
        /// What is said of the end of a task, of its exit record.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Exit {
            $($(#[$doc])+ pub $field: $type,)+
        }

        /// The same in as few bytes as will do for most: there is one for each of a million tasks.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) struct SmallExit {
            $($field: $small,)+
        }

        impl Exit {
            /// None where a figure is too large.
            fn small(&self) -> Option<SmallExit> {
                Some(SmallExit { $($field: self.$field.try_into().ok()?,)+ })
            }
        }

        impl From<&SmallExit> for Exit {
            #[inline]
            fn from(small: &SmallExit) -> Self {
                Self { $($field: small.$field.into(),)+ }
            }
        }

        impl From<&proctrace_wire::layout::Exit> for Exit {
            fn from(record: &proctrace_wire::layout::Exit) -> Self {
                Self { $($field: record.$field,)+ }
            }
        }
    };
}

kept_of_exit! {
    /// Status as wait(2) gives it.
    status: u32 as u16,
    /// EXIT_* bits.
    bits: u32 as u16,
    /// Real parent when it exited.
    parent_tgid: i32 as i32,
    /// Successful opens.
    opens: u32 as u16,
    /// Failed look-ups, counted independently of their records.
    lookups_failed: u32 as u16,
    /// Failed execs, counted independently of their records.
    execs_failed: u32 as u16,
    /// Times it was moved to another CPU; 0 in traces before wire version 3.
    migrations: u32 as u16,
    /// CPU time, exact.
    run_ns: u64 as u32,
    /// CPU time when it began to exit, short of the last slice.
    run_at_exit_ns: u64 as u32,
    /// User time by ticks.
    utime_ns: u64 as u32,
    /// System time by ticks.
    stime_ns: u64 as u32,
    /// Voluntary context switches.
    nvcsw: u64 as u16,
    /// Involuntary context switches.
    nivcsw: u64 as u16,
    /// Minor faults.
    minflt: u64 as u32,
    /// Major faults.
    majflt: u64 as u16,
    /// Bytes read by system calls.
    rchar: u64 as u32,
    /// Bytes written by system calls.
    wchar: u64 as u32,
    /// Bytes read from storage.
    read_bytes: u64 as u32,
    /// Bytes written to storage.
    write_bytes: u64 as u32,
    /// Time spent runnable without a CPU.
    run_delay_ns: u64 as u32,
    /// Peak RSS of the task's own address space.
    maxrss_pages: u64 as u32,
    /// User time of children waited for.
    waited_utime_ns: u64 as u32,
    /// System time of children waited for.
    waited_stime_ns: u64 as u32,
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
            prop_assert_eq!(Ended::new(record).record(), Some(record));
            if let Some(small) = record.small() {
                prop_assert_eq!(Exit::from(&small), record);
            }
        }
    }

    #[test]
    fn most_ends_are_small() {
        let zero = proctrace_wire::layout::Exit::read_from_bytes(
            &[0; size_of::<proctrace_wire::layout::Exit>()],
        );
        let mut record = Exit::from(&zero.unwrap());
        record.run_ns = u64::from(u32::MAX);
        assert!(matches!(Ended::new(record), Ended::Small(_)));
        record.run_ns += 1;
        assert!(matches!(Ended::new(record), Ended::Large(_)));
        assert!(size_of::<crate::Task>() <= 128, "{}", size_of::<crate::Task>());
    }
}
