//! Packets with descriptors, SCM_RIGHTS in unix(7).

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};

use crate::protocol::DESCRIPTORS_MAX;

const SPACE_BYTES: usize = rustix::cmsg_space!(ScmRights(DESCRIPTORS_MAX));

/// Sends one packet.
pub(crate) fn send(
    socket: BorrowedFd<'_>,
    text: &[u8],
    descriptors: &[BorrowedFd<'_>],
) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); SPACE_BYTES];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !descriptors.is_empty() && !control.push(SendAncillaryMessage::ScmRights(descriptors)) {
        return Err(io::Error::other("too many descriptors"));
    }
    sendmsg(socket, &[IoSlice::new(text)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Sends one packet, unless the other side has taken none for so long that it would have to wait.
pub(crate) fn send_now(socket: BorrowedFd<'_>, text: &[u8]) -> io::Result<()> {
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(text)], &mut SendAncillaryBuffer::default(), flags)?;
    Ok(())
}

/// Receives one packet of at most `bytes_max` bytes, and the descriptors that came with it. Empty at the end of
/// the connection.
pub(crate) fn receive(
    socket: BorrowedFd<'_>,
    bytes_max: usize,
) -> io::Result<(Vec<u8>, Vec<OwnedFd>)> {
    // One more shows that a packet was too long.
    let mut text = vec![0; bytes_max + 1];
    let mut space = [MaybeUninit::uninit(); SPACE_BYTES];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received =
        recvmsg(socket, &mut [IoSliceMut::new(&mut text)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let mut descriptors = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(passed) = message {
            descriptors.extend(passed);
        }
    }
    let cut = received.flags.intersects(ReturnFlags::TRUNC | ReturnFlags::CTRUNC);
    if cut || received.bytes > bytes_max {
        return Err(io::Error::other("a packet that is too long"));
    }
    text.truncate(received.bytes);
    Ok((text, descriptors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::fd::AsFd;

    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    fn pair() -> (OwnedFd, OwnedFd) {
        let kind = SocketType::SEQPACKET;
        socketpair(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None).unwrap()
    }

    #[test]
    fn a_packet_arrives_with_its_descriptors() {
        let (here, there) = pair();
        let null = std::fs::File::open("/dev/null").unwrap();
        send(here.as_fd(), b"x", &vec![null.as_fd(); DESCRIPTORS_MAX]).unwrap();
        let (text, descriptors) = receive(there.as_fd(), 100).unwrap();
        assert_eq!((text.as_slice(), descriptors.len()), (&b"x"[..], DESCRIPTORS_MAX));
        drop(here);
        assert_eq!(receive(there.as_fd(), 100).unwrap().0, b"");
    }

    #[test]
    fn a_packet_that_is_too_long_is_an_error() {
        let (here, there) = pair();
        send(here.as_fd(), &[0; 101], &[]).unwrap();
        assert!(receive(there.as_fd(), 100).is_err());
        send(here.as_fd(), &[0; 100], &[]).unwrap();
        assert_eq!(receive(there.as_fd(), 100).unwrap().0.len(), 100);
    }
}
