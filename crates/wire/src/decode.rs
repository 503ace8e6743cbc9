//! Decoding: splitting a block into frames, and a frame into the fields of its record.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use crate::kind::Kind;
use crate::layout::{
    Again, Attach, Blind, EXIT_AT_FIRST, EnvFixed, ExecArgsFixed, ExecFixed, Exit, Fork, Head,
    LookupTime, Loss, MEMORY_AT_FIRST, Memory, MissFixed, MountsFixed, MovedFixed, Named,
    PlaceFixed, Rename, Sample, Signal, Tick, Wait, WorkdirFixed, WrittenFixed,
};

/// Errors of the bytes of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// Fewer bytes are left than the size of a record's head.
    #[error("the remaining {left} bytes are too few for a record")]
    Leftover {
        /// Number of bytes left.
        left: usize,
    },
    /// An impossible record size.
    #[error("a record of kind {kind} has an invalid size of {size} bytes, with {left} bytes left")]
    Size {
        /// The kind it claims.
        kind: u16,
        /// The size it claims.
        size: u16,
        /// Bytes left in the block.
        left: usize,
    },
    /// The record is shorter than the fixed part of its kind, or than its announced contents.
    #[error("a record of kind {kind} with {size} bytes is shorter than its contents")]
    Contents {
        /// Its kind.
        kind: u16,
        /// Its size.
        size: u16,
    },
}

/// The bytes of one record, with its head decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frame<'a> {
    /// The head.
    pub head: Head,
    /// All bytes, head and padding included.
    pub bytes: &'a [u8],
}

impl Frame<'_> {
    /// The repeated look-up in this frame, if it is one: faster than [`Record::decode`].
    #[inline]
    pub fn lookup_again(&self) -> Option<Again> {
        if self.head.kind != Kind::LookupAgain as u16 {
            return None;
        }
        Again::read_from_prefix(self.bytes).ok().map(|(again, _)| again)
    }
}

/// Splits a block of bytes into records. Ends after an error, because the start of the next record
/// is unknown.
#[derive(Debug, Clone)]
pub struct Frames<'a> {
    rest: &'a [u8],
}

impl<'a> Frames<'a> {
    /// The records in these bytes.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }
}

impl<'a> Iterator for Frames<'a> {
    type Item = Result<Frame<'a>, DecodeError>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        let bytes = std::mem::take(&mut self.rest);
        if bytes.is_empty() {
            return None;
        }
        let Ok((head, _)) = Head::read_from_prefix(bytes) else {
            return Some(Err(DecodeError::Leftover { left: bytes.len() }));
        };
        let size = usize::from(head.size);
        if size < size_of::<Head>() || !size.is_multiple_of(8) || size > bytes.len() {
            let Head { kind, size, .. } = head;
            return Some(Err(DecodeError::Size { kind, size, left: bytes.len() }));
        }
        let (frame, rest) = bytes.split_at(size);
        self.rest = rest;
        Some(Ok(Frame { head, bytes: frame }))
    }
}

/// A successful exec with its variable-size parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exec<'a> {
    /// The fixed part.
    pub fixed: ExecFixed,
    /// The path as given to execve.
    pub path: &'a [u8],
    /// The `#!` interpreter, empty if none.
    pub interp: &'a [u8],
    /// The resolved path of the executable.
    pub exe: &'a [u8],
    /// The working directory.
    pub cwd: &'a [u8],
    /// The first bytes of the argv block: each argument with its NUL.
    pub argv: &'a [u8],
}

impl Exec<'_> {
    /// The path of the program by which people know it: as it was given, or that of the file where it was given by a
    /// descriptor (fexecve(3)), whose number says nothing. A file without a name, as by memfd_create(2) or
    /// open_tree(2), has the name that the kernel gave the task.
    pub fn known_as(&self) -> &[u8] {
        let by_descriptor = [&b"/dev/fd/"[..], b"/proc/self/fd/", b"/proc/thread-self/fd/"];
        if !self.path.is_empty() && !by_descriptor.iter().any(|way| self.path.starts_with(way)) {
            return self.path;
        }
        match self.exe.strip_suffix(GONE).unwrap_or(self.exe) {
            b"" | b"/" => {
                let comm = &self.fixed.comm;
                &comm[..comm.iter().position(|byte| *byte == 0).unwrap_or(comm.len())]
            }
            named => named,
        }
    }
}

/// Text that the kernel appends to the path of a file that has no name any more: d_path() in
/// fs/d_path.c.
const GONE: &[u8] = b" (deleted)";

/// A decoded record. The fixed parts are copies, because blocks are not aligned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Record<'a> {
    /// See [`Attach`].
    Attach(Attach),
    /// See [`Fork`].
    Fork(Fork),
    /// See [`Exec`].
    Exec(Exec<'a>),
    /// The continuation of an argv, and its bytes.
    ExecArgs(ExecArgsFixed, &'a [u8]),
    /// A failed exec, and its path.
    ExecFailed(MissFixed, &'a [u8]),
    /// See [`Exit`].
    Exit(Exit),
    /// A failed look-up, and its path.
    LookupFailed(MissFixed, &'a [u8]),
    /// See [`Rename`].
    Rename(Rename),
    /// See [`Sample`].
    Sample(Sample),
    /// See [`Tick`].
    Tick(Tick),
    /// Search variables, `NAME=value` each with its NUL.
    Env(EnvFixed, &'a [u8]),
    /// See [`Loss`].
    Loss(Loss),
    /// See [`Blind`].
    Blind(Blind),
    /// See [`Memory`].
    Memory(Memory),
    /// A failed look-up with its number, and its path.
    LookupNamed(Named, &'a [u8]),
    /// See [`Again`].
    LookupAgain(Again),
    /// The final working directory of a process, and the path.
    Workdir(WorkdirFixed, &'a [u8]),
    /// The mount namespace and root of a process, and the path of the root.
    Place(PlaceFixed, &'a [u8]),
    /// A part of a mount table.
    Mounts(MountsFixed, &'a [u8]),
    /// See [`LookupTime`].
    LookupTime(LookupTime),
    /// A successful open with its number, and the path of the file.
    OpenedNamed(Named, &'a [u8]),
    /// A repeated successful open.
    OpenedAgain(Again),
    /// A file or directory that was renamed: its path before, and its path since.
    Moved(MovedFixed, &'a [u8], &'a [u8]),
    /// A descriptor that was closed through which a file could be written, and the path of the file.
    Written(WrittenFixed, &'a [u8]),
    /// See [`Wait`].
    Wait(Wait),
    /// See [`Signal`].
    Signal(Signal),
    /// A kind added by a later version.
    Unknown(Head),
}

impl<'a> Record<'a> {
    /// Decodes a frame.
    ///
    /// # Errors
    /// [`DecodeError::Contents`] when the record is shorter than its announced contents.
    pub fn decode(frame: Frame<'a>) -> Result<Self, DecodeError> {
        Self::decode_to(frame, |record| record)
    }

    /// Decodes a frame and passes the record to `to`, whose result is returned.
    ///
    /// For those who read millions: a record takes 232 bytes, and is made where it is read instead of being moved there.
    ///
    /// # Errors
    /// Those of [`Record::decode`].
    #[inline]
    pub fn decode_to<T>(frame: Frame<'a>, to: impl FnOnce(Self) -> T) -> Result<T, DecodeError> {
        let Some(kind) = Kind::from_number(frame.head.kind) else {
            return Ok(to(Self::Unknown(frame.head)));
        };
        Ok(match kind {
            Kind::Attach => to(Self::Attach(fixed(frame)?.0)),
            Kind::Fork => to(Self::Fork(fixed(frame)?.0)),
            Kind::Exec => to(Self::Exec(exec(frame)?)),
            Kind::ExecArgs => {
                let (args, rest): (ExecArgsFixed, _) = fixed(frame)?;
                to(Self::ExecArgs(args, take(frame, rest, args.bytes as usize)?.0))
            }
            Kind::ExecFailed => {
                let (miss, path) = miss(frame)?;
                to(Self::ExecFailed(miss, path))
            }
            Kind::Exit => to(Self::Exit(grown(frame, EXIT_AT_FIRST)?)),
            Kind::LookupFailed => {
                let (miss, path) = miss(frame)?;
                to(Self::LookupFailed(miss, path))
            }
            Kind::Rename => to(Self::Rename(fixed(frame)?.0)),
            Kind::Sample => to(Self::Sample(fixed(frame)?.0)),
            Kind::Tick => to(Self::Tick(fixed(frame)?.0)),
            Kind::Env => {
                let (env, rest): (EnvFixed, _) = fixed(frame)?;
                to(Self::Env(env, take(frame, rest, env.bytes as usize)?.0))
            }
            Kind::Loss => to(Self::Loss(fixed(frame)?.0)),
            Kind::Blind => to(Self::Blind(fixed(frame)?.0)),
            Kind::Memory => to(Self::Memory(grown(frame, MEMORY_AT_FIRST)?)),
            Kind::LookupNamed => {
                let (named, path) = named(frame)?;
                to(Self::LookupNamed(named, path))
            }
            Kind::LookupAgain => to(Self::LookupAgain(fixed(frame)?.0)),
            Kind::OpenedNamed => {
                let (named, path) = named(frame)?;
                to(Self::OpenedNamed(named, path))
            }
            Kind::OpenedAgain => to(Self::OpenedAgain(fixed(frame)?.0)),
            Kind::Written => {
                let (written, rest): (WrittenFixed, _) = fixed(frame)?;
                to(Self::Written(written, take(frame, rest, written.path_bytes as usize)?.0))
            }
            Kind::Moved => {
                let (moved, rest): (MovedFixed, _) = fixed(frame)?;
                let (from, rest) = take(frame, rest, usize::from(moved.from_bytes))?;
                to(Self::Moved(moved, from, take(frame, rest, usize::from(moved.path_bytes))?.0))
            }
            Kind::LookupTime => to(Self::LookupTime(fixed(frame)?.0)),
            Kind::Wait => to(Self::Wait(fixed(frame)?.0)),
            Kind::Signal => to(Self::Signal(fixed(frame)?.0)),
            Kind::Place => {
                let (place, rest): (PlaceFixed, _) = fixed(frame)?;
                to(Self::Place(place, take(frame, rest, usize::from(place.path_bytes))?.0))
            }
            Kind::Mounts => {
                let (mounts, rest): (MountsFixed, _) = fixed(frame)?;
                to(Self::Mounts(mounts, take(frame, rest, mounts.bytes as usize)?.0))
            }
            Kind::Workdir => {
                let (workdir, rest): (WorkdirFixed, _) = fixed(frame)?;
                to(Self::Workdir(workdir, take(frame, rest, usize::from(workdir.path_bytes))?.0))
            }
        })
    }
}

fn too_short(frame: Frame<'_>) -> DecodeError {
    DecodeError::Contents { kind: frame.head.kind, size: frame.head.size }
}

/// A record that had `at_first` bytes once; what it has got since is zero in older ones. Its head has today's size, so that
/// its bytes are a record.
fn grown<T>(frame: Frame<'_>, at_first: usize) -> Result<T, DecodeError>
where
    T: FromBytes + IntoBytes + KnownLayout + Immutable,
{
    // Nearly all are of today, and are copied as a whole.
    if frame.bytes.len() == size_of::<T>() {
        return Ok(fixed(frame)?.0);
    }
    let mut record = T::new_zeroed();
    let there = frame.bytes.len().min(size_of::<T>());
    if there < at_first {
        return Err(too_short(frame));
    }
    let bytes = record.as_mut_bytes();
    bytes[..there].copy_from_slice(&frame.bytes[..there]);
    let head = Head { size: size_of::<T>() as u16, ..frame.head };
    bytes[..size_of::<Head>()].copy_from_slice(head.as_bytes());
    Ok(record)
}

fn fixed<T>(frame: Frame<'_>) -> Result<(T, &[u8]), DecodeError>
where
    T: FromBytes + KnownLayout + Immutable,
{
    T::read_from_prefix(frame.bytes).map_err(|_| too_short(frame))
}

fn take<'a>(
    frame: Frame<'a>,
    bytes: &'a [u8],
    count: usize,
) -> Result<(&'a [u8], &'a [u8]), DecodeError> {
    bytes.split_at_checked(count).ok_or_else(|| too_short(frame))
}

fn miss(frame: Frame<'_>) -> Result<(MissFixed, &[u8]), DecodeError> {
    let (miss, rest): (MissFixed, _) = fixed(frame)?;
    Ok((miss, take(frame, rest, usize::from(miss.path_bytes))?.0))
}

fn named(frame: Frame<'_>) -> Result<(Named, &[u8]), DecodeError> {
    let (named, rest): (Named, _) = fixed(frame)?;
    Ok((named, take(frame, rest, usize::from(named.path_bytes))?.0))
}

fn exec(frame: Frame<'_>) -> Result<Exec<'_>, DecodeError> {
    let (fixed, rest): (ExecFixed, _) = fixed(frame)?;
    let (path, rest) = take(frame, rest, usize::from(fixed.path_bytes))?;
    let (interp, rest) = take(frame, rest, usize::from(fixed.interp_bytes))?;
    let (exe, rest) = take(frame, rest, usize::from(fixed.exe_bytes))?;
    let (cwd, rest) = take(frame, rest, usize::from(fixed.cwd_bytes))?;
    let (argv, _) = take(frame, rest, fixed.argv_here as usize)?;
    Ok(Exec { fixed, path, interp, exe, cwd, argv })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    fn exec_bytes(path: &[u8], argv: &[u8]) -> Vec<u8> {
        let mut fixed = ExecFixed::new_zeroed();
        let size = (size_of::<ExecFixed>() + path.len() + argv.len()).next_multiple_of(8);
        fixed.head.kind = Kind::Exec as u16;
        fixed.head.size = u16::try_from(size).unwrap();
        fixed.path_bytes = u16::try_from(path.len()).unwrap();
        fixed.argv_bytes = u32::try_from(argv.len()).unwrap();
        fixed.argv_here = fixed.argv_bytes;
        let mut bytes = fixed.as_bytes().to_vec();
        bytes.extend_from_slice(path);
        bytes.extend_from_slice(argv);
        bytes.resize(size, 0);
        bytes
    }

    #[test]
    fn an_exec_comes_back_whole() {
        let bytes = exec_bytes(b"/bin/sed", b"sed\0s/a/b/\0");
        let frame = Frames::new(&bytes).next().unwrap().unwrap();
        let Record::Exec(exec) = Record::decode(frame).unwrap() else { panic!("not an exec") };
        assert_eq!(exec.path, b"/bin/sed");
        assert_eq!(exec.argv, b"sed\0s/a/b/\0");
        assert_eq!(exec.exe, b"");
    }

    #[test]
    fn a_program_is_known_by_its_path_its_file_or_its_task() {
        let known = |path: &[u8], exe: &[u8]| {
            let mut fixed = ExecFixed::new_zeroed();
            fixed.comm[..4].copy_from_slice(b"task");
            let exec = Exec { fixed, path, interp: b"", exe, cwd: b"/", argv: b"" };
            exec.known_as().to_vec()
        };
        assert_eq!(known(b"./sed", b"/usr/bin/sed"), b"./sed");
        for by_descriptor in [&b"/dev/fd/3"[..], b"/proc/self/fd/3", b"/proc/thread-self/fd/3", b""]
        {
            assert_eq!(known(by_descriptor, b"/usr/bin/sed"), b"/usr/bin/sed");
            assert_eq!(known(by_descriptor, b"/usr/bin/sed (deleted)"), b"/usr/bin/sed");
            assert_eq!(known(by_descriptor, b"/"), b"task");
            assert_eq!(known(by_descriptor, b""), b"task");
            assert_eq!(known(by_descriptor, b"/ (deleted)"), b"task");
        }
        let mut fixed = ExecFixed::new_zeroed();
        fixed.comm.fill(b'x');
        let exec = Exec { fixed, path: b"", interp: b"", exe: b"", cwd: b"/", argv: b"" };
        assert_eq!(exec.known_as(), fixed.comm);
    }

    #[test]
    fn a_repeated_look_up_is_found_by_its_kind() {
        let mut again = Again::new_zeroed();
        (again.head.kind, again.head.size) = (Kind::LookupAgain as u16, size_of::<Again>() as u16);
        again.head.task = 7;
        let frame =
            |again: &Again| Frames::new(again.as_bytes()).next().unwrap().unwrap().lookup_again();
        assert_eq!(frame(&again), Some(again));
        again.head.kind = Kind::OpenedAgain as u16;
        assert_eq!(frame(&again), None);
    }

    #[test]
    fn lengths_beyond_the_record_are_an_error() {
        let mut bytes = exec_bytes(b"/bin/sed", b"sed\0");
        let at = std::mem::offset_of!(ExecFixed, path_bytes);
        bytes[at] = 0xff;
        let frame = Frames::new(&bytes).next().unwrap().unwrap();
        assert!(matches!(Record::decode(frame), Err(DecodeError::Contents { kind: 3, .. })));
    }

    #[test]
    fn a_rename_comes_back_whole_or_not_at_all() {
        let (from, path) = (b"/w/a.tmp", b"/w/a");
        let mut moved = MovedFixed::new_zeroed();
        moved.head = Head { kind: Kind::Moved as u16, size: 40, task: 3, time_ns: 4 };
        (moved.from_bytes, moved.path_bytes, moved.bits) = (8, 4, crate::layout::MOVED_EXCHANGED);
        let decode = |moved: MovedFixed| {
            let bytes = [moved.as_bytes(), from, path, &[0; 4]].concat();
            let frame = Frames::new(&bytes).next().unwrap().unwrap();
            Record::decode(frame).map(|record| match record {
                Record::Moved(fixed, before, since) => (fixed, before.to_vec(), since.to_vec()),
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(decode(moved), Ok((moved, from.to_vec(), path.to_vec())));
        // Into the padding is still within the record; beyond it is not.
        for (from_bytes, path_bytes, is_right) in [
            (8, 8, true),
            (8, 9, false),
            (16, 0, true),
            (17, 0, false),
            (u16::MAX, u16::MAX, false),
        ] {
            let lengths = MovedFixed { from_bytes, path_bytes, ..moved };
            assert_eq!(decode(lengths).is_ok(), is_right, "{from_bytes} {path_bytes}");
        }
    }

    #[test]
    fn sizes_that_cannot_be_end_the_block() {
        for size in [0u16, 8, 15, 20, 64] {
            let head = Head { kind: 1, size, task: 0, time_ns: 0 };
            let mut frames = Frames::new(head.as_bytes());
            assert!(matches!(frames.next(), Some(Err(DecodeError::Size { .. }))), "size {size}");
            assert_eq!(frames.next(), None);
        }
        let mut frames = Frames::new(&[0; 5]);
        assert_eq!(frames.next(), Some(Err(DecodeError::Leftover { left: 5 })));
        assert_eq!(frames.next(), None);
    }

    #[test]
    fn a_reading_of_memory_may_end_before_its_last_field() {
        let size = u16::try_from(size_of::<Memory>()).unwrap();
        let head = Head { kind: 14, size, task: 1, time_ns: 2 };
        let memory = Memory {
            head,
            process: 1,
            tgid: 5,
            rss_bytes: 1,
            pss_bytes: 2,
            uss_bytes: 3,
            shared_bytes: 4,
            swap_bytes: 5,
            vmem_bytes: 6,
        };
        let decode = |bytes: &[u8]| {
            let frame = Frames::new(bytes).next().unwrap().unwrap();
            Record::decode(frame).map(|record| match record {
                Record::Memory(memory) => memory,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(decode(memory.as_bytes()), Ok(memory));
        let older = |size: u16| {
            let memory = Memory { head: Head { size, ..head }, ..memory };
            memory.as_bytes()[..usize::from(size)].to_vec()
        };
        let found = decode(&older(64)).unwrap();
        assert_eq!((found.swap_bytes, found.vmem_bytes), (5, 0));
        assert!(decode(&older(56)).is_err());
    }

    #[test]
    fn an_end_may_end_before_what_it_has_got_since() {
        let mut exit = Exit::new_zeroed();
        (exit.head.kind, exit.file_rss_pages) = (Kind::Exit as u16, 7);
        for (size, expected) in [(224, Some(7)), (216, Some(0)), (208, None)] {
            exit.head.size = size;
            let bytes = &exit.as_bytes()[..usize::from(size)];
            let frame = Frames::new(bytes).next().unwrap().unwrap();
            let found = Record::decode(frame).ok().map(|record| match record {
                Record::Exit(exit) => {
                    let again = Frames::new(exit.as_bytes()).next().unwrap().unwrap();
                    assert_eq!(again.bytes.len(), size_of::<Exit>());
                    assert_eq!(Record::decode(again), Ok(record));
                    exit.file_rss_pages
                }
                other => panic!("{other:?}"),
            });
            assert_eq!(found, expected, "of {size} bytes");
        }
    }

    #[test]
    fn a_later_versions_kind_is_passed_over() {
        let head = Head { kind: 999, size: 16, task: 0, time_ns: 0 };
        let frame = Frames::new(head.as_bytes()).next().unwrap().unwrap();
        assert_eq!(Record::decode(frame), Ok(Record::Unknown(head)));
    }

    fn any_record() -> impl Strategy<Value = Vec<u8>> {
        (0u16..29, 0usize..64, proptest::collection::vec(any::<u8>(), 0..400)).prop_map(
            |(kind, words, mut body)| {
                body.resize(body.len().max(words * 8).next_multiple_of(8), 0);
                let size = u16::try_from(size_of::<Head>() + body.len()).unwrap();
                let mut bytes = Head { kind, size, task: 1, time_ns: 2 }.as_bytes().to_vec();
                bytes.extend(body);
                bytes
            },
        )
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>) {
            for frame in Frames::new(&bytes).flatten() {
                let _ = Record::decode(frame);
            }
        }

        #[test]
        fn well_framed_garbage_is_cut_exactly(records in proptest::collection::vec(any_record(), 0..8)) {
            let bytes = records.concat();
            let frames: Result<Vec<_>, _> = Frames::new(&bytes).collect();
            let frames = frames.unwrap();
            prop_assert_eq!(frames.len(), records.len());
            for (frame, record) in frames.iter().zip(&records) {
                prop_assert_eq!(frame.bytes, &record[..]);
                let _ = Record::decode(*frame);
            }
        }
    }
}
