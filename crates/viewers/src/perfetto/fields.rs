//! Numbers of the fields of Perfetto's messages (protos/perfetto/trace), those that are written.

/// Trace and TracePacket.
pub(super) mod packet {
    /// Number of a packet in Trace.
    pub(crate) const OF_TRACE: u32 = 1;
    pub(crate) const FTRACE_EVENTS: u32 = 1;
    pub(crate) const CLOCK_SNAPSHOT: u32 = 6;
    pub(crate) const TIMESTAMP: u32 = 8;
    pub(crate) const SEQUENCE_ID: u32 = 10;
    pub(crate) const TRACK_EVENT: u32 = 11;
    pub(crate) const INTERNED_DATA: u32 = 12;
    pub(crate) const SEQUENCE_FLAGS: u32 = 13;
    pub(crate) const SYSTEM_INFO: u32 = 45;
    pub(crate) const TRACK_DESCRIPTOR: u32 = 60;
    /// SEQ_INCREMENTAL_STATE_CLEARED and SEQ_NEEDS_INCREMENTAL_STATE: interned names begin here,
    /// and are used.
    pub(crate) const STATE_CLEARED: u64 = 1;
    pub(crate) const NEEDS_STATE: u64 = 2;
}

/// ClockSnapshot and its clocks.
pub(super) mod clock {
    pub(crate) const CLOCKS: u32 = 1;
    pub(crate) const PRIMARY: u32 = 2;
    pub(crate) const ID: u32 = 1;
    pub(crate) const TIMESTAMP: u32 = 2;
    /// Values of BuiltinClock.
    pub(crate) const REALTIME: u64 = 1;
    pub(crate) const BOOTTIME: u64 = 6;
}

/// FtraceEventBundle, FtraceEvent and SchedProcessFreeFtraceEvent.
pub(super) mod ftrace {
    pub(crate) const CPU: u32 = 1;
    pub(crate) const EVENT: u32 = 2;
    pub(crate) const TIMESTAMP: u32 = 1;
    pub(crate) const PID: u32 = 2;
    pub(crate) const PROCESS_FREE: u32 = 240;
    pub(crate) const FREE_COMM: u32 = 1;
    pub(crate) const FREE_PID: u32 = 2;
}

/// SystemInfo.
pub(super) mod system {
    pub(crate) const UTSNAME: u32 = 1;
}

/// Utsname.
pub(super) mod utsname {
    pub(crate) const SYSNAME: u32 = 1;
    pub(crate) const RELEASE: u32 = 3;
    pub(crate) const MACHINE: u32 = 4;
}

/// TrackDescriptor.
pub(super) mod track {
    pub(crate) const UUID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
    pub(crate) const PROCESS: u32 = 3;
    pub(crate) const THREAD: u32 = 4;
    pub(crate) const PARENT: u32 = 5;
    pub(crate) const COUNTER: u32 = 8;
}

/// ProcessDescriptor.
pub(super) mod process {
    pub(crate) const PID: u32 = 1;
    pub(crate) const NAME: u32 = 6;
    pub(crate) const START: u32 = 7;
}

/// ThreadDescriptor.
pub(super) mod thread {
    pub(crate) const PID: u32 = 1;
    pub(crate) const TID: u32 = 2;
    pub(crate) const NAME: u32 = 5;
}

/// CounterDescriptor.
pub(super) mod counters {
    pub(crate) const UNIT: u32 = 3;
    pub(crate) const UNIT_NAME: u32 = 6;
    /// UNIT_SIZE_BYTES.
    pub(crate) const BYTES: u64 = 3;
}

/// TrackEvent.
pub(super) mod event {
    pub(crate) const ANNOTATION: u32 = 4;
    pub(crate) const TYPE: u32 = 9;
    pub(crate) const TRACK: u32 = 11;
    pub(crate) const CATEGORY: u32 = 22;
    pub(crate) const NAME: u32 = 23;
    pub(crate) const DOUBLE_VALUE: u32 = 44;
    pub(crate) const FLOW: u32 = 47;
    pub(crate) const TERMINATING_FLOW: u32 = 48;
    /// Types.
    pub(crate) const BEGIN: u64 = 1;
    pub(crate) const END: u64 = 2;
    pub(crate) const INSTANT: u64 = 3;
    pub(crate) const COUNTER: u64 = 4;
}

/// DebugAnnotation.
pub(super) mod annotation {
    pub(crate) const NAME_IID: u32 = 1;
    pub(crate) const BOOL: u32 = 2;
    pub(crate) const UINT: u32 = 3;
    pub(crate) const INT: u32 = 4;
    pub(crate) const STRING: u32 = 6;
    pub(crate) const ARRAY: u32 = 12;
}

/// InternedData and the names in it.
pub(super) mod interned {
    pub(crate) const ANNOTATION_NAMES: u32 = 3;
    pub(crate) const IID: u32 = 1;
    pub(crate) const NAME: u32 = 2;
}
