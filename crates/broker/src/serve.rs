//! The service: accepts connections, loads programs, and hands them over.

use std::fmt;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use proctrace_probe::{Loaded, is_in_initial_pid_namespace};
use proctrace_wire::escape::to_text;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::process::{geteuid, getuid};

use crate::error::BrokerError;
use crate::limits::{Ledger, Limits};
use crate::peer::Peer;
use crate::protocol::{Answer, DESCRIPTORS_MAX, Granted, REQUEST_BYTES_MAX, Request, Which};
use crate::{passing, sandbox, socket};

/// Connections at a time, with those that have asked for nothing yet.
const CONNECTIONS_MAX: usize = 512;

/// Characters of a command in the log.
const COMMAND_MAX: usize = 200;

/// The options of the service.
#[derive(Debug, Clone, clap::Args)]
pub struct Arguments {
    /// Listen here; not needed if systemd passes a socket [default: /run/proctrace/broker.sock]
    #[arg(long, value_name = "PATH")]
    pub socket: Option<PathBuf>,
    /// Recordings that a user may have at a time
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().recordings_per_user)]
    pub recordings_per_user: usize,
    /// Recordings of all users at a time
    #[arg(long, value_name = "NUMBER", default_value_t = Limits::default().recordings)]
    pub recordings: usize,
    /// Kernel memory for the buffers of a user, in MiB
    #[arg(long, value_name = "MIB", default_value_t = Limits::default().ring_bytes_per_user >> 20)]
    pub buffers_per_user: u64,
    /// Serve without being root, by capabilities of the program's file: whoever may execute it then decides for whom
    #[arg(long)]
    pub allow_unprivileged: bool,
}

impl Arguments {
    fn limits(&self) -> Limits {
        Limits {
            recordings_per_user: self.recordings_per_user,
            recordings: self.recordings,
            ring_bytes_per_user: self.buffers_per_user.saturating_mul(1 << 20),
        }
    }
}

/// Serves recorders until the process is killed. `log` gets one line for each recording that begins, ends or is
/// refused.
///
/// # Errors
/// When it cannot listen, or could not load programs for anybody.
pub fn serve(
    arguments: &Arguments,
    log: Box<dyn Write + Send>,
) -> Result<std::convert::Infallible, BrokerError> {
    // The file of a recorder may have the capabilities that loading takes. They are for the recordings of its user.
    let is_root = getuid().is_root() && geteuid().is_root();
    if !is_root && !arguments.allow_unprivileged {
        let why = "only root serves others; --allow-unprivileged allows it to whoever has the capabilities";
        return Err(BrokerError::Unfit(why.to_owned()));
    }
    if !is_in_initial_pid_namespace()? {
        let why = "a broker must run in the initial pid namespace: there it knows the pids of its clients";
        return Err(BrokerError::Unfit(why.to_owned()));
    }
    let listening = match socket::from_systemd()? {
        Some(socket) => socket,
        None => {
            let default = PathBuf::from(crate::SOCKET);
            let path = arguments.socket.as_ref().unwrap_or(&default);
            if let Some(directory) = path.parent().filter(|_| arguments.socket.is_none()) {
                std::fs::create_dir_all(directory)
                    .map_err(BrokerError::system("create the directory of the socket"))?;
            }
            socket::listen_at(path)?
        }
    };
    let is_dated = std::env::var_os("JOURNAL_STREAM").is_some();
    sandbox::enter()?;
    let service = Arc::new(Service {
        limits: arguments.limits(),
        ledger: Mutex::default(),
        loading: Mutex::default(),
        log: Mutex::new(log),
        is_dated,
    });
    service.say(format_args!("ready"));
    loop {
        let connection = match socket::accept(listening.as_fd()) {
            Ok(connection) => connection,
            Err(error) => {
                // Out of descriptors or memory: others must give theirs back first.
                service.say(format_args!("cannot accept a connection: {error}"));
                std::thread::sleep(Duration::from_millis(100));
                continue;
            }
        };
        if Arc::strong_count(&service) > CONNECTIONS_MAX {
            let _ = refuse(connection.as_fd(), "too many connections".to_owned());
            continue;
        }
        let of_connection = Arc::clone(&service);
        let thread = std::thread::Builder::new().name("recording".to_owned());
        if let Err(error) = thread.spawn(move || of_connection.attend(&connection)) {
            service.say(format_args!("cannot start a thread: {error}"));
        }
    }
}

struct Service {
    limits: Limits,
    ledger: Mutex<Ledger>,
    /// Held while programs are loaded, which takes memory and a tenth of a second of CPU time.
    loading: Mutex<()>,
    log: Mutex<Box<dyn Write + Send>>,
    /// Whether whoever reads the log notes the time.
    is_dated: bool,
}

/// A recording, as its user's share of the limits.
struct Share<'a> {
    service: &'a Service,
    uid: u32,
    ring_bytes: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        lock(&self.service.ledger).end(self.uid, self.ring_bytes);
    }
}

impl Service {
    /// One connection, from its request until its recorder has ended.
    fn attend(&self, connection: &OwnedFd) {
        let connection = connection.as_fd();
        let peer = match Peer::of(connection) {
            Ok(peer) => peer,
            Err(why) => {
                self.say(format_args!("a client is refused: {why}"));
                let _ = refuse(connection, why);
                return;
            }
        };
        if let Err(why) = lock(&self.ledger).connect(&self.limits, peer.uid) {
            self.say(format_args!("{peer} is refused: {why}"));
            let _ = refuse(connection, why);
            return;
        }
        self.attend_peer(connection, &peer);
        lock(&self.ledger).disconnect(peer.uid);
    }

    fn attend_peer(&self, connection: BorrowedFd<'_>, peer: &Peer) {
        let begun = Instant::now();
        match self.hand_over(connection, peer) {
            Ok(share) => {
                wait_for_end(connection, peer.process.as_fd());
                drop(share);
                let lasted = Duration::from_millis(
                    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                );
                self.say(format_args!(
                    "{peer} has ended after {}",
                    humantime::format_duration(lasted)
                ));
            }
            Err(why) => {
                self.say(format_args!("{peer} is refused: {why}"));
                let _ = refuse(connection, why);
            }
        }
    }

    /// Serves a request.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn hand_over(&self, connection: BorrowedFd<'_>, peer: &Peer) -> Result<Share<'_>, String> {
        let (text, passed) = passing::receive(connection, REQUEST_BYTES_MAX)
            .map_err(|error| format!("no request: {error}"))?;
        if !passed.is_empty() {
            return Err("a request comes without descriptors".to_owned());
        }
        let request = Request::read(&text)?;
        let order = request.order()?;
        let (uid, ring_bytes) = (peer.uid, request.rings_bytes());
        lock(&self.ledger).begin(&self.limits, uid, ring_bytes)?;
        let share = Share { service: self, uid, ring_bytes };
        let loaded = {
            let _turn = lock(&self.loading);
            Loaded::load(&order.options, &order.ebpf, request.cgroup, &peer.caller)
        };
        let loaded = loaded.map_err(|error| with_causes(&error))?;
        let granted = Granted::of(&loaded);
        if granted.descriptors() > DESCRIPTORS_MAX {
            return Err("this kernel needs more hooks than can be handed over".to_owned());
        }
        let maps = loaded.maps.iter();
        let programs = loaded.programs.iter().map(|(_, program)| program);
        let iterators = loaded.iterators.iter().map(|(_, link)| link);
        let descriptors: Vec<BorrowedFd<'_>> = maps
            .chain(programs)
            .chain(&loaded.links)
            .chain(&loaded.tracepoints)
            .chain(iterators)
            .map(AsFd::as_fd)
            .collect();
        let answer =
            serde_json::to_vec(&Answer::Granted(granted)).map_err(|error| error.to_string())?;
        passing::send(connection, &answer, &descriptors)
            .map_err(|error| format!("it does not take the answer: {error}"))?;
        self.say(format_args!("{peer} records {}", Subject(&request)));
        // From here on only the recorder keeps the programs attached.
        Ok(share)
    }

    fn say(&self, what: fmt::Arguments<'_>) {
        let now = humantime::format_rfc3339_seconds(SystemTime::now());
        let mut log = lock(&self.log);
        // A log that cannot be written must not end recordings.
        let _ = match self.is_dated {
            true => writeln!(log, "proctrace-broker: {what}"),
            false => writeln!(log, "{now} proctrace-broker: {what}"),
        };
        let _ = log.flush();
    }
}

/// A recording counts until its connection is closed and its recorder has ended: with the connection alone a user
/// could close it, and keep the buffers.
fn wait_for_end(connection: BorrowedFd<'_>, process: BorrowedFd<'_>) {
    wait_for(connection, PollFlags::HUP);
    wait_for(process, PollFlags::IN);
}

fn wait_for(descriptor: BorrowedFd<'_>, event: PollFlags) {
    let mut polled = [PollFd::from_borrowed_fd(descriptor, event)];
    while let Err(Errno::INTR) | Ok(0) = poll(&mut polled, None) {}
}

fn refuse(connection: BorrowedFd<'_>, why: String) -> std::io::Result<()> {
    passing::send(connection, &serde_json::to_vec(&Answer::Refused(why))?, &[])
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "user {}, process {}", self.uid, self.pid)
    }
}

/// What a request is about, for the log.
struct Subject<'a>(&'a Request);

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.scope {
            // The client may have sent anything: one line, printable, and not too long.
            Which::Launched => {
                let cut: String = self.0.command.chars().take(COMMAND_MAX).collect();
                write!(f, "the command {}", to_text(cut.as_bytes()).escape_debug())
            }
            Which::Pids(pids) => write!(f, "processes {pids:?}"),
            Which::All => write!(f, "all that it may trace"),
        }
    }
}
