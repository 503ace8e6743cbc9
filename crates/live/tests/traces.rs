//! Real recordings, followed to their end: the sums are those that the recorder counted itself.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use proctrace_live::{ByFile, View};
use proctrace_trace::{Follower, Reader};
use proctrace_wire::layout::EXEC_BEFORE;
use proctrace_wire::{Record, Stream};

fn traces() -> Vec<PathBuf> {
    let directory =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/traces");
    let files = std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|ending| ending == "ptrace")).collect()
}

fn followed(path: &Path) -> View {
    let mut follower = Follower::open(path).unwrap();
    let mut view = View::new(follower.header().clone(), Box::new(ByFile));
    follower.refresh().unwrap();
    while let Some((info, bytes)) = follower.next_block(View::wants).unwrap() {
        view.take(&info, bytes);
    }
    view.trailer = follower.trailer().cloned();
    view
}

#[test]
fn the_sums_are_those_of_the_recorder() {
    assert!(traces().len() >= 5);
    for path in traces() {
        let view = followed(&path);
        let trailer = view.trailer.clone().unwrap();
        let recorded = |kind: &str| trailer.records.get(kind).copied().unwrap_or(0);
        let totals = &view.totals;
        assert_eq!(totals.processes + totals.threads, trailer.tasks, "{}", path.display());
        assert_eq!(totals.execs_failed, recorded("exec_failed"), "{}", path.display());
        let mut execs = 0;
        let mut ends = 0;
        let mut cpu_ns = 0;
        let mut before_ns = 0;
        let mut reader = Reader::open(&path).unwrap();
        proctrace_replay::records(&mut reader, Stream::Lifecycle, |record| match record {
            Record::Exec(exec) if exec.fixed.bits & EXEC_BEFORE == 0 => execs += 1,
            Record::Exit(exit) => {
                ends += 1;
                cpu_ns += exit.run_ns;
            }
            Record::Attach(attach) => before_ns += attach.run_ns,
            _ => {}
        });
        assert_eq!(totals.execs, execs, "{}", path.display());
        assert_eq!(trailer.tasks - ends, (view.alive() + view.threads_alive()) as u64);
        if view.alive() == 0 {
            assert_eq!(totals.cpu_ns, cpu_ns - before_ns, "{}", path.display());
            assert_eq!(totals.ended, totals.processes, "{}", path.display());
        }
        let lookups =
            proctrace_replay::lookups(&mut Reader::open(&path).unwrap(), |_, _| (), |_| ());
        assert!(totals.lookups_failed <= lookups.records);
        assert!(totals.lookups_failed > 0, "{}", path.display());
        let by_directory: u64 = view.directories.most().iter().map(|(_, count)| count).sum();
        assert_eq!(by_directory + view.directories.dropped, totals.lookups_failed);
        assert_eq!(view.undecodable, 0);
        let programs: u64 = view.programs.iter().map(|program| program.processes).sum();
        assert_eq!(programs, totals.processes, "{}", path.display());
    }
}
