//! Mount tables: which file system is mounted where, for each mount namespace of a recording.

use std::collections::HashMap;
use std::fs;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;

use proctrace_wire::layout::{Attach, Head, MOUNTS_CHUNK, MountsFixed, PLACE_CUT, PlaceFixed};
use proctrace_wire::{IntoBytes, Kind};

use crate::clock::boot_ns;

/// Maximum part of a table that is recorded: that of a machine with ten thousand containers has 10 MB.
const TABLE_BYTES_MAX: u64 = 16 << 20;

/// Number of namespaces beyond which those are forgotten whose process has ended: a recording of all jobs of
/// a node sees new ones for as long as the node runs.
const NAMESPACES_MAX: usize = 256;

/// Number of searches through /proc after which tables of namespaces whose first process has ended
/// already are not searched for any more.
const SEARCHES_MAX: u32 = 64;

/// The mount tables recorded so far.
#[derive(Debug, Default)]
pub(crate) struct MountTables {
    /// Tables as recorded last, by namespace.
    tables: HashMap<u32, Vec<u8>>,
    /// The processes through which the namespaces can be read.
    through: HashMap<u32, Through>,
    searches: u32,
    /// True if each process in a namespace needs the table, since its job's trace may not have it. Besides,
    /// the numbers of namespaces are used again, and a table may be of a job that has ended.
    repeats: bool,
}

/// A process in a mount namespace.
#[derive(Debug, Clone)]
struct Through {
    task: u32,
    /// Name of the directory in /proc: "self" for the recorder.
    process: String,
    /// Its root in the namespace. Its /proc/PID/mountinfo names mount points from there.
    root: Vec<u8>,
}

impl MountTables {
    /// Tables of a recording whose records go to many traces.
    pub(crate) fn for_many_jobs() -> Self {
        Self { repeats: true, ..Self::default() }
    }

    /// Records of the recorder's own namespace.
    pub(crate) fn own(&mut self) -> Vec<u8> {
        let Ok(namespace) = fs::metadata("/proc/self/ns/mnt") else { return Vec::new() };
        let Ok(namespace) = u32::try_from(namespace.ino()) else { return Vec::new() };
        let root = fs::read_link("/proc/self/root").unwrap_or_else(|_| "/".into());
        let through = Through {
            task: 0,
            process: "self".to_owned(),
            root: root.as_os_str().as_bytes().to_vec(),
        };
        self.through.insert(namespace, through);
        self.read(namespace)
    }

    /// Records of the namespace of a place, if it is new.
    pub(crate) fn of(&mut self, place: &PlaceFixed, root: &[u8]) -> Vec<u8> {
        let namespace = place.mount_namespace;
        if place.bits & PLACE_CUT != 0 || (self.tables.contains_key(&namespace) && !self.repeats) {
            return Vec::new();
        }
        self.tables.remove(&namespace);
        let through =
            Through { task: place.head.task, process: place.tgid.to_string(), root: root.to_vec() };
        self.through.insert(namespace, through);
        let records = self.read(namespace);
        if records.is_empty() { self.search(namespace) } else { records }
    }

    /// Records of all namespaces whose tables have changed.
    pub(crate) fn changed(&mut self) -> Vec<u8> {
        if self.through.len() > NAMESPACES_MAX {
            self.through.retain(|namespace, through| is_in(&through.process, *namespace));
            self.tables.retain(|namespace, _| self.through.contains_key(namespace));
            self.searches = 0;
        }
        let mut namespaces: Vec<u32> = self.through.keys().copied().collect();
        namespaces.sort_unstable();
        namespaces.into_iter().flat_map(|namespace| self.read(namespace)).collect()
    }

    /// Reads a namespace through another process than the one that has ended.
    fn search(&mut self, namespace: u32) -> Vec<u8> {
        if self.searches >= SEARCHES_MAX {
            return Vec::new();
        }
        self.searches += 1;
        let Ok(processes) = fs::read_dir("/proc") else { return Vec::new() };
        let names = processes.flatten().filter_map(|entry| entry.file_name().into_string().ok());
        for process in names.filter(|name| name.bytes().all(|byte| byte.is_ascii_digit())) {
            // Others than the process itself have other roots, unless theirs is that of the namespace.
            if is_in(&process, namespace) && root_of(&process).as_deref() == Some(b"/") {
                let through = Through { task: 0, process, root: b"/".to_vec() };
                self.through.insert(namespace, through);
                return self.read(namespace);
            }
        }
        Vec::new()
    }

    /// The records of a namespace; none if its table cannot be read, or equals that of the last time.
    fn read(&mut self, namespace: u32) -> Vec<u8> {
        let Some(through) = self.through.get(&namespace) else { return Vec::new() };
        let Some(table) = table_of(&through.process, namespace, &through.root) else {
            return Vec::new();
        };
        if self.tables.get(&namespace) == Some(&table) {
            return Vec::new();
        }
        let records = records(namespace, through.task, &table);
        self.tables.insert(namespace, table);
        records
    }
}

/// The place of a process that existed before the recording, if it differs from the recorder's; None
/// also if it may not be read.
pub(crate) fn place_before(attach: &Attach) -> Option<Vec<u8>> {
    let process = attach.tgid.to_string();
    let namespace = fs::metadata(format!("/proc/{process}/ns/mnt")).ok()?.ino();
    let root = root_of(&process)?;
    let own = fs::metadata("/proc/self/ns/mnt").ok()?.ino();
    if namespace == own && root == b"/" {
        return None;
    }
    let size = (size_of::<PlaceFixed>() + root.len()).next_multiple_of(8);
    let place = PlaceFixed {
        head: Head {
            kind: Kind::Place as u16,
            size: u16::try_from(size).ok()?,
            task: attach.head.task,
            time_ns: attach.head.time_ns,
        },
        process: attach.process,
        tgid: attach.tgid,
        mount_namespace: u32::try_from(namespace).ok()?,
        path_bytes: u16::try_from(root.len()).ok()?,
        bits: 0,
    };
    let mut record = place.as_bytes().to_vec();
    record.extend_from_slice(&root);
    record.resize(size, 0);
    Some(record)
}

fn root_of(process: &str) -> Option<Vec<u8>> {
    let root = fs::read_link(format!("/proc/{process}/root")).ok()?;
    Some(root.into_os_string().into_encoded_bytes())
}

/// True if a process is in a mount namespace. Its pid may be that of another pid namespace, or be used
/// again.
fn is_in(process: &str, namespace: u32) -> bool {
    fs::metadata(format!("/proc/{process}/ns/mnt"))
        .is_ok_and(|found| found.ino() == u64::from(namespace))
}

/// The table of a namespace as a process sees it whose root is `root`.
fn table_of(process: &str, namespace: u32, root: &[u8]) -> Option<Vec<u8>> {
    if !is_in(process, namespace) {
        return None;
    }
    let mut text = Vec::new();
    let file = fs::File::open(format!("/proc/{process}/mountinfo")).ok()?;
    file.take(TABLE_BYTES_MAX).read_to_end(&mut text).ok()?;
    is_in(process, namespace).then(|| without_options(&text, root))
}

/// The lines of a mountinfo file without mount options, with mount points as seen from the root of the
/// namespace.
fn without_options(text: &[u8], root: &[u8]) -> Vec<u8> {
    let prefix = if root == b"/" { Vec::new() } else { escaped(root) };
    let mut table = Vec::with_capacity(text.len());
    for line in text.split(|byte| *byte == b'\n') {
        let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
        let separator = fields.iter().position(|field| *field == b"-");
        let (Some(first), Some(after)) =
            (fields.get(..5), separator.and_then(|at| fields.get(at + 1..at + 3)))
        else {
            continue;
        };
        let [id, parent, device, inside, point] = first else { continue };
        let point = if prefix.is_empty() || *point != b"/" { point } else { &&b""[..] };
        let point = [&prefix[..], point].concat();
        let line = [*id, *parent, *device, *inside, &point, b"-", after[0], after[1]];
        table.extend_from_slice(&line.join(&b' '));
        table.push(b'\n');
    }
    table
}

/// A path as mountinfo has it: white space and backslashes as octal numbers.
fn escaped(path: &[u8]) -> Vec<u8> {
    let mut text = Vec::with_capacity(path.len());
    for byte in path {
        match byte {
            b' ' | b'\t' | b'\n' | b'\\' => text.extend(format!("\\{byte:03o}").bytes()),
            byte => text.push(*byte),
        }
    }
    text
}

/// A table in records of bounded size.
fn records(namespace: u32, task: u32, table: &[u8]) -> Vec<u8> {
    let mut records = Vec::new();
    let time_ns = boot_ns();
    let (mut offset, total_bytes) = (0_u32, u32::try_from(table.len()).unwrap_or(u32::MAX));
    for part in table.chunks(MOUNTS_CHUNK) {
        let size = (size_of::<MountsFixed>() + part.len()).next_multiple_of(8);
        // Fits: a part is smaller than a record may be.
        let bytes = part.len() as u32;
        let fixed = MountsFixed {
            head: Head { kind: Kind::Mounts as u16, size: size as u16, task, time_ns },
            mount_namespace: namespace,
            offset,
            bytes,
            total_bytes,
        };
        let end = records.len() + size;
        records.extend_from_slice(fixed.as_bytes());
        records.extend_from_slice(part);
        records.resize(end, 0);
        offset += bytes;
    }
    records
}

#[cfg(test)]
mod tests {
    use proctrace_wire::{Frames, Record};

    use super::*;

    #[test]
    fn options_are_left_out_and_points_begin_at_the_root_of_the_namespace() {
        let text = b"21 1 254:0 / / rw,relatime shared:1 - ext4 /dev/vda rw,secret=x\n\
                     30 21 0:5 / /mnt/a\\040b rw master:1 propagate_from:2 - tmpfs none rw,size=1\n\
                     broken line\n40 21 0:6 / /x rw -\n";
        let table = "21 1 254:0 / / - ext4 /dev/vda\n30 21 0:5 / /mnt/a\\040b - tmpfs none\n";
        assert_eq!(String::from_utf8_lossy(&without_options(text, b"/")), table);
        let below = "21 1 254:0 / /srv/r\\040t - ext4 /dev/vda\n\
                     30 21 0:5 / /srv/r\\040t/mnt/a\\040b - tmpfs none\n";
        assert_eq!(String::from_utf8_lossy(&without_options(text, b"/srv/r t")), below);
    }

    #[test]
    fn the_own_table_is_recorded_once_and_has_a_root() {
        let mut tables = MountTables::default();
        let records = tables.own();
        let mut text = Vec::new();
        for frame in Frames::new(&records) {
            let Record::Mounts(fixed, part) = Record::decode(frame.unwrap()).unwrap() else {
                panic!("not a mount table")
            };
            assert_eq!(fixed.offset as usize, text.len());
            text.extend_from_slice(part);
            assert!(text.len() <= fixed.total_bytes as usize);
        }
        let text = String::from_utf8(text).unwrap();
        assert!(text.lines().any(|line| line.split(' ').nth(4) == Some("/")), "{text}");
        assert_eq!(tables.changed(), b"");
        assert_eq!(tables.own(), b"");
    }

    #[test]
    fn a_long_table_is_recorded_in_parts() {
        let table: Vec<u8> = (0..100_000u32).flat_map(u32::to_le_bytes).collect();
        let records = records(1, 2, &table);
        let mut back = Vec::new();
        for frame in Frames::new(&records) {
            let Record::Mounts(_, part) = Record::decode(frame.unwrap()).unwrap() else { panic!() };
            back.extend_from_slice(part);
        }
        assert_eq!(back, table);
    }
}
