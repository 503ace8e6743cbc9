//! The recorder's side: one request, and what the broker has loaded.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use proctrace_probe::{Keeper, MAPS, ProgramStatistics, Readable};

use crate::error::BrokerError;
use crate::protocol::{
    ANSWER_BYTES_MAX, Answer, Granted, Request, STATISTICS_BYTES_MAX, Statistics, Turn,
};
use crate::{passing, socket};

/// Socket on which a broker listens, unless it is told otherwise.
pub const SOCKET: &str = "/run/proctrace/broker.sock";

/// The socket to ask: the one named, that of the environment variable PROCTRACE_BROKER, or [`SOCKET`].
#[must_use]
pub fn socket_path(named: Option<&Path>, variable: Option<OsString>) -> PathBuf {
    named.map(Path::to_owned).or(variable.map(PathBuf::from)).unwrap_or_else(|| SOCKET.into())
}

/// Succeeds if somebody listens at `path`.
///
/// # Errors
/// [`BrokerError::Absent`] if not.
pub fn listens(path: &Path) -> Result<(), BrokerError> {
    socket::connect(path).map(drop)
}

/// Asks the broker at `path` to load the programs. `cgroup` is the directory of the requested cgroup. The broker keeps
/// the programs attached until the [`Connection`] is dropped or this process ends.
///
/// # Errors
/// When there is no broker, or when it does not serve this request.
pub fn request(
    path: &Path,
    request: &Request,
    cgroup: Option<BorrowedFd<'_>>,
) -> Result<(Readable, Connection), BrokerError> {
    let connection = socket::connect(path)?;
    let nothing = |error: &dyn std::fmt::Display| {
        // A broker that ends does so while a request is waiting.
        BrokerError::Answer { path: path.to_owned(), what: format!("nothing ({error})") }
    };
    let (text, descriptors) =
        exchange(connection.as_fd(), request, cgroup).map_err(|error| nothing(&error))?;
    let wrong = |what: &str| BrokerError::Answer { path: path.to_owned(), what: what.to_owned() };
    match serde_json::from_slice(&text) {
        Ok(Answer::Granted(granted)) => {
            let readable = assemble(granted, descriptors)
                .ok_or_else(|| wrong("with another number of descriptors than it says"))?;
            let connection = Connection { socket: connection };
            connection.send(Turn::Taken).map_err(|error| nothing(&error))?;
            Ok((readable, connection))
        }
        Ok(Answer::Refused(why)) => Err(BrokerError::Refused(why)),
        Err(_) if text.is_empty() => Err(wrong("nothing")),
        Err(_) => Err(wrong("something else")),
    }
}

/// A recording, as its recorder refers to it.
#[derive(Debug)]
pub struct Connection {
    socket: OwnedFd,
}

impl Connection {
    fn send(&self, turn: Turn) -> std::io::Result<()> {
        passing::send(self.socket.as_fd(), &serde_json::to_vec(&turn)?, &[])
    }

    fn ask(&self, turn: Turn) -> std::io::Result<Vec<ProgramStatistics>> {
        self.send(turn)?;
        let (text, _) = passing::receive(self.socket.as_fd(), STATISTICS_BYTES_MAX)?;
        if text.is_empty() {
            return Err(std::io::Error::other("it has ended"));
        }
        let statistics: Vec<Statistics> = serde_json::from_slice(&text)?;
        Ok(statistics.into_iter().map(Into::into).collect())
    }
}

impl Keeper for Connection {
    fn statistics(&mut self) -> std::io::Result<Vec<ProgramStatistics>> {
        self.ask(Turn::Statistics)
    }

    fn detach(&mut self) -> std::io::Result<Vec<ProgramStatistics>> {
        self.ask(Turn::Detach)
    }
}

fn exchange(
    connection: BorrowedFd<'_>,
    request: &Request,
    cgroup: Option<BorrowedFd<'_>>,
) -> std::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    passing::send(connection, &serde_json::to_vec(request)?, cgroup.as_slice())?;
    passing::receive(connection, ANSWER_BYTES_MAX)
}

fn assemble(granted: Granted, descriptors: Vec<OwnedFd>) -> Option<Readable> {
    if granted.descriptors() != descriptors.len() {
        return None;
    }
    let mut descriptors = descriptors.into_iter();
    let maps = descriptors.by_ref().take(MAPS.len()).collect::<Vec<_>>().try_into().ok()?;
    let iterators = granted.iterators.into_iter().zip(descriptors).collect();
    Some(Readable { hooks: granted.hooks, maps, iterators })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_descriptors_that_does_not_fit_is_noticed() {
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let granted = || Granted { hooks: Vec::new(), iterators: vec!["on_sample".to_owned()] };
        let descriptors = |number| (0..number).map(|_| null()).collect::<Vec<_>>();
        assert!(assemble(granted(), descriptors(6)).is_none());
        assert!(assemble(granted(), descriptors(8)).is_none());
        let readable = assemble(granted(), descriptors(7)).unwrap();
        assert_eq!((readable.maps.len(), readable.iterators.len()), (6, 1));
    }

    #[test]
    fn the_socket_is_the_one_named_last() {
        let named = Path::new("/a");
        assert_eq!(socket_path(Some(named), Some("/b".into())), named);
        assert_eq!(socket_path(None, Some("/b".into())), Path::new("/b"));
        assert_eq!(socket_path(None, None), Path::new(SOCKET));
    }
}
