//! What a recorder asks for, and what it gets: one JSON text each way, one packet each.

use std::time::Duration;

use proctrace_probe::{
    ENV_NAME_MAX, ENV_NAMES_MAX, EbpfOptions, Loaded, LookupHook, MAPS, OnFull, PIDS_MAX,
};
use proctrace_record::{Misses, Options, Scope};
use proctrace_trace::Hook;
use proctrace_wire::{Family, WIRE_VERSION};
use serde::{Deserialize, Serialize};

/// Version of the protocol, and of what both sides must know of the maps beyond the records.
pub(crate) const PROTOCOL: u32 = 1;

/// A request has at most 1,024 pids and 32 names.
pub(crate) const REQUEST_BYTES_MAX: usize = 32 << 10;

/// An answer has a few dozen names.
pub(crate) const ANSWER_BYTES_MAX: usize = 32 << 10;

/// SCM_MAX_FD of linux/net/scm.h.
pub(crate) const DESCRIPTORS_MAX: usize = 253;

/// Bytes of a ring that can be asked for at all; [`Limits`](crate::Limits) has that of a user.
const RING_BYTES_MAX: u32 = 1 << 30;

/// What a recorder asks for. It contains no path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Version of this protocol.
    pub protocol: u32,
    /// Version of the records that the recorder understands.
    pub wire_version: u32,
    /// Which processes.
    pub scope: Which,
    /// The id of a cgroup whose members are recorded as well.
    pub cgroup: Option<u64>,
    /// The families of calls whose failures are recorded, by name.
    pub misses: Vec<String>,
    /// Whether opens that succeed are recorded.
    pub opens: bool,
    /// Waits of at least this many nanoseconds are recorded; none: no waits.
    pub waits_min_ns: Option<u64>,
    /// One look-up in this many is timed.
    pub time_one_in: Option<u32>,
    /// The environment variables to record.
    pub env_names: Vec<String>,
    /// Bytes of each of the two large rings.
    pub ring_bytes: u32,
    /// Whether the payload waits when a ring is full.
    pub block_when_full: bool,
    /// The hook for failed look-ups.
    pub lookup_hook: HookChoice,
    /// The command, as the recorder calls it: for the log only.
    pub command: String,
}

/// Which processes are recorded.
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

/// What a broker answers. With [`Granted`] come the descriptors: the maps in the order of
/// [`MAPS`], then programs, links, tracepoints and iterators.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// The programs are loaded.
    Granted(Granted),
    /// They are not, for this reason.
    Refused(String),
}

/// What the descriptors of an answer are.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Granted {
    /// The hooks in use.
    pub hooks: Vec<Hook>,
    /// The names of the programs.
    pub programs: Vec<String>,
    /// Number of links.
    pub links: usize,
    /// Number of tracepoints.
    pub tracepoints: usize,
    /// The names of the programs of the iterators.
    pub iterators: Vec<String>,
}

/// A request, as the loader takes it.
pub(crate) struct Order {
    pub(crate) options: Options,
    pub(crate) ebpf: EbpfOptions,
}

impl Request {
    /// What a recorder with these options asks for. `cgroup` is the id of the one in the options.
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
            waits_min_ns: options
                .waits_min
                .map(|least| u64::try_from(least.as_nanos()).unwrap_or(u64::MAX)),
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
            ebpf: EbpfOptions {
                ring_bytes: self.ring_bytes,
                on_full: if self.block_when_full { OnFull::Block } else { OnFull::Drop },
                lookup_hook: match self.lookup_hook {
                    HookChoice::Auto => LookupHook::Auto,
                    HookChoice::Fexit => LookupHook::Fexit,
                    HookChoice::Tracepoint => LookupHook::Tracepoint,
                    HookChoice::SysExit => LookupHook::SysExit,
                },
                ..EbpfOptions::default()
            },
        })
    }
}

impl Granted {
    pub(crate) fn of(loaded: &Loaded) -> Self {
        let names = |named: &[(String, _)]| named.iter().map(|(name, _)| name.clone()).collect();
        Self {
            hooks: loaded.hooks.clone(),
            programs: names(&loaded.programs),
            links: loaded.links.len(),
            tracepoints: loaded.tracepoints.len(),
            iterators: names(&loaded.iterators),
        }
    }

    /// Number of descriptors that must have come with it.
    pub(crate) fn descriptors(&self) -> usize {
        [MAPS.len(), self.programs.len(), self.links, self.tracepoints, self.iterators.len()]
            .into_iter()
            .fold(0, usize::saturating_add)
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
        assert!(refused(|request| request.protocol = 2).contains("version"));
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
