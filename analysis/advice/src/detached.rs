//! `detached-cpu`: CPU time of processes that outlive their parent, and for which nothing of the job waits.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use proctrace_classify::fast::Bits;
use proctrace_findings::{Advice, Gain, counted, time};
use proctrace_recording::bins::Bins;
use proctrace_recording::books::detached::is_detached;
use proctrace_recording::tracks::Track;

use super::Found;
use super::evidence::{Evidence, more};
use super::names::first_word;

/// Work of the processes of one command line after their parents had ended.
#[derive(Default)]
struct Left {
    units: Vec<u32>,
    /// CPU time, with that of descendants, since the parent ended.
    since_ns: u64,
    /// The part of it since the command ended.
    after_ns: u64,
}

/// Per command line: processes that outlive their parent and are not waited for by another process of the
/// recording, with their descendants.
///
/// CPU: high, what they use after the end of their parent; middle, what they use after the end of the command,
/// and half of what they use before it; low 0, as it may be needed. CPU time is known from samples; between two of
/// them, or for processes without, it is taken to be used evenly. Wall: nothing.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let recording = evidence.recording;
    let end_ns = recording.first_ns().saturating_add(evidence.wall_ns);
    let mut groups: BTreeMap<&str, Left> = BTreeMap::new();
    let mut courses = None;
    let mut known = Bits::default();
    for (number, process) in evidence.processes() {
        if known.contains(number as usize)
            || process.reaper().is_some()
            || !is_detached(recording, process)
        {
            continue;
        }
        let parent = process.parent().map(|parent| &recording.processes()[parent]);
        let Some(since_ns) = parent.and_then(|parent| parent.ended_ns()) else { continue };
        let courses = courses.get_or_insert_with(|| Courses::of(evidence));
        let left = groups.entry(recording.template_of(process).unwrap_or("")).or_default();
        left.units.push(number);
        for descendant in evidence.with_descendants(&[number]) {
            known.insert(descendant as usize);
            left.since_ns =
                left.since_ns.saturating_add(courses.cpu_since_ns(descendant, since_ns));
            let from_ns = since_ns.max(end_ns);
            left.after_ns = left.after_ns.saturating_add(courses.cpu_since_ns(descendant, from_ns));
        }
    }
    groups.into_iter().filter_map(|(line, left)| advice(evidence, line, &left)).collect()
}

/// The CPU time of processes over time.
struct Courses<'e, 'a> {
    evidence: &'e Evidence<'a>,
    bins: &'a Bins,
    /// Course of each process that has one.
    of_process: BTreeMap<u32, &'a Track>,
}

impl<'e, 'a> Courses<'e, 'a> {
    fn of(evidence: &'e Evidence<'a>) -> Self {
        let tracks = evidence.recording.tracks().iter();
        let of_process = tracks.map(|track| (track.process as u32, track)).collect();
        Self { evidence, bins: evidence.recording.bins(), of_process }
    }

    /// The CPU time that a process used from a time on.
    fn cpu_since_ns(&self, process: u32, time_ns: u64) -> u64 {
        let cpu_ns = self.evidence.process(process).cpu.total_ns();
        let (born_ns, ended_ns) =
            (self.evidence.process(process).born_ns, self.evidence.ended_ns(process));
        if time_ns <= born_ns {
            return cpu_ns;
        }
        // Within a bin, as much of it as the process lives in it.
        let part = |from_ns: u64, to_ns: u64| {
            let all_ns = to_ns.min(ended_ns).saturating_sub(from_ns.max(born_ns));
            let after_ns = to_ns.min(ended_ns).saturating_sub(from_ns.max(born_ns).max(time_ns));
            after_ns as f64 / all_ns.max(1) as f64
        };
        let Some(course) = self.of_process.get(&process) else {
            return (cpu_ns as f64 * part(born_ns, ended_ns)) as u64;
        };
        let first = self.bins.bin_of(time_ns);
        let width_ns = self.bins.width_ns;
        let begin_ns = self.bins.start_ns.saturating_add(width_ns.saturating_mul(first as u64));
        let part_of_first = part(begin_ns, begin_ns.saturating_add(width_ns));
        let of_bin = |(bin, cpu_ns): (usize, f64)| match bin.cmp(&first) {
            Ordering::Less => 0.0,
            Ordering::Equal => cpu_ns * part_of_first,
            Ordering::Greater => cpu_ns,
        };
        (course.bins().map(of_bin).sum::<f64>() as u64).min(cpu_ns)
    }
}

fn advice(evidence: &Evidence<'_>, line: &str, left: &Left) -> Option<Found> {
    let middle_ns = left.after_ns.saturating_add(left.since_ns.saturating_sub(left.after_ns) / 2);
    if !evidence.pays(0, middle_ns) {
        return None;
    }
    let first = *left.units.first()?;
    let processes = evidence.with_descendants(&left.units);
    let by = match evidence.started_by(first) {
        by if by.is_empty() => by,
        by => by + ",",
    };
    let advice = Advice {
        kind: "detached-cpu",
        what: format!(
            "End {} with the process that started it, or wait for it: it runs on by itself",
            evidence.lines(&left.units)
        ),
        evidence: format!(
            "{} of {}{by} {} {} of CPU time after the end of the parent, of which {} after the end of \
             the command; wait(2) and `time` count none of it",
            counted(left.units.len() as u64, "process", "processes"),
            evidence.lines(&left.units),
            if left.units.len() == 1 { "uses" } else { "use" },
            time(left.since_ns),
            time(left.after_ns),
        ),
        processes: processes.len() as u64,
        commands: vec![first_word(line).to_owned()],
        cpu_ns: Gain::new(0, middle_ns, more(left.since_ns)).at_most(evidence.cpu_ns),
        method:
            "CPU: what it uses after the end of its parent (high); after the end of the command, \
                 and half of the rest (middle); low is 0, as its work may be needed"
                .into(),
        risk: "what it does may be needed later, or by others: then wait for it, so that it is \
               accounted"
            .into(),
        check: "record again: `report --section detached` does not list it".into(),
        ..Advice::default()
    };
    Some(Found::instead(processes, advice).keyed(line))
}
