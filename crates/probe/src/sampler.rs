//! A pass over all tasks: a task iterator, read like a file.

use std::io::{ErrorKind, Read};

use aya::Ebpf;
use aya::programs::Program;

use crate::error::ProbeError;

/// Runs a program over all tasks once and leaves the records it writes in `buffer`.
pub(crate) fn pass(ebpf: &mut Ebpf, program: &str, buffer: &mut Vec<u8>) -> Result<(), ProbeError> {
    buffer.clear();
    let Some(Program::Iter(program)) = ebpf.program_mut(program) else {
        return Ok(());
    };
    // An iterator file is good for one pass.
    let link = program.attach().map_err(ProbeError::set_up("iterator"))?;
    let link = program.take_link(link).map_err(ProbeError::set_up("iterator"))?;
    let mut file = link.into_file().map_err(ProbeError::set_up("iterator"))?;
    let room = 1 << 16;
    loop {
        let filled = buffer.len();
        buffer.resize(filled + room, 0);
        match file.read(&mut buffer[filled..]) {
            Ok(0) => {
                buffer.truncate(filled);
                return Ok(());
            }
            Ok(read) => buffer.truncate(filled + read),
            // EAGAIN: the kernel interrupts itself after a million tasks without a record.
            Err(error)
                if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::WouldBlock) =>
            {
                buffer.truncate(filled);
            }
            Err(source) => return Err(ProbeError::System { what: "read the samples", source }),
        }
    }
}
