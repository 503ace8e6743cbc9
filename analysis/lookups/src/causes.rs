//! The causes of failed look-ups: counted, timed, and named.

use std::collections::BTreeMap;

use proctrace_findings::LookupCause;
use proctrace_libsearch::{Cause, Files, Found};
use proctrace_wire::escape::to_text;

use proctrace_recording::costs::Durations;

/// The causes found so far.
#[derive(Default)]
pub(crate) struct Causes {
    all: Vec<(LookupCause, Durations)>,
    /// By kind, entry and object.
    numbers: BTreeMap<(&'static str, Vec<u8>, Vec<u8>), usize>,
}

impl Causes {
    pub(crate) fn number_of(&mut self, kind: &'static str, entry: &[u8]) -> usize {
        self.number_of_object(kind, entry, b"")
    }

    fn number_of_object(&mut self, kind: &'static str, entry: &[u8], object: &[u8]) -> usize {
        let key = (kind, entry.to_vec(), object.to_vec());
        if let Some(number) = self.numbers.get(&key) {
            return *number;
        }
        let number = self.all.len();
        self.numbers.insert(key, number);
        let cause = LookupCause {
            kind,
            entry: to_text(entry).into_owned(),
            object: (!object.is_empty()).then(|| to_text(object).into_owned()),
            probes: None,
            hits: None,
            misses: 0,
            processes: 0,
            cost: None,
        };
        self.all.push((cause, Durations::default()));
        number
    }

    /// A cause of the linker's, with the entry of the list as it was written.
    pub(crate) fn of_linker(
        &mut self,
        cause: &Cause,
        library_path: Option<&[u8]>,
        files: Option<&dyn Files>,
    ) -> usize {
        let in_object = |object: &[u8], at: usize, kind| {
            let found = files.map(|files| files.at(object));
            let Some(Found::Object(_, elf)) = found else { return Vec::new() };
            let list = if kind == "RPATH" { &elf.rpath } else { &elf.runpath };
            nth(list.as_deref(), at, b":")
        };
        match cause {
            Cause::LibraryPath(at) => {
                self.number_of("LD_LIBRARY_PATH", &nth(library_path, *at, b":;"))
            }
            Cause::Rpath(object, at) => {
                self.number_of_object("RPATH", &in_object(object, *at, "RPATH"), object)
            }
            Cause::Runpath(object, at) => {
                self.number_of_object("RUNPATH", &in_object(object, *at, "RUNPATH"), object)
            }
            Cause::Cache => self.number_of("cache", b"/etc/ld.so.cache"),
            Cause::Default(_) => self.number_of("default", b""),
            Cause::Path => self.number_of("path", b""),
            Cause::PathFile => self.number_of("ld-musl.path", b""),
        }
    }

    pub(crate) fn miss(&mut self, cause: usize) {
        self.all[cause].1.misses += 1;
    }

    pub(crate) fn time(&mut self, cause: usize, duration_ns: u32) {
        self.all[cause].1.time(duration_ns);
    }

    /// Counts so many look-ups that the model predicts.
    pub(crate) fn probe(&mut self, cause: usize, times: u64, is_hit: bool) {
        let (cause, _) = &mut self.all[cause];
        *cause.probes.get_or_insert(0) += times;
        *cause.hits.get_or_insert(0) += if is_hit { times } else { 0 };
    }

    /// Counts a process for each of its causes.
    pub(crate) fn end(&mut self, causes: &[usize]) {
        for cause in causes {
            self.all[*cause].0.processes += 1;
        }
    }

    /// Most failed look-ups first.
    pub(crate) fn finish(self) -> Vec<LookupCause> {
        let finished = |(cause, durations): (LookupCause, Durations)| LookupCause {
            misses: durations.misses,
            cost: durations.cost(),
            ..cause
        };
        let mut causes: Vec<_> = self.all.into_iter().map(finished).collect();
        causes.retain(|cause| cause.misses > 0 || cause.probes.is_some());
        causes.sort_by(|a, b| {
            let key = |cause: &LookupCause| (cause.kind, cause.entry.clone(), cause.object.clone());
            b.misses.cmp(&a.misses).then_with(|| key(a).cmp(&key(b)))
        });
        causes
    }
}

/// The nth entry of a list, as it was written.
fn nth(list: Option<&[u8]>, at: usize, separators: &[u8]) -> Vec<u8> {
    let list = list.unwrap_or_default();
    let mut entries = list.split(|byte| separators.contains(byte));
    entries.nth(at).unwrap_or_default().to_vec()
}
