//! Tells systemd that the recorder is ready, by the protocol of sd_notify(3): a datagram to a socket that the environment
//! names.

use std::ffi::OsStr;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

/// The variable that names the socket.
pub const SOCKET: &str = "NOTIFY_SOCKET";

/// Says that all is set up, and how it goes. Without a socket, nobody waits for it.
///
/// # Errors
/// If there is a socket that takes nothing.
pub(crate) fn ready(status: &str) -> io::Result<()> {
    match std::env::var_os(SOCKET) {
        Some(name) => send(&name, format!("READY=1\nSTATUS={status}\n").as_bytes()),
        None => Ok(()),
    }
}

fn send(name: &OsStr, message: &[u8]) -> io::Result<()> {
    let address = match name.as_bytes() {
        [b'@', name @ ..] => SocketAddr::from_abstract_name(name)?,
        _ => SocketAddr::from_pathname(name)?,
    };
    UnixDatagram::unbound()?.send_to_addr(message, &address)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_arrives_by_path_and_by_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("proctrace-test-{}", std::process::id());
        let by_name = SocketAddr::from_abstract_name(&name).unwrap();
        for (socket, called) in [
            (UnixDatagram::bind(&path).unwrap(), path.clone().into_os_string()),
            (UnixDatagram::bind_addr(&by_name).unwrap(), format!("@{name}").into()),
        ] {
            send(&called, b"READY=1\n").unwrap();
            let mut buffer = [0; 16];
            let length = socket.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..length], b"READY=1\n");
        }
        assert!(send(OsStr::new("/no/such/socket"), b"x").is_err());
    }
}
