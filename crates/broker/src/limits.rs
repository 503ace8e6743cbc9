//! Limits on what the recordings of a user may take of the machine.
//!
//! A user here is one of the initial user namespace: what is done in other namespaces is charged to those who have
//! created them, since a user may have 65,536 ids there.

use std::collections::HashMap;

/// Maximum of what users may have at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Recordings of a user.
    pub recordings_per_user: usize,
    /// Recordings of all users.
    pub recordings: usize,
    /// Bytes of the rings of a user.
    pub ring_bytes_per_user: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { recordings_per_user: 16, recordings: 128, ring_bytes_per_user: 512 << 20 }
    }
}

/// Connections of a user beyond its recordings: those that have not asked for anything yet.
const ASKING_MAX: usize = 16;

/// Current holdings of each user.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    users: HashMap<u32, Held>,
    recordings: usize,
    /// Connections of each user.
    connections: HashMap<u32, usize>,
}

#[derive(Debug, Default, Clone, Copy)]
struct Held {
    recordings: usize,
    ring_bytes: u64,
}

impl Ledger {
    /// Notes that a user has connected.
    ///
    /// # Errors
    /// Why it is not served.
    pub(crate) fn connect(&mut self, limits: &Limits, uid: u32) -> Result<(), String> {
        let connections = self.connections.entry(uid).or_default();
        if *connections >= limits.recordings_per_user.saturating_add(ASKING_MAX) {
            return Err(format!("user {uid} has {connections} connections, the limit"));
        }
        *connections += 1;
        Ok(())
    }

    /// Notes that one of its connections is closed.
    pub(crate) fn disconnect(&mut self, uid: u32) {
        let Some(connections) = self.connections.get_mut(&uid) else { return };
        *connections = connections.saturating_sub(1);
        if *connections == 0 {
            self.connections.remove(&uid);
        }
    }

    /// Notes that a user begins a recording.
    ///
    /// # Errors
    /// Why it may not.
    pub(crate) fn begin(
        &mut self,
        limits: &Limits,
        uid: u32,
        ring_bytes: u64,
    ) -> Result<(), String> {
        let held = self.users.get(&uid).copied().unwrap_or_default();
        if self.recordings >= limits.recordings {
            return Err(format!("{} recordings are in progress, the limit", self.recordings));
        }
        if held.recordings >= limits.recordings_per_user {
            return Err(format!("user {uid} has {} recordings, the limit", held.recordings));
        }
        let ring_bytes = held.ring_bytes.saturating_add(ring_bytes);
        if ring_bytes > limits.ring_bytes_per_user {
            return Err(format!(
                "the buffers of user {uid} would take {} MiB; the limit is {} MiB: use a smaller --ring-size",
                ring_bytes >> 20,
                limits.ring_bytes_per_user >> 20
            ));
        }
        self.users.insert(uid, Held { recordings: held.recordings + 1, ring_bytes });
        self.recordings += 1;
        Ok(())
    }

    /// Notes that it has ended.
    pub(crate) fn end(&mut self, uid: u32, ring_bytes: u64) {
        let Some(held) = self.users.get_mut(&uid) else { return };
        held.recordings = held.recordings.saturating_sub(1);
        held.ring_bytes = held.ring_bytes.saturating_sub(ring_bytes);
        if held.recordings == 0 {
            self.users.remove(&uid);
        }
        self.recordings = self.recordings.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_of_a_user_are_limited() {
        let limits = Limits { recordings_per_user: 1, ..Limits::default() };
        let mut ledger = Ledger::default();
        for _ in 0..=ASKING_MAX {
            ledger.connect(&limits, 1).unwrap();
        }
        assert!(ledger.connect(&limits, 1).unwrap_err().contains("17 connections"));
        ledger.connect(&limits, 2).unwrap();
        ledger.disconnect(1);
        ledger.connect(&limits, 1).unwrap();
        ledger.disconnect(2);
        assert!(!ledger.connections.contains_key(&2));
    }

    #[test]
    fn each_user_and_all_together_are_limited() {
        let limits = Limits { recordings_per_user: 2, recordings: 3, ring_bytes_per_user: 100 };
        let mut ledger = Ledger::default();
        ledger.begin(&limits, 1, 50).unwrap();
        assert!(ledger.begin(&limits, 1, 51).unwrap_err().contains("ring-size"));
        ledger.begin(&limits, 1, 50).unwrap();
        assert!(ledger.begin(&limits, 1, 0).unwrap_err().contains("user 1 has 2"));
        ledger.begin(&limits, 2, 100).unwrap();
        assert!(ledger.begin(&limits, 3, 0).unwrap_err().contains("3 recordings"));
        ledger.end(1, 50);
        ledger.begin(&limits, 3, 0).unwrap();
        for (uid, bytes) in [(1, 50), (2, 100), (3, 0), (3, 0)] {
            ledger.end(uid, bytes);
        }
        assert!(ledger.users.is_empty());
        assert_eq!(ledger.recordings, 0);
    }
}
