//! The socket: made here, or by systemd.

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use rustix::io::Errno;
use rustix::net::sockopt::{Timeout, set_socket_timeout, socket_domain, socket_type};
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, bind, connect as connect_to, listen,
    socket_with,
};

use crate::error::BrokerError;

/// Connections that wait to be accepted.
const WAITING: i32 = 64;

/// Time for the client to send a request, and to take the answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Time for the broker to answer: it loads programs for one client after the other.
const PATIENCE_WITH_BROKER: Duration = Duration::from_secs(60);

fn unix_socket() -> Result<OwnedFd, BrokerError> {
    socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, SocketFlags::CLOEXEC, None)
        .map_err(BrokerError::system("create a socket"))
}

fn address(path: &Path) -> Result<SocketAddrUnix, BrokerError> {
    SocketAddrUnix::new(path).map_err(BrokerError::system("use this path for a socket"))
}

/// Connects to a broker.
pub(crate) fn connect(path: &Path) -> Result<OwnedFd, BrokerError> {
    let socket = unix_socket()?;
    connect_to(&socket, &address(path)?)
        .map_err(|error| BrokerError::Absent { path: path.to_owned(), source: error.into() })?;
    set_socket_timeout(&socket, Timeout::Recv, Some(PATIENCE_WITH_BROKER))
        .map_err(BrokerError::system("limit the time for an answer"))?;
    Ok(socket)
}

/// Listens at `path`, where everybody may connect: the broker asks the kernel who does.
pub(crate) fn listen_at(path: &Path) -> Result<OwnedFd, BrokerError> {
    if path.symlink_metadata().is_ok_and(|file| file.file_type().is_socket()) {
        // Left behind by a broker that was killed; not if another one is listening.
        match connect(path) {
            Ok(_) => {
                return Err(BrokerError::Unfit(format!("a broker listens at {}", path.display())));
            }
            Err(_) => fs::remove_file(path).map_err(BrokerError::system("remove an old socket"))?,
        }
    }
    let socket = unix_socket()?;
    bind(&socket, &address(path)?).map_err(|error| {
        BrokerError::Unfit(format!("cannot listen at {}: {error}", path.display()))
    })?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o666))
        .map_err(BrokerError::system("let everybody connect"))?;
    listen(&socket, WAITING).map_err(BrokerError::system("listen"))?;
    Ok(socket)
}

/// The socket that systemd passes on, sd_listen_fds(3), if it does.
pub(crate) fn from_systemd() -> Result<Option<OwnedFd>, BrokerError> {
    let number = |name| std::env::var(name).ok().and_then(|value| value.parse::<u32>().ok());
    if number("LISTEN_PID") != Some(std::process::id()) || number("LISTEN_FDS").unwrap_or(0) == 0 {
        return Ok(None);
    }
    // SAFETY: SD_LISTEN_FDS_START; systemd says that this descriptor is open, and it belongs to us.
    let socket = unsafe { OwnedFd::from_raw_fd(3) };
    let domain =
        socket_domain(&socket).map_err(BrokerError::system("use the socket of systemd"))?;
    let kind = socket_type(&socket).map_err(BrokerError::system("use the socket of systemd"))?;
    if domain != AddressFamily::UNIX || kind != SocketType::SEQPACKET {
        let wrong = "systemd passes a socket of another kind: ListenSequentialPacket= is needed";
        return Err(BrokerError::Unfit(wrong.to_owned()));
    }
    Ok(Some(socket))
}

/// Accepts a connection, which may not keep the broker waiting for long.
pub(crate) fn accept(listening: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let connection = loop {
        match rustix::net::accept_with(listening, SocketFlags::CLOEXEC) {
            Err(Errno::INTR | Errno::CONNABORTED) => {}
            other => break other?,
        }
    };
    for timeout in [Timeout::Recv, Timeout::Send] {
        set_socket_timeout(connection.as_fd(), timeout, Some(PATIENCE))?;
    }
    Ok(connection)
}
