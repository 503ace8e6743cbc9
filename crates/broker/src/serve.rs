//! The service: accepts connections, loads programs, and hands them over.

use std::fmt;
use std::io::Write;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use proctrace_probe::{Loaded, MapId, TaskRecords, Tracefs, is_in_initial_pid_namespace};
use proctrace_wire::escape::to_text;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::net::{Shutdown, shutdown};
use rustix::process::{Resource, geteuid, getrlimit, getuid, setrlimit};

use crate::error::BrokerError;
use crate::keeper::Keeper;
use crate::limits::{Ledger, Limits};
use crate::log::Log;
use crate::peer::{Client, Peer};
use crate::protocol::{
    Answer, DESCRIPTORS_MAX, Granted, REQUEST_BYTES_MAX, Request, TURN_BYTES_MAX, Turn, Which,
};
use crate::sandbox::Role;
use crate::{cgroup, passing, sandbox, socket};

/// Connections at a time, with those that have asked for nothing yet.
const CONNECTIONS_MAX: usize = 512;

/// Characters of a command in the log.
const COMMAND_MAX: usize = 200;

/// Characters of a reason to refuse a request.
const REASON_MAX: usize = 300;

/// Interval at which the kernel is asked whether an ended recording is still in use; the programs of a recording are
/// gone some grace periods after its end.
const JUST_ENDED: Duration = Duration::from_millis(20);

/// The same for those that are in use after all, and how long it takes to say so.
const LEFT_OVER: Duration = Duration::from_secs(2);

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
    let given = socket::from_systemd()?;
    sandbox::check()?;
    raise_descriptors();
    let keeper = Keeper::start()?;
    let records = TaskRecords::load()?;
    // Nothing can be mounted later. Without it, look-ups have another hook.
    let tracefs = Tracefs::open().ok();
    let listening = match given {
        Some(socket) => socket,
        None => listen(arguments)?,
    };
    let is_dated = std::env::var_os("JOURNAL_STREAM").is_some();
    sandbox::enter(Role::Broker)?;
    let service = Arc::new(Service {
        limits: arguments.limits(),
        ledger: Mutex::default(),
        loading: Mutex::default(),
        records: Mutex::new(records),
        tracefs,
        keeper,
        log: Mutex::new(Log::new(log, is_dated)),
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
        if service.keeper.has_ended() {
            let why = "the process that keeps programs attached has ended; start the broker anew";
            // If its request were not read, the client would be told of that instead (ECONNRESET).
            let _ = passing::receive(connection.as_fd(), REQUEST_BYTES_MAX);
            let _ = refuse(connection.as_fd(), why.to_owned());
            return Err(BrokerError::Unfit(why.to_owned()));
        }
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

/// Listens where it is told to, or at the usual place, whose directory is created.
fn listen(arguments: &Arguments) -> Result<OwnedFd, BrokerError> {
    let default = PathBuf::from(crate::SOCKET);
    let path = arguments.socket.as_ref().unwrap_or(&default);
    if let Some(directory) = path.parent().filter(|_| arguments.socket.is_none()) {
        std::fs::create_dir_all(directory)
            .map_err(BrokerError::system("create the directory of the socket"))?;
    }
    socket::listen_at(path)
}

/// Allows as many descriptors as it may: those of an answer count against the sender until the client takes them, and
/// each recording has some fifty.
fn raise_descriptors() {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    // With fewer, fewer can record at a time.
    let _ = setrlimit(Resource::Nofile, limit);
}

struct Service {
    limits: Limits,
    ledger: Mutex<Ledger>,
    /// Held while programs are loaded, which takes memory and a tenth of a second of CPU time.
    loading: Mutex<()>,
    records: Mutex<TaskRecords>,
    /// Where tracepoints are looked up.
    tracefs: Option<Tracefs>,
    keeper: Keeper,
    log: Mutex<Log>,
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

/// A recording in progress.
struct InProgress<'a> {
    share: Share<'a>,
    /// The numbers of its maps, by which the kernel is asked whether they are in use. Descriptors would keep them.
    maps: Vec<MapId>,
}

impl Service {
    /// One connection, from its request until its recorder has ended.
    fn attend(&self, connection: &OwnedFd) {
        let connection = connection.as_fd();
        let peer = match Peer::of(connection) {
            Ok(peer) => peer,
            Err(why) => {
                self.say_of(u32::MAX, format_args!("a client is refused: {why}"));
                let _ = refuse(connection, why);
                return;
            }
        };
        let (uid, about) = (peer.uid, peer.to_string());
        let refused = |charged: u32, why: String| {
            self.say_of(charged, format_args!("{about} is refused: {why}"));
            let _ = refuse(connection, why);
        };
        // Counted by the id first: asking the kernel about a client takes longer.
        if let Err(why) = lock(&self.ledger).connect(&self.limits, uid) {
            return refused(uid, why);
        }
        match peer.identify(&self.records) {
            Ok(client) => {
                let charged = client.credentials.owner;
                let counted = match charged == uid {
                    true => Ok(()),
                    false => lock(&self.ledger).connect(&self.limits, charged),
                };
                match counted {
                    Ok(()) => {
                        self.attend_client(connection, &client, charged);
                        if charged != uid {
                            lock(&self.ledger).disconnect(charged);
                        }
                    }
                    Err(why) => refused(charged, why),
                }
            }
            Err(why) => refused(uid, why),
        }
        lock(&self.ledger).disconnect(uid);
    }

    fn attend_client(&self, connection: BorrowedFd<'_>, client: &Client, charged: u32) {
        let begun = Instant::now();
        let peer = &client.peer;
        match self.hand_over(connection, client, charged) {
            Ok(InProgress { share, maps }) => {
                self.wait_for_end(connection, peer.process.as_fd());
                let lasted = Duration::from_millis(
                    u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX),
                );
                self.say_of(
                    charged,
                    format_args!("{peer} has ended after {}", humantime::format_duration(lasted)),
                );
                self.wait_until_unused(peer, charged, &maps);
                drop(share);
            }
            Err(why) => {
                self.say_of(charged, format_args!("{peer} is refused: {why}"));
                let _ = refuse(connection, why);
            }
        }
    }

    /// Serves a request.
    ///
    /// # Errors
    /// The reason to refuse it.
    fn hand_over(
        &self,
        connection: BorrowedFd<'_>,
        client: &Client,
        charged: u32,
    ) -> Result<InProgress<'_>, String> {
        let (text, passed) = passing::receive(connection, REQUEST_BYTES_MAX)
            .map_err(|error| format!("no request: {error}"))?;
        let request = Request::read(&text).map_err(|why| cut(&why))?;
        match (request.cgroup, passed.as_slice()) {
            (Some(id), [directory]) => cgroup::check(client, id, directory)?,
            (None, []) => {}
            (Some(_), _) => return Err("a cgroup comes with one descriptor".to_owned()),
            (None, _) => return Err("a request without a cgroup has no descriptors".to_owned()),
        }
        let order = request.order()?;
        let ring_bytes = request.rings_bytes();
        lock(&self.ledger).begin(&self.limits, charged, ring_bytes)?;
        let share = Share { service: self, uid: charged, ring_bytes };
        let loaded = {
            let _turn = lock(&self.loading);
            Loaded::load(
                &order.options,
                &order.ebpf,
                request.cgroup,
                &client.caller,
                self.tracefs.as_ref(),
            )
        };
        let Loaded { readable, attached, internal, .. } =
            loaded.map_err(|error| with_causes(&error))?;
        let granted = Granted::of(&readable);
        if granted.descriptors() > DESCRIPTORS_MAX || !Keeper::can_keep(&attached) {
            return Err("this kernel needs more hooks than can be handed over".to_owned());
        }
        let iterators = readable.iterators.iter().map(|(_, link)| link);
        let descriptors: Vec<BorrowedFd<'_>> =
            readable.maps.iter().chain(iterators).map(AsFd::as_fd).collect();
        let answer =
            serde_json::to_vec(&Answer::Granted(granted)).map_err(|error| error.to_string())?;
        let not_taken = |why: &dyn fmt::Display| format!("it does not take the answer: {why}");
        passing::send(connection, &answer, &descriptors).map_err(|error| not_taken(&error))?;
        // Descriptors in an answer that nobody reads count against this process.
        let (turn, _) =
            passing::receive(connection, TURN_BYTES_MAX).map_err(|error| not_taken(&error))?;
        if serde_json::from_slice(&turn).ok() != Some(Turn::Taken) {
            return Err(not_taken(&"no word about it"));
        }
        self.keeper
            .keep(connection, client.peer.process.as_fd(), &attached)
            .map_err(|error| format!("its programs cannot be kept attached: {error}"))?;
        self.say_of(charged, format_args!("{} records {}", client.peer, Subject(&request)));
        let maps = readable.maps.iter().chain(&internal);
        let maps: Result<_, _> = maps.map(|map| MapId::of(map.as_fd())).collect();
        Ok(InProgress { share, maps: maps.map_err(|error| error.to_string())? })
    }

    /// Waits until a recorder has closed its connection or ended, or until nobody keeps its programs attached any more.
    /// What it has passed on may still be in use.
    fn wait_for_end(&self, connection: BorrowedFd<'_>, process: BorrowedFd<'_>) {
        let mut polled = [
            PollFd::from_borrowed_fd(connection, PollFlags::empty()),
            PollFd::from_borrowed_fd(process, PollFlags::IN),
            PollFd::from_borrowed_fd(self.keeper.end(), PollFlags::empty()),
        ];
        while let Err(Errno::INTR) | Ok(0) = poll(&mut polled, None) {}
        if self.keeper.has_ended() {
            // The recorder would wait for the answers of a process that has ended.
            let _ = shutdown(connection, Shutdown::Both);
        }
    }

    /// Waits until nothing is left of a recording whose recorder has ended. Whoever has passed its descriptors on, has
    /// mapped or pinned them, still uses its share.
    fn wait_until_unused(&self, peer: &Peer, charged: u32, maps: &[MapId]) {
        let begun = Instant::now();
        let mut is_told = false;
        // If the kernel cannot be asked, the share is given back.
        while lock(&self.records).are_in_use(maps).unwrap_or(false) {
            let waited = begun.elapsed();
            if waited > LEFT_OVER && !is_told {
                let what = "its buffers are still in use, and count as a recording";
                self.say_of(charged, format_args!("{peer} has ended, but {what}"));
                is_told = true;
            }
            std::thread::sleep(if is_told { LEFT_OVER } else { JUST_ENDED });
        }
    }

    fn say(&self, what: fmt::Arguments<'_>) {
        lock(&self.log).say(what);
    }

    fn say_of(&self, user: u32, what: fmt::Arguments<'_>) {
        lock(&self.log).say_of(user, what);
    }
}

/// A reason that may quote what the client has sent.
fn cut(why: &str) -> String {
    match why.char_indices().nth(REASON_MAX) {
        Some((at, _)) => format!("{}…", &why[..at]),
        None => why.to_owned(),
    }
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

/// Subject of a request, for the log.
struct Subject<'a>(&'a Request);

impl fmt::Display for Subject<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0.scope {
            // The client may have sent anything; the log makes one printable line of it.
            Which::Launched => {
                let cut: String = self.0.command.chars().take(COMMAND_MAX).collect();
                write!(f, "the command {}", to_text(cut.as_bytes()))
            }
            Which::Pids(pids) => write!(f, "processes {pids:?}"),
            Which::All => write!(f, "all that it may trace"),
        }
    }
}
