//! Files of /proc about a task: proc_pid_stat(5), proc_pid_status(5), proc_pid_schedstat and proc_pid_io(5).

use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::FileExt;

use proctrace_wire::layout::Exit;
use rustix::fs::{AtFlags, CWD, Mode, OFlags, StatxFlags, openat, statx};

use crate::sys::{ProcessUsage, Tid};

/// The usage of a task so far.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Usage {
    pub(crate) comm: [u8; 16],
    /// The letter of its state.
    pub(crate) state: u8,
    /// Process of its real parent; 0 if that is outside of this pid namespace.
    pub(crate) parent_tgid: i32,
    pub(crate) run_ns: u64,
    pub(crate) run_delay_ns: u64,
    /// User time in whole clock ticks, or as the kernel divides the sum by them.
    pub(crate) utime_ns: u64,
    pub(crate) stime_ns: u64,
    pub(crate) minflt: u64,
    pub(crate) majflt: u64,
    pub(crate) rss_pages: u64,
    /// None if it may not be read.
    pub(crate) io: Option<Io>,
}

/// Bytes read and written.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Io {
    pub(crate) rchar: u64,
    pub(crate) wchar: u64,
    pub(crate) read_bytes: u64,
    pub(crate) write_bytes: u64,
}

impl Io {
    /// Reads the counters of a task; None if that is not allowed: without privileges, that of a task that still has its
    /// memory and the same user.
    pub(crate) fn of(tgid: Tid, tid: Tid) -> Option<Self> {
        Self::read(&format!("/proc/{tgid}/task/{tid}/io"))
    }

    /// Sum of all tasks of a process and of the children that it has waited for. For a process with one task
    /// and no children this is the same, and the kernel need not create the two directories in between.
    pub(crate) fn of_process(tgid: Tid) -> Option<Self> {
        Self::read(&format!("/proc/{tgid}/io"))
    }

    fn read(path: &str) -> Option<Self> {
        Self::parse(read(path, &mut [0; 4096])?)
    }

    fn parse(text: &[u8]) -> Option<Self> {
        Some(Self {
            rchar: number_after(text, b"rchar:")?,
            wchar: number_after(text, b"wchar:")?,
            read_bytes: number_after(text, b"\nread_bytes:")?,
            write_bytes: number_after(text, b"\nwrite_bytes:")?,
        })
    }
}

impl Usage {
    /// All of it; None if the task is gone.
    pub(crate) fn of(tgid: Tid, tid: Tid) -> Option<Self> {
        Some(Self { io: Io::of(tgid, tid), ..Self::of_stat(tgid, tid)? })
    }

    /// State, CPU time and faults only.
    pub(crate) fn of_stat(tgid: Tid, tid: Tid) -> Option<Self> {
        let mut buffer = [0; 1024];
        let mut usage = Self::parse(read(&format!("/proc/{tgid}/task/{tid}/stat"), &mut buffer)?)?;
        let (run_ns, run_delay_ns) = schedstat(tid)?;
        (usage.run_ns, usage.run_delay_ns) = (run_ns, run_delay_ns);
        // Without scheduler statistics all that is known is in clock ticks.
        if run_ns == 0 {
            usage.run_ns = usage.utime_ns.saturating_add(usage.stime_ns);
        }
        Some(usage)
    }

    /// Takes CPU time and faults from what the kernel counts for whoever waits for a process. This is that of
    /// the task only if the process has ended, and has always had one task and no children.
    pub(crate) fn take_totals(&mut self, total: &ProcessUsage, schedule: Option<(u64, u64)>) {
        (self.utime_ns, self.stime_ns) = (total.user_ns, total.system_ns);
        (self.minflt, self.majflt) = (total.minor_faults, total.major_faults);
        (self.run_ns, self.run_delay_ns) = schedule.unwrap_or_default();
        if self.run_ns == 0 {
            self.run_ns = total.cpu_ns();
        }
    }

    fn parse(stat: &[u8]) -> Option<Self> {
        // The name in parentheses may contain anything, including parentheses.
        let begin = stat.iter().position(|byte| *byte == b'(')? + 1;
        let end = stat.iter().rposition(|byte| *byte == b')')?;
        let mut usage = Self { comm: comm_of(stat.get(begin..end)?), ..Self::default() };
        let tick_ns = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let fields = stat.get(end + 2..)?.split(|byte| byte.is_ascii_whitespace());
        for (number, field) in (3..).zip(fields).take(22) {
            let value = || std::str::from_utf8(field).ok()?.parse::<u64>().ok();
            match number {
                3 => usage.state = *field.first()?,
                4 => usage.parent_tgid = i32::try_from(value()?).ok()?,
                10 => usage.minflt = value()?,
                12 => usage.majflt = value()?,
                14 => usage.utime_ns = value()?.saturating_mul(tick_ns),
                15 => usage.stime_ns = value()?.saturating_mul(tick_ns),
                24 => usage.rss_pages = value()?,
                _ => {}
            }
        }
        Some(usage)
    }
}

/// A name in the form of records.
pub(crate) fn comm_of(name: &[u8]) -> [u8; 16] {
    let mut comm = [0; 16];
    let len = name.len().min(15);
    comm[..len].copy_from_slice(&name[..len]);
    comm
}

/// CPU time and time spent waiting for a CPU.
pub(crate) fn schedstat(tid: Tid) -> Option<(u64, u64)> {
    schedule_of(read(&format!("/proc/{tid}/schedstat"), &mut [0; 128])?)
}

fn schedule_of(text: &[u8]) -> Option<(u64, u64)> {
    let text = std::str::from_utf8(text).ok()?;
    let mut numbers = text.split_ascii_whitespace().map(str::parse::<u64>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// True if a task is on a CPU, so that its CPU time is not final even if it has ended. None if that may not be
/// read.
pub(crate) fn is_on_cpu(tid: Tid) -> Option<bool> {
    Some(read(&format!("/proc/{tid}/syscall"), &mut [0; 32])?.starts_with(b"running"))
}

/// Memory of a process at its end.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct LastMemory {
    pub(crate) peak_rss_pages: u64,
    pub(crate) file_rss_pages: u32,
}

impl LastMemory {
    fn parse(status: &[u8]) -> Self {
        let page_bytes = rustix::param::page_size() as u64;
        let pages =
            |key: &[u8]| number_after(status, key).unwrap_or(0).saturating_mul(1024) / page_bytes;
        Self {
            peak_rss_pages: pages(b"\nVmHWM:"),
            file_rss_pages: pages(b"\nRssFile:").try_into().unwrap_or(u32::MAX),
        }
    }

    /// Writes it into the record of the end.
    pub(crate) fn tell(self, exit: &mut Exit) {
        exit.maxrss_pages = self.peak_rss_pages;
        exit.maxrss_ever_pages = self.peak_rss_pages;
        exit.file_rss_pages = self.file_rss_pages;
    }
}

/// Fields of the status of a task at its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastStatus {
    pub(crate) memory: LastMemory,
    /// The real parent.
    pub(crate) parent_tgid: i32,
    /// Times that it left its CPU by itself.
    pub(crate) switches: Option<u64>,
    /// None if the kernel has escaped some of it.
    pub(crate) comm: Option<[u8; 16]>,
}

const SWITCHES: &[u8] = b"\nvoluntary_ctxt_switches:";

/// Times that a task has left its CPU by itself: by sleeping, or for the last time.
pub(crate) fn switches(tid: Tid) -> Option<u64> {
    let mut buffer = [0; 4096];
    number_after(read(&format!("/proc/{tid}/status"), &mut buffer)?, SWITCHES)
}

pub(crate) fn last_status(tid: Tid) -> Option<LastStatus> {
    read(&format!("/proc/{tid}/status"), &mut [0; 4096]).map(LastStatus::parse)
}

impl LastStatus {
    fn parse(status: &[u8]) -> Self {
        let parent = number_after(status, b"\nPPid:").and_then(|parent| i32::try_from(parent).ok());
        Self {
            memory: LastMemory::parse(status),
            parent_tgid: parent.unwrap_or(0),
            switches: number_after(status, SWITCHES),
            comm: status
                .strip_prefix(b"Name:\t")
                .and_then(|rest| rest.split(|byte| *byte == b'\n').next())
                .filter(|name| !name.contains(&b'\\'))
                .map(comm_of),
        }
    }
}

/// Tells a root directory from all others, also from the same directory in another mount namespace: mounts have
/// numbers of their own in each, which are not used again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RootId {
    pub(crate) mount: u64,
    pub(crate) inode: u64,
}

/// The files in /proc about the first task of a process that are read while it is stopped or waits to be
/// reaped. Opening one takes longer than reading it, so they are opened while the process runs. What the kernel
/// refuses to open of an ended task, which belongs to the superuser then, may still be read.
#[derive(Debug, Default)]
pub(crate) struct Files {
    opened: Option<Opened>,
}

#[derive(Debug)]
struct Opened {
    directory: OwnedFd,
    status: File,
    schedule: File,
    /// None if they may not be opened.
    io: Option<File>,
    call: Option<File>,
}

impl Files {
    /// Descriptors of one process.
    pub(crate) const DESCRIPTORS: u64 = 5;

    /// Opens them, if the process is still there.
    pub(crate) fn open(&mut self, tid: Tid) {
        let directory = || {
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            openat(CWD, format!("/proc/{tid}"), flags, Mode::empty()).ok()
        };
        let opened = |directory: OwnedFd| {
            let open = |name: &str| {
                let flags = OFlags::RDONLY | OFlags::CLOEXEC;
                openat(&directory, name, flags, Mode::empty()).ok().map(File::from)
            };
            let (status, schedule) = (open("status")?, open("schedstat")?);
            let (io, call) = (open("io"), open("syscall"));
            Some(Opened { directory, status, schedule, io, call })
        };
        self.opened = directory().and_then(opened);
    }

    pub(crate) fn are_open(&self) -> bool {
        self.opened.is_some()
    }

    /// The directory and the name in it from which a file of the process is reached.
    fn at(&self, tid: Tid, name: &str) -> (BorrowedFd<'_>, String) {
        match &self.opened {
            Some(opened) => (opened.directory.as_fd(), name.to_owned()),
            None => (CWD, format!("/proc/{tid}/{name}")),
        }
    }

    /// As [`link`].
    pub(crate) fn link(&self, tid: Tid, name: &str) -> Option<Vec<u8>> {
        let (directory, name) = self.at(tid, name);
        let target = rustix::fs::readlinkat(directory, name, Vec::new()).ok()?;
        Some(target.into_bytes())
    }

    /// The root directory; None if it may not be read, or on kernels before 6.8.
    pub(crate) fn root_id(&self, tid: Tid) -> Option<RootId> {
        let (directory, name) = self.at(tid, "root");
        let wanted = StatxFlags::INO | StatxFlags::from_bits_retain(STATX_MNT_ID_UNIQUE);
        let seen = statx(directory, name, AtFlags::empty(), wanted).ok()?;
        let is_unique = seen.stx_mask & STATX_MNT_ID_UNIQUE != 0;
        is_unique.then_some(RootId { mount: seen.stx_mnt_id, inode: seen.stx_ino })
    }

    /// As [`last_status`].
    pub(crate) fn last_status(&self, tid: Tid) -> Option<LastStatus> {
        let Some(opened) = &self.opened else { return last_status(tid) };
        read_open(&opened.status, &mut [0; 4096]).map(LastStatus::parse)
    }

    /// As [`Io::of_process`].
    pub(crate) fn io(&self, tid: Tid) -> Option<Io> {
        let Some(opened) = &self.opened else { return Io::of_process(tid) };
        Io::parse(read_open(opened.io.as_ref()?, &mut [0; 4096])?)
    }

    /// As [`schedstat`].
    pub(crate) fn schedstat(&self, tid: Tid) -> Option<(u64, u64)> {
        let Some(opened) = &self.opened else { return schedstat(tid) };
        schedule_of(read_open(&opened.schedule, &mut [0; 128])?)
    }

    /// As [`is_on_cpu`], if the file is open.
    pub(crate) fn is_on_cpu(&self) -> Option<bool> {
        let call = self.opened.as_ref()?.call.as_ref()?;
        Some(read_open(call, &mut [0; 32])?.starts_with(b"running"))
    }
}

/// Ids of a task's process and parent, according to its status.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Kin {
    pub(crate) tgid: Tid,
    pub(crate) parent_tgid: Tid,
    /// Pid in its own pid namespace.
    pub(crate) tgid_ns: Tid,
    pub(crate) tid_ns: Tid,
}

pub(crate) fn kin(tid: Tid) -> Option<Kin> {
    let mut buffer = [0; 4096];
    let status = read(&format!("/proc/{tid}/status"), &mut buffer)?;
    let id = |name| Tid::try_from(number_after(status, name)?).ok();
    let innermost = |name| Tid::try_from(numbers_after(status, name).last()?).ok();
    Some(Kin {
        tgid: id(b"\nTgid:")?,
        parent_tgid: id(b"\nPPid:")?,
        tgid_ns: innermost(b"\nNStgid:").unwrap_or(tid),
        tid_ns: innermost(b"\nNSpid:").unwrap_or(tid),
    })
}

/// The number of seccomp filters of a task, since Linux 5.9.
pub(crate) fn filters(tid: Tid) -> Option<u64> {
    let mut buffer = [0; 4096];
    number_after(read(&format!("/proc/{tid}/status"), &mut buffer)?, b"\nSeccomp_filters:")
}

/// Begin and end of the vDSO of a task.
pub(crate) fn vdso(tid: Tid) -> Option<(u64, u64)> {
    let maps = std::fs::read(format!("/proc/{tid}/maps")).ok()?;
    let mut lines = maps.split(|byte| *byte == b'\n');
    let line = std::str::from_utf8(lines.find(|line| line.ends_with(b"[vdso]"))?).ok()?;
    let (begin, end) = line.split_whitespace().next()?.split_once('-')?;
    Some((u64::from_str_radix(begin, 16).ok()?, u64::from_str_radix(end, 16).ok()?))
}

/// A link in the directory of a task; None if it may not be read.
pub(crate) fn link(tid: Tid, name: &str) -> Option<Vec<u8>> {
    let target = std::fs::read_link(format!("/proc/{tid}/{name}")).ok()?;
    Some(target.into_os_string().into_vec())
}

/// statx(2): mount ids that are never used again, from Linux 6.8.
const STATX_MNT_ID_UNIQUE: u32 = 0x4000;

/// The beginning of a file, read at once as these files require.
fn read<'a>(path: &str, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    read_open(&File::open(path).ok()?, buffer)
}

/// The same of an open file, from its beginning: it then says what is true now.
fn read_open<'a>(file: &File, buffer: &'a mut [u8]) -> Option<&'a [u8]> {
    loop {
        match file.read_at(buffer, 0) {
            Ok(len) => return (len > 0).then_some(&buffer[..len]),
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

fn numbers_after<'a>(text: &'a [u8], name: &[u8]) -> impl Iterator<Item = u64> + use<'a> {
    let at = memchr::memmem::find(text, name);
    let rest = at.map_or(&[][..], |at| &text[at + name.len()..]);
    let line = rest.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
    words.map_while(|word| std::str::from_utf8(word).ok()?.parse().ok())
}

fn number_after(text: &[u8], name: &[u8]) -> Option<u64> {
    numbers_after(text, name).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_may_contain_anything() {
        let stat =
            b"7 (a) S (b)) R 1 7 7 0 -1 4194304 90 1 5 2 3 4 0 0 20 0 1 0 1234 2564096 200 18446\n";
        let usage = Usage::parse(stat).expect("a line of stat");
        assert_eq!(&usage.comm[..9], b"a) S (b)\0");
        assert_eq!((usage.state, usage.parent_tgid, usage.rss_pages), (b'R', 1, 200));
        assert_eq!((usage.minflt, usage.majflt), (90, 5));
        assert_eq!(usage.utime_ns, 3 * 1_000_000_000 / rustix::param::clock_ticks_per_second());
        assert_eq!(Usage::parse(b"7 (a"), None);
        assert_eq!(Usage::parse(b"7 (a)"), None);
    }

    #[test]
    fn this_task_is_described() {
        let tid = rustix::thread::gettid().as_raw_nonzero().get();
        let tgid = Tid::try_from(std::process::id()).expect("a pid");
        // The time of a new thread is added up when it leaves its CPU for the first time.
        std::thread::sleep(std::time::Duration::from_millis(2));
        let usage = Usage::of(tgid, tid).expect("it is there");
        assert!(usage.run_ns > 0 && usage.io.is_some());
        let kin = kin(tid).expect("it is there");
        assert_eq!((kin.tgid, kin.parent_tgid), (tgid, usage.parent_tgid));
        let last = last_status(tid).expect("it is there");
        assert!(last.memory.peak_rss_pages > 10 && last.switches <= switches(tid), "{last:?}");
        assert_eq!(last.comm, Some(usage.comm));
        assert!(link(tid, "ns/mnt").expect("it is ours").starts_with(b"mnt:["));
        assert_eq!(Usage::of(tgid, 1), None);
    }

    #[test]
    fn open_files_tell_of_a_process_that_waits_to_be_reaped() {
        let mut child = std::process::Command::new("cat")
            .stdin(std::process::Stdio::piped())
            .spawn()
            .expect("cat(1) starts");
        let tid = Tid::try_from(child.id()).expect("a pid");
        let (by_path, mut files) = (Files::default(), Files::default());
        files.open(tid);
        assert!(files.are_open() && !by_path.are_open());
        for name in ["cwd", "ns/pid"] {
            assert_eq!(files.link(tid, name), link(tid, name));
        }
        assert_eq!(files.root_id(tid), by_path.root_id(tid));
        drop(child.stdin.take());
        let running = files.last_status(tid).expect("it is there");
        while Usage::of_stat(tid, tid).is_some_and(|usage| usage.state != b'Z') {
            std::thread::yield_now();
        }
        let ended = files.last_status(tid).expect("nobody has reaped it");
        assert_eq!(ended.parent_tgid, running.parent_tgid);
        assert_eq!(ended.memory, LastMemory::default(), "it has no memory any more");
        // The superuser may open them now, others may not.
        let io = files.io(tid).expect("this is what they are opened for");
        assert!(io.rchar > 0 && by_path.io(tid).is_none_or(|opened| opened == io), "{io:?}");
        while files.is_on_cpu() == Some(true) {
            std::thread::yield_now();
        }
        assert_eq!(files.schedstat(tid), schedstat(tid));
        child.wait().expect("it is reaped");
        assert_eq!((files.last_status(tid), files.io(tid)), (None, None));
    }

    #[test]
    fn numbers_are_those_of_their_line() {
        let text = b"Name:\tx\nNSpid:\t17\t3\nVmHWM:\t  12 kB\n";
        assert_eq!(numbers_after(text, b"\nNSpid:").collect::<Vec<_>>(), [17, 3]);
        assert_eq!(number_after(text, b"\nVmHWM:"), Some(12));
        assert_eq!(number_after(text, b"\nName:"), None);
    }
}
