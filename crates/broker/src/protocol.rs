//! Requests of recorders and their answers: JSON texts, one packet each.

use std::time::Duration;

use proctrace_probe::{
    ENV_NAME_MAX, ENV_NAMES_MAX, EbpfOptions, LookupHook, MAPS, OnFull, PIDS_MAX,
    ProgramStatistics, Readable,
};
use proctrace_record::{Misses, Options, Scope, nanoseconds};
use proctrace_trace::{Hook, Program};
use proctrace_wire::{Family, WIRE_VERSION};
use serde::{Deserialize, Serialize};

/// Version of the protocol, and of what both sides must know of the maps beyond the records.
///
/// * 2: programs and links stay with the broker, which is asked for statistics and told to detach.
pub(crate) const PROTOCOL: u32 = 2;

/// Maximum size of a request, which has at most 1,024 pids and 32 names.
pub(crate) const REQUEST_BYTES_MAX: usize = 32 << 10;

/// Maximum size of an answer, which has a few dozen names.
pub(crate) const ANSWER_BYTES_MAX: usize = 32 << 10;

/// SCM_MAX_FD of linux/net/scm.h.
pub(crate) const DESCRIPTORS_MAX: usize = 253;

/// Bytes of a ring that can be asked for at all; [`Limits`](crate::Limits) has that of a user.
const RING_BYTES_MAX: u32 = 1 << 30;

/// Bytes of a packet of a recorder whose request was granted.
pub(crate) const TURN_BYTES_MAX: usize = 64;

/// A list of programs, two dozen numbers each.
pub(crate) const STATISTICS_BYTES_MAX: usize = 64 << 10;

/// The request of a recorder. It contains no path; with a cgroup comes the descriptor of its
/// directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Version of this protocol.
    pub protocol: u32,
    /// Version of the records that the recorder understands.
    pub wire_version: u32,
    /// The processes to record.
    pub scope: Which,
    /// The id of a cgroup whose members are recorded as well.
    pub cgroup: Option<u64>,
    /// The families of calls whose failures are recorded, by name.
    pub misses: Vec<String>,
    /// True if opens that succeed are recorded.
    pub opens: bool,
    /// Waits of at least this many nanoseconds are recorded; none: no waits.
    pub waits_min_ns: Option<u64>,
    /// One look-up in this many is timed.
    pub time_one_in: Option<u32>,
    /// The environment variables to record.
    pub env_names: Vec<String>,
    /// Bytes of each of the two large rings.
    pub ring_bytes: u32,
    /// True if the payload waits when a ring is full. A broker makes nobody wait.
    pub block_when_full: bool,
    /// The hook for failed look-ups. A broker takes the cheapest.
    pub lookup_hook: HookChoice,
    /// The command, as the recorder calls it: for the log only.
    pub command: String,
}

/// The processes that are recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Which {
    /// The one that the recorder starts next.
    Launched,
    /// Those with these pids, as the recorder sees them.
    Pids(Vec<u32>),
    /// All that its user may trace.
    All,
}

/// The hook for failed look-ups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HookChoice {
    /// The cheapest.
    Auto,
    /// Functions.
    Fexit,
    /// The tracepoints of calls.
    Tracepoint,
    /// The tracepoint of all calls.
    SysExit,
}

/// The answer of a broker. With [`Granted`] come the descriptors: the maps in the order of [`MAPS`], then
/// the links of iterators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The programs are loaded.
    Granted(Granted),
    /// They are not, for this reason.
    Refused(String),
}

/// Description of the descriptors of an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The hooks in use.
    pub hooks: Vec<Hook>,
    /// The names of the programs of the iterators.
    pub iterators: Vec<String>,
}

/// Message of a recorder once its request was granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Turn {
    /// It has the descriptors; without an answer.
    Taken,
    /// It asks for statistics of the programs.
    Statistics,
    /// The programs are to be detached; answered with their last statistics.
    Detach,
}

/// Statistics of a program, as they are sent.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Statistics {
    program: Program,
    recursion_misses: u64,
}

impl From<ProgramStatistics> for Statistics {
    fn from(known: ProgramStatistics) -> Self {
        Self { program: known.program, recursion_misses: known.recursion_misses }
    }
}

impl From<Statistics> for ProgramStatistics {
    fn from(sent: Statistics) -> Self {
        Self { program: sent.program, recursion_misses: sent.recursion_misses }
    }
}

/// A request, as the loader takes it.
pub(crate) struct Order {
    pub(crate) options: Options,
    pub(crate) ebpf: EbpfOptions,
}

impl Request {
    /// The request of a recorder with these options. `cgroup` is the id of the one in the options.
    #[must_use]
    pub fn of(options: &Options, ebpf: &EbpfOptions, cgroup: Option<u64>, command: String) -> Self {
        Self {
            protocol: PROTOCOL,
            wire_version: WIRE_VERSION,
            scope: match &options.scope {
                Scope::Launched => Which::Launched,
                Scope::Pids(pids) => Which::Pids(pids.clone()),
                Scope::All | Scope::Jobs(_) => Which::All,
            },
            cgroup,
            misses: options.misses.families().map(|family| family.name().to_owned()).collect(),
            opens: options.opens,
            waits_min_ns: options.waits_min.map(nanoseconds),
            time_one_in: options.time_one_in,
            env_names: options.env_names.clone(),
            ring_bytes: ebpf.ring_bytes,
            block_when_full: ebpf.on_full == OnFull::Block,
            lookup_hook: match ebpf.lookup_hook {
                LookupHook::Auto => HookChoice::Auto,
                LookupHook::Fexit => HookChoice::Fexit,
                LookupHook::Tracepoint => HookChoice::Tracepoint,
                LookupHook::SysExit => HookChoice::SysExit,
            },
            command,
        }
    }

    /// Reads a request that anybody may have sent, and that can be served.
    ///
    /// # Errors
    /// The reason to refuse it.
    pub fn read(bytes: &[u8]) -> Result<Self, String> {
        let request: Self =
            serde_json::from_slice(bytes).map_err(|error| format!("not a request: {error}"))?;
        if request.protocol != PROTOCOL || request.wire_version != WIRE_VERSION {
            return Err(format!(
                "the recorder is of another version (protocol {} with records {}; the broker has {} with {})",
                request.protocol, request.wire_version, PROTOCOL, WIRE_VERSION
            ));
        }
        if !request.ring_bytes.is_power_of_two()
            || !(4096..=RING_BYTES_MAX).contains(&request.ring_bytes)
        {
            return Err(format!("a ring of {} bytes", request.ring_bytes));
        }
        if request.env_names.len() > ENV_NAMES_MAX
            || request.env_names.iter().any(|name| name.len() > ENV_NAME_MAX)
        {
            return Err("too many or too long names of environment variables".to_owned());
        }
        if matches!(&request.scope, Which::Pids(pids) if pids.len() > PIDS_MAX) {
            return Err("too many processes".to_owned());
        }
        if request.block_when_full {
            return Err("it lets no task wait for a recorder: use --on-full drop".to_owned());
        }
        if request.lookup_hook != HookChoice::Auto {
            return Err("it chooses the hook for failed look-ups itself".to_owned());
        }
        request.misses()?;
        Ok(request)
    }

    /// Bytes of all rings.
    pub(crate) fn rings_bytes(&self) -> u64 {
        3 * u64::from(self.ring_bytes)
    }

    fn misses(&self) -> Result<Misses, String> {
        let mut misses = Misses::NONE;
        for name in &self.misses {
            let family = Family::ALL.into_iter().find(|family| family.name() == name);
            misses =
                misses.with(family.ok_or_else(|| format!("no family of calls is named {name:?}"))?);
        }
        Ok(misses)
    }

    /// The options of the loader.
    ///
    /// # Errors
    /// The reason to refuse them.
    pub(crate) fn order(&self) -> Result<Order, String> {
        let misses = self.misses()?;
        Ok(Order {
            options: Options {
                scope: match &self.scope {
                    Which::Launched => Scope::Launched,
                    Which::Pids(pids) => Scope::Pids(pids.clone()),
                    Which::All => Scope::All,
                },
                misses,
                opens: self.opens,
                waits_min: self.waits_min_ns.map(Duration::from_nanos),
                time_one_in: self.time_one_in,
                env_names: self.env_names.clone(),
                ..Options::default()
            },
            ebpf: EbpfOptions { ring_bytes: self.ring_bytes, ..EbpfOptions::default() },
        })
    }
}

impl Granted {
    pub(crate) fn of(readable: &Readable) -> Self {
        let names = readable.iterators.iter().map(|(name, _)| name.clone());
        Self { hooks: readable.hooks.clone(), iterators: names.collect() }
    }

    /// Number of descriptors that must have come with it.
    pub(crate) fn descriptors(&self) -> usize {
        MAPS.len().saturating_add(self.iterators.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request::of(&Options::default(), &EbpfOptions::default(), None, "make -j8".to_owned())
    }

    #[test]
    fn a_request_arrives_as_it_was_sent() {
        let sent = request();
        let read = Request::read(&serde_json::to_vec(&sent).unwrap()).unwrap();
        assert_eq!(read, sent);
        let Order { options, ebpf } = read.order().unwrap();
        assert_eq!(ebpf, EbpfOptions::default());
        let defaults = Options::default();
        assert_eq!((options.misses, &options.scope), (defaults.misses, &defaults.scope));
        assert_eq!(
            (options.waits_min, options.time_one_in),
            (defaults.waits_min, defaults.time_one_in)
        );
        assert_eq!(options.env_names, defaults.env_names);
    }

    #[test]
    fn what_no_recorder_sends_is_refused() {
        let refused = |change: fn(&mut Request)| {
            let mut request = request();
            change(&mut request);
            let read = Request::read(&serde_json::to_vec(&request).unwrap());
            read.unwrap_err()
        };
        assert!(refused(|request| request.protocol += 1).contains("version"));
        assert!(refused(|request| request.block_when_full = true).contains("--on-full drop"));
        assert!(refused(|request| request.lookup_hook = HookChoice::SysExit).contains("hook"));
        assert!(refused(|request| request.wire_version += 1).contains("version"));
        assert!(refused(|request| request.ring_bytes = 5000).contains("ring"));
        assert!(refused(|request| request.ring_bytes = 1 << 31).contains("ring"));
        assert!(refused(|request| request.misses.push("x".to_owned())).contains("\"x\""));
        assert!(refused(|request| request.env_names = vec!["x".repeat(32)]).contains("names"));
        assert!(
            refused(|request| request.scope = Which::Pids(vec![1; 1025])).contains("processes")
        );
        assert!(Request::read(b"{}").unwrap_err().contains("protocol"));
        assert!(Request::read(&b"[".repeat(20_000)).is_err());
    }
}
