//! Work on the traces of jobs as they end, such as their summaries: one at a time, beside the recording.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::thread::{Builder, JoinHandle};

use proctrace_trace::Reader;

/// Traces that wait to be summarized.
#[derive(Debug)]
pub struct Queue {
    sender: Sender<(PathBuf, Option<String>)>,
    thread: JoinHandle<Summarized>,
}

/// Numbers of jobs that were summarized.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Summarized {
    /// Jobs with a summary.
    pub made: u64,
    /// Jobs whose summary failed.
    pub failed: u64,
}

impl Queue {
    /// Begins, on a thread. `summarize` takes a trace and the name of its job's cgroup, and returns whether it
    /// succeeded.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn start(
        mut summarize: impl FnMut(&Path, Option<&str>) -> bool + Send + 'static,
    ) -> io::Result<Self> {
        let (sender, ended) = channel::<(PathBuf, Option<String>)>();
        let work = move || {
            let mut summarized = Summarized::default();
            for (trace, cgroup) in ended {
                match summarize(&trace, cgroup.as_deref()) {
                    true => summarized.made += 1,
                    false => summarized.failed += 1,
                }
            }
            summarized
        };
        let thread = Builder::new().name("proctrace-summaries".into()).spawn(work)?;
        Ok(Self { sender, thread })
    }

    /// Takes the complete trace of the job in a cgroup of this name.
    pub fn add(&self, trace: PathBuf, cgroup: Option<String>) {
        // The thread ends only with the queue.
        let _ = self.sender.send((trace, cgroup));
    }

    /// Waits for the last one.
    pub fn finish(self) -> Summarized {
        drop(self.sender);
        self.thread.join().unwrap_or(Summarized { made: 0, failed: 1 })
    }
}

/// The name of the cgroup of a job, from the header of its trace.
pub fn cgroup_of(trace: &Path) -> Option<String> {
    let reader = Reader::open(trace).ok()?;
    let path = reader.header().cgroup.as_deref()?;
    path.rsplit('/').next().filter(|name| !name.is_empty()).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;

    #[test]
    fn all_that_was_added_is_summarized_in_its_order() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let queue = Queue::start(move |trace, cgroup| {
            kept.lock().unwrap().push((trace.to_owned(), cgroup.map(str::to_owned)));
            cgroup.is_some()
        });
        let queue = queue.unwrap();
        queue.add("a".into(), Some("job_1".to_owned()));
        queue.add("b".into(), None);
        queue.add("c".into(), Some("job_2".to_owned()));
        assert_eq!(queue.finish(), Summarized { made: 2, failed: 1 });
        let names: Vec<_> = seen.lock().unwrap().iter().map(|(path, _)| path.clone()).collect();
        assert_eq!(names, [Path::new("a"), Path::new("b"), Path::new("c")]);
    }

    #[test]
    fn a_panic_is_a_failure_and_ends_nothing_else() {
        let queue = Queue::start(|_, _| panic!("as planned")).unwrap();
        queue.add("a".into(), None);
        assert_eq!(queue.finish(), Summarized { made: 0, failed: 1 });
    }

    #[test]
    fn what_is_no_trace_has_no_cgroup() {
        assert_eq!(cgroup_of(Path::new("/dev/null")), None);
    }
}
