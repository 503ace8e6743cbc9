//! A recording as the sampler prmon would have written it.

use crate::table::Unit;

/// The rows of prmon.txt, and what prmon.json adds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Prmon {
    /// The known columns, in prmon's order. The first is `Time`, whose values are unique and ascend.
    pub columns: Vec<PrmonColumn>,
    /// The machine.
    pub machine: PrmonMachine,
    /// Version of the recorder.
    pub recorder: String,
}

/// A column.
#[derive(Debug, Clone, PartialEq)]
pub struct PrmonColumn {
    /// prmon's name.
    pub name: &'static str,
    /// One value per row: seconds, kB or bytes.
    pub values: Vec<u64>,
    /// The largest value, or of a sum the value at the end; None for `Time`.
    pub max: Option<u64>,
    /// The mean over all readings, or of transferred bytes the rate in B/s; None for times.
    pub average: Option<f64>,
    /// Its unit.
    pub unit: Unit,
}

/// The machine, as far as the recording tells.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PrmonMachine {
    /// Model name of the processor.
    pub model: Option<String>,
    /// Logical CPUs.
    pub cpus: Option<u32>,
    /// Sockets.
    pub sockets: Option<u32>,
    /// Cores of each socket.
    pub cores_per_socket: Option<u32>,
    /// Threads of each core.
    pub threads_per_core: Option<u32>,
    /// Memory.
    pub memory_bytes: u64,
}
