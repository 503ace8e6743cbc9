//! The file systems on which look-ups failed.

use std::collections::HashMap;
use std::sync::Arc;

use proctrace_findings::LookupPlace;
use proctrace_libsearch::Files;
use proctrace_recording::costs::Durations;
use proctrace_wire::escape::to_text;

use crate::mounts::{Mounts, Root};
use crate::views::Views;

/// A root other than the recorder's, and a call.
type Searcher = (Option<Arc<Root>>, &'static str);

/// Failed look-ups by the file system on which they were made.
#[derive(Debug, Default)]
pub(crate) struct FileSystems {
    groups: Vec<(LookupPlace, Durations)>,
    /// By type, source and mount point, and by call.
    numbers: HashMap<([Vec<u8>; 3], &'static str), usize>,
    /// By root, call and directory: most look-ups are made in directories that were searched before.
    directories: HashMap<Searcher, HashMap<Vec<u8>, usize>>,
}

impl FileSystems {
    /// The group of a look-up in this directory; a relative one is not known to belong to any. Symbolic
    /// links are followed as `files` has them.
    pub(crate) fn of(
        &mut self,
        views: &Views<'_>,
        files: Option<&dyn Files>,
        root: Option<&Arc<Root>>,
        directory: &[u8],
        call: &'static str,
    ) -> usize {
        let known = self.directories.entry((root.cloned(), call)).or_default();
        if let Some(number) = known.get(directory) {
            return *number;
        }
        let real = files.map_or_else(|| directory.to_vec(), |files| real(files, directory));
        let key = match views.recorded().of(root.map(|root| &**root), &real) {
            Some(mount) => [mount.fs_type.clone(), mount.source.clone(), mount.point.clone()],
            None => [Vec::new(), Vec::new(), Vec::new()],
        };
        let next = self.groups.len();
        let number = *self.numbers.entry((key.clone(), call)).or_insert(next);
        if number == next {
            let text = |bytes: &[u8]| (!key[2].is_empty()).then(|| to_text(bytes).into_owned());
            let place = LookupPlace {
                fs_type: text(&key[0]),
                source: text(&key[1]),
                mount_point: text(&key[2]),
                call,
                misses: 0,
                processes: 0,
                cost: None,
            };
            self.groups.push((place, Durations::default()));
        }
        let known = self.directories.entry((root.cloned(), call)).or_default();
        known.insert(directory.to_vec(), number);
        number
    }

    pub(crate) fn miss(&mut self, number: usize) {
        self.groups[number].1.misses += 1;
    }

    pub(crate) fn time(&mut self, number: usize, duration_ns: u32) {
        self.groups[number].1.time(duration_ns);
    }

    /// Counts a process for each of its groups.
    pub(crate) fn end(&mut self, numbers: &[usize]) {
        for number in numbers {
            self.groups[*number].0.processes += 1;
        }
    }

    /// Most failed look-ups first; nothing if no mount table was recorded.
    pub(crate) fn finish(self, mounts: &Mounts) -> Vec<LookupPlace> {
        if mounts.is_empty() {
            return Vec::new();
        }
        let finished = |(place, durations): (LookupPlace, Durations)| LookupPlace {
            misses: durations.misses,
            cost: durations.cost(),
            ..place
        };
        let mut places: Vec<_> = self.groups.into_iter().map(finished).collect();
        places.retain(|place| place.misses > 0);
        places.sort_by(|a, b| {
            let key = |place: &LookupPlace| (place.mount_point.clone(), place.call);
            b.misses.cmp(&a.misses).then_with(|| key(a).cmp(&key(b)))
        });
        places
    }
}

/// A path without the symbolic links of the directories in it that exist.
fn real(files: &dyn Files, path: &[u8]) -> Vec<u8> {
    let mut end = path.len();
    loop {
        if let Some(mut real) = files.real(if end == 0 { b"/" } else { &path[..end] }) {
            if real == b"/" {
                real.clear();
            }
            real.extend_from_slice(&path[end..]);
            return if real.is_empty() { b"/".to_vec() } else { real };
        }
        match path[..end].iter().rposition(|byte| *byte == b'/') {
            Some(slash) if end > 0 => end = slash,
            _ => return path.to_vec(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mounts::tests::recorded;
    use proctrace_libsearch::Found;
    use proctrace_replay::MountTable;

    /// "/software" is a link to a directory of a network file system.
    struct Linked;

    impl Files for Linked {
        fn at(&self, _: &[u8]) -> Found {
            Found::Nothing
        }

        fn real(&self, path: &[u8]) -> Option<Vec<u8>> {
            match path {
                b"/software" => Some(b"/cvmfs/alice.cern.ch/lib".to_vec()),
                b"/" => Some(b"/".to_vec()),
                _ => None,
            }
        }
    }

    #[test]
    fn look_ups_are_counted_by_mount_point() {
        let mut systems = FileSystems::default();
        let make = |_| -> Arc<dyn Files> { Arc::new(Linked) };
        let views = Views::new(recorded(), MountTable::default(), &make);
        let root = ["/usr/lib", "/opt", "/"];
        for directory in root.into_iter().chain(["/mnt/x", "relative", "/software/x/y"]) {
            let number = systems.of(&views, Some(&Linked), None, directory.as_bytes(), "open");
            systems.miss(number);
        }
        let number = systems.of(&views, Some(&Linked), None, b"/mnt/x", "stat");
        systems.miss(number);
        let found = systems.finish(views.recorded());
        let found: Vec<_> =
            found.iter().map(|p| (p.fs_type.as_deref(), p.call, p.misses)).collect();
        let expected = [
            (Some("ext4"), "open", 3),
            (None, "open", 1),
            (Some("fuse"), "open", 1),
            (Some("nfs4"), "open", 1),
            (Some("nfs4"), "stat", 1),
        ];
        assert_eq!(found, expected);
    }
}
