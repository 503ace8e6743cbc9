//! The end of a task, and what is kept of its exit record.

use proctrace_replay::Usage;
use proctrace_wire::layout::EXIT_RELEASED;

use crate::split::Ticks;

/// The end of a task.
#[derive(Debug, Clone, Copy)]
pub struct End {
    /// Time of the end.
    pub time_ns: u64,
    /// The rest of the exit record.
    pub record: Exit,
}

/// A byte count that the kernel keeps in multiples of `UNIT`, stored in two bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Units<const UNIT: u64>(u16);

impl<const UNIT: u64> TryFrom<u64> for Units<UNIT> {
    type Error = ();

    fn try_from(bytes: u64) -> Result<Self, ()> {
        let units = u16::try_from(bytes / UNIT).map_err(|_| ())?;
        bytes.is_multiple_of(UNIT).then_some(Self(units)).ok_or(())
    }
}

impl<const UNIT: u64> From<Units<UNIT>> for u64 {
    #[inline]
    fn from(units: Units<UNIT>) -> Self {
        Self::from(units.0) * UNIT
    }
}

/// A number stored in three bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreeBytes([u8; 3]);

impl TryFrom<u64> for ThreeBytes {
    type Error = ();

    fn try_from(number: u64) -> Result<Self, ()> {
        match number.to_le_bytes() {
            [a, b, c, 0, 0, 0, 0, 0] => Ok(Self([a, b, c])),
            _ => Err(()),
        }
    }
}

impl From<ThreeBytes> for u64 {
    #[inline]
    fn from(ThreeBytes([a, b, c]): ThreeBytes) -> Self {
        u32::from_le_bytes([a, b, c, 0]).into()
    }
}

macro_rules! kept_of_exit {
    ({ $($(#[$own_doc:meta])+ $own:ident: u32 as $own_tiny:ty,)+ } { $($counter:ident as $tiny:ty,)+ }) => {
        /// The counters of a task's exit record.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub struct Exit {
            /// CPU time that the kernel may have left out when the process was waited for: the last
            /// time slice of a task that was released before it had left its CPU.
            pub(crate) tail_ns: u64,
            $($(#[$own_doc])+ pub $own: u32,)+
            /// Its usage.
            pub used: Usage,
        }

        /// A compact form that suffices for most tasks: there may be millions of them. Packed, so that the bytes that
        /// say which form a task has fit beside it in 48.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[repr(Rust, packed(2))]
        pub struct TinyExit {
            /// Time from the task's birth to its end.
            pub(crate) life_ns: u32,
            tail_ns: ThreeBytes,
            $($own: $own_tiny,)+
            $($counter: $tiny,)+
        }

        impl Exit {
            /// `None` if a value does not fit.
            pub(crate) fn tiny(&self, life_ns: u64) -> Option<TinyExit> {
                Some(TinyExit {
                    life_ns: life_ns.try_into().ok()?,
                    tail_ns: self.tail_ns.try_into().ok()?,
                    $($own: self.$own.try_into().ok()?,)+
                    $($counter: self.used.$counter.try_into().ok()?,)+
                })
            }
        }

        impl From<&TinyExit> for Exit {
            #[inline]
            fn from(tiny: &TinyExit) -> Self {
                Self {
                    tail_ns: tiny.tail_ns.into(),
                    $($own: tiny.$own.into(),)+
                    used: Usage { $($counter: tiny.$counter.into(),)+ },
                }
            }
        }

        impl From<&proctrace_wire::layout::Exit> for Exit {
            fn from(record: &proctrace_wire::layout::Exit) -> Self {
                let released = record.bits & EXIT_RELEASED != 0;
                let tail_ns = record.run_ns.saturating_sub(record.run_at_exit_ns);
                Self {
                    tail_ns: if released { tail_ns } else { 0 },
                    $($own: record.$own,)+
                    used: record.into(),
                }
            }
        }
    };
}

impl TinyExit {
    /// CPU time and ticks only.
    #[inline]
    pub fn cpu(&self) -> (u64, Ticks) {
        let (user_ns, system_ns) = (self.utime_ns.into(), self.stime_ns.into());
        (self.run_ns.into(), Ticks { user_ns, system_ns })
    }

    /// Bytes read and written by system calls, and written to storage.
    #[inline]
    pub(crate) fn bytes(&self) -> [u64; 3] {
        [self.rchar.into(), self.wchar.into(), self.write_bytes.into()]
    }

    #[inline]
    pub(crate) fn tail_ns(&self) -> u64 {
        self.tail_ns.into()
    }
}

kept_of_exit! {
    {
        /// Successful opens.
        opens: u32 as u16,
        /// Failed look-ups, counted independently of their records.
        lookups_failed: u32 as u16,
        /// Failed execs, counted independently of their records.
        execs_failed: u32 as u8,
        /// Migrations to another CPU; 0 in traces before wire version 3.
        migrations: u32 as u8,
        /// Resident pages of files, if it was the last task of its process; 0 if not known.
        file_rss_pages: u32 as u16,
    }
    {
        run_ns as u32,
        utime_ns as u32,
        stime_ns as u32,
        nvcsw as u8,
        nivcsw as u8,
        minflt as u16,
        majflt as u8,
        rchar as ThreeBytes,
        wchar as ThreeBytes,
        read_bytes as Units<512>,
        write_bytes as Units<4096>,
        run_delay_ns as u32,
    }
}
