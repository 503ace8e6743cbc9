//! A broker loads the BPF programs for users who may not, and hands them over.
//!
//! A recorder connects to a socket and sends one request. The broker learns from the kernel who it is, loads
//! the programs of this version, limited to what that user may trace, and sends the descriptors of their
//! buffers and links. Everything else happens between the recorder and the kernel: the broker sees no
//! record, opens no file that a client names, and a recording goes on when the broker ends.
//!
//! * [`Request`] and [`Answer`]: the protocol, one JSON text each way.
//! * [`request`]: the client.
//! * [`serve`]: the service.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(unsafe_code, reason = "a socket option that no crate wraps; it says why it is sound")]

mod client;
mod error;
mod limits;
mod passing;
mod peer;
mod protocol;
mod sandbox;
mod serve;
mod socket;
mod status;

pub use client::{SOCKET, request, socket_path};
pub use error::BrokerError;
pub use limits::Limits;
pub use protocol::{Answer, Granted, HookChoice, Request, Which};
pub use serve::{Arguments, serve};
