//! Mount tables: to which file system a path belongs.

use proctrace_wire::layout::MountsFixed;

/// A mounted file system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Directory on which it is mounted, seen from the root of the mount namespace.
    pub point: Vec<u8>,
    /// The directory of the file system that is mounted there: not "/" for bind mounts.
    pub inside: Vec<u8>,
    /// Its type: "ext4", "overlay", "nfs4", "fuse".
    pub fs_type: Vec<u8>,
    /// Source of the mount: a device, "server:/export", "cvmfs2".
    pub source: Vec<u8>,
    /// Major and minor number of its device, as in `st_dev` of stat(2).
    pub device: (u32, u32),
}

/// The mounts of a namespace, in the order in which the kernel lists them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MountTable {
    /// Inode number of /proc/PID/ns/mnt.
    pub namespace: u32,
    /// The mounts.
    pub mounts: Vec<Mount>,
}

impl MountTable {
    /// Parses lines of proc_pid_mountinfo(5), with or without options. Other lines are left out.
    pub fn parse(namespace: u32, text: &[u8]) -> Self {
        let mounts = text.split(|byte| *byte == b'\n').filter_map(mount).collect();
        Self { namespace, mounts }
    }

    /// The mount to which a path of the namespace belongs, without regard to symbolic links; None for a
    /// relative path.
    pub fn of(&self, path: &[u8]) -> Option<&Mount> {
        let within = |mount: &&Mount| {
            let point = mount.point.strip_suffix(b"/").unwrap_or(&mount.point);
            path.strip_prefix(point).is_some_and(|rest| matches!(rest.first(), None | Some(b'/')))
        };
        // Of several at one point, the last covers the others.
        let candidates = self.mounts.iter().filter(within);
        candidates.max_by_key(|mount| mount.point.strip_suffix(b"/").unwrap_or(&mount.point).len())
    }
}

fn mount(line: &[u8]) -> Option<Mount> {
    let mut fields = line.split(|byte| *byte == b' ');
    let (_id, _parent) = (fields.next()?, fields.next()?);
    let device = std::str::from_utf8(fields.next()?).ok()?;
    let (major, minor) = device.split_once(':')?;
    let (inside, point) = (fields.next()?, fields.next()?);
    fields.find(|field| *field == b"-")?;
    Some(Mount {
        point: unescaped(point),
        inside: unescaped(inside),
        fs_type: fields.next()?.to_vec(),
        source: unescaped(fields.next()?),
        device: (major.parse().ok()?, minor.parse().ok()?),
    })
}

/// The inverse of the kernel's mangling: "\040" is a space.
fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text;
    while let [first, after @ ..] = rest {
        let code = match (first, after) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', ..]) => {
                Some(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'))
            }
            _ => None,
        };
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[3..] } else { after };
    }
    bytes
}

/// Maximum size of a table that is put together; the recorder writes none that is larger.
const TABLE_BYTES_MAX: u32 = 16 << 20;

/// Puts a table together from its records.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    namespace: u32,
    bytes: Vec<u8>,
}

impl Parts {
    /// Takes the next part; returns the table when it is complete. Tables that lack a part are dropped.
    pub(crate) fn take(&mut self, part: &MountsFixed, bytes: &[u8]) -> Option<MountTable> {
        if part.offset == 0 {
            (self.namespace, self.bytes) = (part.mount_namespace, Vec::new());
        }
        let continues = part.mount_namespace == self.namespace
            && part.offset as usize == self.bytes.len()
            && part.total_bytes <= TABLE_BYTES_MAX;
        if !continues {
            self.bytes = Vec::new();
            return None;
        }
        self.bytes.extend_from_slice(bytes);
        if self.bytes.len() < part.total_bytes as usize {
            return None;
        }
        let table = MountTable::parse(self.namespace, &self.bytes);
        self.bytes = Vec::new();
        Some(table)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use zerocopy::FromZeros;

    const TABLE: &[u8] = b"21 1 254:0 / / - ext4 /dev/vda\n\
        30 21 0:50 / /cvmfs/alice.cern.ch - fuse cvmfs2\n\
        31 21 0:51 /export /mnt/a\\040b - nfs4 server:/x\n\
        garbage\n\
        32 21 0:52 / /mnt rw,nosuid shared:3 - tmpfs none rw\n\
        33 21 0:53 / /mnt - tmpfs second\n";

    fn source(path: &str) -> Option<String> {
        let table = MountTable::parse(1, TABLE);
        let mount = table.of(path.as_bytes())?;
        Some(String::from_utf8(mount.source.clone()).unwrap())
    }

    #[test]
    fn a_path_belongs_to_the_deepest_mount_and_to_the_last_of_equals() {
        for (path, expected) in [
            ("/", "/dev/vda"),
            ("/cvmfs", "/dev/vda"),
            ("/cvmfs/alice.cern.ch", "cvmfs2"),
            ("/cvmfs/alice.cern.ch/lib/libm.so", "cvmfs2"),
            ("/cvmfs/alice.cern.chx", "/dev/vda"),
            ("/mnt/x", "second"),
            ("/mnt/a b/c", "server:/x"),
        ] {
            assert_eq!(source(path).as_deref(), Some(expected), "{path}");
        }
        assert_eq!(source("lib/libm.so"), None);
        assert_eq!(MountTable::parse(1, TABLE).mounts[2].device, (0, 51));
    }

    #[test]
    fn a_table_without_one_of_its_parts_is_dropped() {
        let part = |offset: u32, bytes: &[u8]| {
            let mut part = MountsFixed::new_zeroed();
            (part.mount_namespace, part.offset) = (7, offset);
            (part.bytes, part.total_bytes) = (bytes.len() as u32, TABLE.len() as u32);
            part
        };
        let mut parts = Parts::default();
        let (a, rest) = TABLE.split_at(50);
        let (b, c) = rest.split_at(50);
        assert_eq!(parts.take(&part(0, a), a), None);
        assert_eq!(parts.take(&part(100, c), c), None);
        assert_eq!(parts.take(&part(0, a), a), None);
        assert_eq!(parts.take(&part(50, b), b), None);
        assert_eq!(parts.take(&part(100, c), c), Some(MountTable::parse(7, TABLE)));
    }

    proptest! {
        #[test]
        fn any_text_is_a_table(text: Vec<u8>, path: Vec<u8>) {
            let _ = MountTable::parse(0, &text).of(&path);
        }

        #[test]
        fn what_the_kernel_escapes_comes_back(path: Vec<u8>) {
            let mut escaped = Vec::new();
            for byte in &path {
                match byte {
                    b' ' | b'\t' | b'\n' | b'\\' => {
                        escaped.extend(format!("\\{byte:03o}").bytes());
                    }
                    byte => escaped.push(*byte),
                }
            }
            prop_assert_eq!(unescaped(&escaped), path);
        }
    }
}
