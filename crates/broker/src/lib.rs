//! A broker loads the BPF programs for users who may not, and hands them over.
//!
//! A recorder connects to a socket and sends one request. The broker learns from the kernel who it is, loads
//! the programs of this version, limited to what that user may trace, and sends the descriptors of their
//! buffers. What keeps the programs attached goes to a process of its own (keeper.rs), so that a recording goes on when
//! the broker ends. The broker sees no record, and opens no file that a client names.
//!
//! * [`Request`] and [`Answer`]: the protocol, one JSON text each way.
//! * [`request`]: the client.
//! * [`serve`]: the service.

#![cfg_attr(not(test), deny(clippy::disallowed_methods))]
#![expect(unsafe_code, reason = "a socket option that no crate wraps; it says why it is sound")]

mod cgroup;
mod client;
mod error;
mod id_map;
mod keeper;
mod limits;
mod log;
mod passing;
mod peer;
mod protocol;
mod sandbox;
mod serve;
mod socket;

pub use client::{Connection, SOCKET, listens, request, socket_path};
pub use error::BrokerError;
pub use id_map::is_root_by;
pub use limits::Limits;
pub use protocol::{Answer, Granted, HookChoice, Request, Which};
pub use serve::{Arguments, serve};
