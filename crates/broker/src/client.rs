//! The recorder's side: one request, and what the broker has loaded.

use std::ffi::OsString;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use proctrace_probe::{Loaded, MAPS};

use crate::error::BrokerError;
use crate::protocol::{ANSWER_BYTES_MAX, Answer, Granted, Request};
use crate::{passing, socket};

/// Where a broker listens, unless it is told otherwise.
pub const SOCKET: &str = "/run/proctrace/broker.sock";

/// The socket to ask: the one named, that of the environment variable PROCTRACE_BROKER, or [`SOCKET`].
#[must_use]
pub fn socket_path(named: Option<&Path>, variable: Option<OsString>) -> PathBuf {
    named.map(Path::to_owned).or(variable.map(PathBuf::from)).unwrap_or_else(|| SOCKET.into())
}

/// Asks the broker at `path` to load the programs. The connection must be kept open as long as the recording
/// lasts: it tells the broker that the recording is in progress.
///
/// # Errors
/// When there is no broker, or when it does not serve this request.
pub fn request(path: &Path, request: &Request) -> Result<(Loaded, OwnedFd), BrokerError> {
    let connection = socket::connect(path)?;
    let (text, descriptors) = exchange(connection.as_fd(), request).map_err(|error| {
        // A broker that ends does so while a request is waiting.
        BrokerError::Answer { path: path.to_owned(), what: format!("nothing ({error})") }
    })?;
    let wrong = |what: &str| BrokerError::Answer { path: path.to_owned(), what: what.to_owned() };
    match serde_json::from_slice(&text) {
        Ok(Answer::Granted(granted)) => {
            let loaded = assemble(granted, descriptors)
                .ok_or_else(|| wrong("with another number of descriptors than it says"))?;
            Ok((loaded, connection))
        }
        Ok(Answer::Refused(why)) => Err(BrokerError::Refused(why)),
        Err(_) if text.is_empty() => Err(wrong("nothing")),
        Err(_) => Err(wrong("something else")),
    }
}

fn exchange(
    connection: BorrowedFd<'_>,
    request: &Request,
) -> std::io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    passing::send(connection, &serde_json::to_vec(request)?, &[])?;
    passing::receive(connection, ANSWER_BYTES_MAX)
}

fn assemble(granted: Granted, descriptors: Vec<OwnedFd>) -> Option<Loaded> {
    if granted.descriptors() != descriptors.len() {
        return None;
    }
    let mut descriptors = descriptors.into_iter();
    let mut named = |names: Vec<String>| -> Vec<(String, OwnedFd)> {
        names.into_iter().zip(descriptors.by_ref()).collect()
    };
    let maps = named(MAPS.map(str::to_owned).to_vec()).into_iter().map(|(_, map)| map);
    let maps = maps.collect::<Vec<_>>().try_into().ok()?;
    let programs = named(granted.programs);
    let links = descriptors.by_ref().take(granted.links).collect();
    let tracepoints = descriptors.by_ref().take(granted.tracepoints).collect();
    let iterators = granted.iterators.into_iter().zip(descriptors).collect();
    Some(Loaded {
        hooks: granted.hooks,
        maps,
        programs,
        links,
        tracepoints,
        iterators,
        parents: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_descriptors_that_does_not_fit_is_noticed() {
        let null = || OwnedFd::from(std::fs::File::open("/dev/null").unwrap());
        let granted = |links| Granted {
            hooks: Vec::new(),
            programs: vec!["on_exec".to_owned()],
            links,
            tracepoints: 1,
            iterators: vec!["on_sample".to_owned()],
        };
        let descriptors = |number| (0..number).map(|_| null()).collect::<Vec<_>>();
        assert!(assemble(granted(2), descriptors(10)).is_none());
        assert!(assemble(granted(usize::MAX), descriptors(11)).is_none());
        let loaded = assemble(granted(2), descriptors(11)).unwrap();
        assert_eq!((loaded.programs.len(), loaded.links.len()), (1, 2));
        assert_eq!((loaded.tracepoints.len(), loaded.iterators.len()), (1, 1));
    }

    #[test]
    fn the_socket_is_the_one_named_last() {
        let named = Path::new("/a");
        assert_eq!(socket_path(Some(named), Some("/b".into())), named);
        assert_eq!(socket_path(None, Some("/b".into())), Path::new("/b"));
        assert_eq!(socket_path(None, None), Path::new(SOCKET));
    }
}
