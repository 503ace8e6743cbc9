//! What /proc/PID/status and /proc/PID/uid_map, which all may read, tell of a client.

/// What matters of /proc/PID/status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Status {
    /// Real, effective and saved user id.
    pub(crate) uids: [u32; 3],
    /// The same of groups.
    pub(crate) gids: [u32; 3],
    /// Its pid namespace is this many levels below that of the reader.
    pub(crate) pid_level: u32,
    /// Permitted capabilities.
    pub(crate) permitted: u64,
    /// Ambient ones.
    pub(crate) ambient: u64,
}

impl Status {
    /// Reads the file; `None` if a line is missing.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let line = |name: &str| {
            text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
        };
        let ids = |name| {
            let mut ids = line(name)?.split_whitespace().map(str::parse);
            Some([ids.next()?.ok()?, ids.next()?.ok()?, ids.next()?.ok()?])
        };
        let mask = |name| u64::from_str_radix(line(name)?, 16).ok();
        let levels = u32::try_from(line("NSpid")?.split_whitespace().count()).ok()?;
        Some(Self {
            uids: ids("Uid")?,
            gids: ids("Gid")?,
            pid_level: levels.checked_sub(1)?,
            permitted: mask("CapPrm")?,
            ambient: mask("CapAmb")?,
        })
    }

    /// Whether it acts for one user only: a set-user-ID program would record for its caller what its owner
    /// may see.
    pub(crate) fn is_one_user(&self) -> bool {
        let same = |ids: [u32; 3]| ids.iter().all(|id| *id == ids[0]);
        same(self.uids) && same(self.gids)
    }
}

/// Whether this is the map of the initial user namespace, as seen from it: only there do capabilities reach
/// beyond the namespace.
pub(crate) fn is_initial(uid_map: &str) -> bool {
    uid_map.split_whitespace().eq(["0", "0", "4294967295"])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_status_is_read() {
        let text = "Name:\tx Uid:\nUid:\t1\t2\t3\t4\nGid:\t5\t5\t5\t6\nNSpid:\t77\t1\nCapPrm:\t0000000000000003\n\
                    CapAmb:\t0000000000000001\n";
        let status = Status::read(text).unwrap();
        assert_eq!((status.uids, status.gids, status.pid_level), ([1, 2, 3], [5; 3], 1));
        assert_eq!((status.permitted, status.ambient), (3, 1));
        assert!(!status.is_one_user());
        let own = std::fs::read_to_string("/proc/self/status").unwrap();
        assert_eq!(Status::read(&own).unwrap().uids[0], rustix::process::getuid().as_raw());
        assert!(is_initial("         0          0 4294967295\n"));
        assert!(!is_initial("         0       1000          1\n"));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text: String) {
            let _ = Status::read(&text);
        }
    }
}
