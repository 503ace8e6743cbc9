//! Record sources: the only place that knows which ones exist.

use std::ffi::OsString;
use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use proctrace_broker::{BrokerError, Request, listens, request, socket_path};
use proctrace_probe::{
    EbpfOptions, LookupHook, Probe, ProbeError, cgroup_id, check_own_pids, forbids_bpf,
};
use proctrace_ptrace::{PtraceOptions, Traced};
use proctrace_record::{Options, Scope, Source};
use proctrace_wire::escape::to_text;

use crate::say;

/// A source, with the options specific to it.
#[derive(Debug)]
pub enum Backend {
    /// BPF programs in the kernel.
    Ebpf(EbpfOptions),
    /// The same, loaded by the broker that listens there.
    Broker(EbpfOptions, PathBuf),
    /// A process that traces by ptrace(2).
    Ptrace(PtraceOptions),
    /// The first of these that this user may use on this kernel.
    Auto(EbpfOptions, PathBuf, PtraceOptions),
}

impl Backend {
    /// BPF programs or nothing: what is recorded is beyond what a broker or ptrace can do.
    pub fn ebpf_only(self) -> Result<Self> {
        match self {
            Self::Ebpf(options) | Self::Auto(options, ..) => Ok(Self::Ebpf(options)),
            Self::Broker(..) | Self::Ptrace(_) => {
                bail!("--per-cgroup needs root, and BPF programs that this process loads itself")
            }
        }
    }

    /// Prepares the source to record what `wanted` selects. Unless `quiet`, prints what a source costs
    /// that changes the behaviour of the payload. `command` is what is launched, for the broker's log.
    pub fn load(
        &self,
        wanted: &Options,
        command: &[OsString],
        quiet: bool,
    ) -> Result<Box<dyn Source>> {
        Ok(match self {
            Self::Ebpf(options) => Box::new(Probe::load(wanted, options)?),
            Self::Broker(options, socket) => Box::new(brokered(wanted, options, socket, command)?),
            Self::Ptrace(options) => Box::new(traced(wanted, options, quiet)?),
            Self::Auto(ebpf, socket, ptrace) => match Probe::load(wanted, ebpf) {
                Ok(probe) => Box::new(probe),
                Err(error) if is_refused(&error) => {
                    self.without_privileges(wanted, command, quiet, (ebpf, socket, ptrace), error)?
                }
                Err(error) => return Err(error.into()),
            },
        })
    }

    /// Opens a source by the broker, or else by ptrace. `error` is why eBPF cannot be used directly.
    fn without_privileges(
        &self,
        wanted: &Options,
        command: &[OsString],
        quiet: bool,
        (ebpf, socket, ptrace): (&EbpfOptions, &PathBuf, &PtraceOptions),
        error: ProbeError,
    ) -> Result<Box<dyn Source>> {
        // A broker loads no programs that only measure.
        let refusal = match ebpf.empty_programs {
            true => None,
            false => match brokered(wanted, ebpf, socket, command) {
                Ok(probe) => {
                    if !quiet {
                        say::note(
                            "by the broker: what this user runs; no arguments of set-user-ID programs",
                        );
                    }
                    return Ok(Box::new(probe));
                }
                Err(refusal) => Some(refusal),
            },
        };
        let is_absent = |refusal: &anyhow::Error| {
            matches!(refusal.downcast_ref(), Some(BrokerError::Absent { .. }))
        };
        let refusal = refusal.filter(|refusal| !is_absent(refusal));
        if !needs_no_ebpf(wanted, ebpf) {
            return Err(refusal.unwrap_or_else(|| error.into()));
        }
        let is_said = |refusal: &anyhow::Error| {
            matches!(refusal.downcast_ref(), Some(ProbeError::Forbidden { .. }))
                && matches!(error, ProbeError::Forbidden { .. })
        };
        if let Some(refusal) = refusal.filter(|refusal| !is_said(refusal)) {
            say::note(&format!("{refusal:#}"));
        }
        // Who may load programs wants to know why they do not load.
        if !matches!(error, ProbeError::NotPermitted { .. }) {
            say::note(&format!("without eBPF: {:#}", anyhow::Error::from(error)));
        }
        Ok(Box::new(traced(wanted, ptrace, quiet)?))
    }
}

fn brokered(
    wanted: &Options,
    options: &EbpfOptions,
    socket: &Path,
    command: &[OsString],
) -> Result<Probe> {
    let words: Vec<_> = command.iter().map(|word| to_text(word.as_bytes())).collect();
    // No more than the log shows.
    let command: String = words.join(" ").chars().take(300).collect();
    let cgroup = wanted.cgroup.as_deref().map(cgroup_id).transpose()?;
    let directory = match &wanted.cgroup {
        Some(path) => {
            Some(File::open(path).with_context(|| format!("cannot open {}", path.display()))?)
        }
        None => None,
    };
    check_own_pids(wanted)?;
    // It would load programs whose buffers cannot be read here.
    if forbids_bpf() {
        listens(socket)?;
        return Err(ProbeError::Forbidden { call: "buffers of the broker" }.into());
    }
    let asked = Request::of(wanted, options, cgroup, command);
    let (readable, connection) = request(socket, &asked, directory.as_ref().map(AsFd::as_fd))?;
    Ok(Probe::of_other(readable, wanted, options, ("broker", Box::new(connection)))?)
}

fn traced(wanted: &Options, options: &PtraceOptions, quiet: bool) -> Result<Traced> {
    let traced = Traced::start(wanted, options)?;
    if !quiet {
        say::note(match traced.stops_at_lookups() {
            true => {
                "by ptrace: each process and look-up takes longer; no set-user-ID, no leak checks (LSan)"
            }
            false => {
                "by ptrace: each process takes longer; no look-ups, no set-user-ID, no leak checks (LSan)"
            }
        });
    }
    Ok(traced)
}

/// Returns whether the error means that this user or this kernel cannot use eBPF at all.
fn is_refused(error: &ProbeError) -> bool {
    use ProbeError::{Forbidden, Load, NoBtf, NoHook, NoTaskStorage, NotPermitted};
    matches!(
        error,
        NotPermitted { .. }
            | Forbidden { .. }
            | NoBtf(_)
            | NoTaskStorage(_)
            | NoHook { .. }
            | Load(_)
    )
}

/// Returns whether no option requests what only eBPF can do.
fn needs_no_ebpf(wanted: &Options, ebpf: &EbpfOptions) -> bool {
    wanted.scope == Scope::Launched
        && wanted.cgroup.is_none()
        && ebpf.lookup_hook == LookupHook::Auto
        && !ebpf.empty_programs
}

/// Asks a broker for the smallest recording, and gives it back at once.
///
/// # Errors
/// Why this user gets none, or cannot use it.
pub fn try_broker(socket: &Path) -> Result<()> {
    let smallest = EbpfOptions { ring_bytes: 4096, ..EbpfOptions::default() };
    let name = ["proctrace", "doctor"].map(OsString::from);
    brokered(&Options::default(), &smallest, socket, &name).map(drop)
}

/// The socket to ask: the one named on the command line, or that of the environment, or the usual one.
pub fn broker_socket(named: Option<&Path>) -> PathBuf {
    socket_path(named, std::env::var_os("PROCTRACE_BROKER"))
}

impl Default for Backend {
    fn default() -> Self {
        Self::Auto(EbpfOptions::default(), broker_socket(None), PtraceOptions::default())
    }
}
