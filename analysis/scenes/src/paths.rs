//! Look-ups, opens, renames and sizes of files in a scene.

use proctrace_wire::layout::{
    self, Again, MOVED_REMOVED, MissFixed, MovedFixed, Named, WrittenFixed,
};
use proctrace_wire::{Call, IntoBytes, Kind, Stream};
use zerocopy::FromZeros;

use super::Scene;

impl Scene {
    /// A failed open.
    pub fn open_failed(&mut self, at_ns: u64, task: u32, path: &str) -> &mut Self {
        self.look_up_failed(at_ns, task, Call::Openat, path)
    }

    /// A failed look-up.
    pub fn look_up_failed(&mut self, at_ns: u64, task: u32, call: Call, path: &str) -> &mut Self {
        let size = (size_of::<MissFixed>() + path.len()).next_multiple_of(8);
        let mut miss = MissFixed::new_zeroed();
        miss.head = self.head(Kind::LookupFailed, size, task, at_ns);
        (miss.call, miss.error) = (call as u16, 2);
        miss.path_bytes = u16::try_from(path.len()).unwrap();
        self.put(Stream::Lookups, miss.as_bytes(), path.as_bytes());
        self
    }

    /// A failed open that was timed.
    pub fn open_failed_timed(
        &mut self,
        at_ns: u64,
        task: u32,
        (number, path): (u32, &str),
        duration_ns: u32,
    ) -> &mut Self {
        self.header.lookups_timed_one_in = Some(16);
        let size = (size_of::<Named>() + path.len()).next_multiple_of(8);
        let mut named = Named::new_zeroed();
        named.head = self.head(Kind::LookupNamed, size, task, at_ns);
        (named.call, named.error) = (Call::Openat as u16, 2);
        (named.number, named.slot) = (number, number);
        named.path_bytes = u16::try_from(path.len()).unwrap();
        self.put(Stream::Lookups, named.as_bytes(), path.as_bytes());
        let mut time = layout::LookupTime::new_zeroed();
        time.head = self.head(Kind::LookupTime, size_of::<layout::LookupTime>(), task, at_ns);
        (time.number, time.duration_ns) = (number, duration_ns);
        self.put(Stream::Lookups, time.as_bytes(), &[]);
        self
    }

    /// A successful open, which has this number for `open_again`.
    pub fn open(
        &mut self,
        at_ns: u64,
        task: u32,
        number: u32,
        path: &str,
        flags: u32,
    ) -> &mut Self {
        self.header.opens = true;
        let size = (size_of::<Named>() + path.len()).next_multiple_of(8);
        let mut named = Named::new_zeroed();
        named.head = self.head(Kind::OpenedNamed, size, task, at_ns);
        (named.call, named.flags) = (Call::Openat as u16, flags);
        (named.number, named.slot) = (number, number);
        named.path_bytes = u16::try_from(path.len()).unwrap();
        self.put(Stream::Lookups, named.as_bytes(), path.as_bytes());
        self
    }

    /// The same open again.
    pub fn open_again(&mut self, at_ns: u64, task: u32, number: u32) -> &mut Self {
        let mut again = Again::new_zeroed();
        again.head = self.head(Kind::OpenedAgain, size_of::<Again>(), task, at_ns);
        again.number = number;
        self.put(Stream::Lookups, again.as_bytes(), &[]);
        self
    }

    /// A rename; `bits` are MOVED_* bits.
    pub fn moved(&mut self, at_ns: u64, task: u32, from: &str, to: &str, bits: u32) -> &mut Self {
        let size = (size_of::<MovedFixed>() + from.len() + to.len()).next_multiple_of(8);
        let mut moved = MovedFixed::new_zeroed();
        moved.head = self.head(Kind::Moved, size, task, at_ns);
        moved.bits = bits;
        (moved.from_bytes, moved.path_bytes) = (from.len() as u16, to.len() as u16);
        self.put(Stream::Lookups, moved.as_bytes(), [from, to].concat().as_bytes());
        self
    }

    /// A file is removed; `bits` are MOVED_* bits.
    pub fn removed(&mut self, at_ns: u64, task: u32, path: &str, bits: u32) -> &mut Self {
        self.moved(at_ns, task, path, "", MOVED_REMOVED | bits)
    }

    /// A descriptor is closed through which a file could be written, of this size.
    pub fn written(&mut self, at_ns: u64, task: u32, path: &str, size_bytes: u64) -> &mut Self {
        let size = (size_of::<WrittenFixed>() + path.len()).next_multiple_of(8);
        let mut written = WrittenFixed::new_zeroed();
        written.head = self.head(Kind::Written, size, task, at_ns);
        written.size_bytes = size_bytes;
        written.path_bytes = u32::try_from(path.len()).unwrap();
        self.put(Stream::Lookups, written.as_bytes(), path.as_bytes());
        self
    }
}
