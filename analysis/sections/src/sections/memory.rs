//! Memory: the peak of each process and when it was, the largest over time, and the total over time.

use std::cmp::Reverse;
use std::collections::HashMap;

use proctrace_findings::{
    Figure, Memory, ProcessMemory, Table, Unit, Values, bytes, counted, sparkline, time,
};
use proctrace_overview::options::{Content, Options};
use proctrace_overview::passes::{Pass, passes};
use proctrace_recording::Recording;
use proctrace_wire::Quantity;

use crate::analysis::Analysis;

pub(crate) fn section(analysis: &Analysis<'_>, _: &Options) -> Content {
    let recording = analysis.recording;
    let all = passes(recording, |_| true);
    let tables = vec![
        processes(analysis.memory()),
        courses(recording, analysis.memory()),
        over_time(&all, recording.first_ns()),
    ];
    Content { tables, charts: Vec::new() }
}

fn processes(memory: Option<&Memory>) -> Table {
    let mut rows: Vec<&ProcessMemory> =
        memory.iter().flat_map(|memory| &memory.processes).collect();
    // A process that is alive has no exit record, and its peak is at least the largest reading.
    let peak = |process: &ProcessMemory| process.peak_rss_bytes.unwrap_or(process.rss_bytes);
    rows.sort_by_key(|process| Reverse((peak(process), process.pss_bytes)));
    let of = || rows.iter();
    let pids = of().map(|process| u64::try_from(process.pid).ok()).collect();
    let table = Table::new("memory_processes", "Memory of processes")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Memory])
        .whole("peak_rss_bytes", "peak RSS", Unit::Bytes, of().map(|p| p.peak_rss_bytes))
        .needs(Figure::PeakRssBytes.needs())
        .whole("pss_bytes", "PSS", Unit::Bytes, of().map(|process| process.pss_bytes))
        .whole("time_ns", "at", Unit::Nanoseconds, of().map(|process| process.time_ns))
        .whole("uss_bytes", "USS", Unit::Bytes, of().map(|process| process.uss_bytes))
        .whole("shared_bytes", "shared", Unit::Bytes, of().map(|process| process.shared_bytes))
        .whole("rss_bytes", "RSS", Unit::Bytes, of().map(|process| process.rss_bytes))
        .whole("swap_bytes", "swap", Unit::Bytes, of().map(|process| process.swap_bytes))
        .detail()
        .column("pid", "pid", Unit::Text, Values::Whole(pids))
        .text("program", "program", of().map(|process| &*process.program));
    let Some(memory) = memory else { return table };
    // A single note, so that a report that shows only the first one is complete.
    let mut says = format!(
        "peak RSS: of the last program, from its exit record; others: at the reading with the \
         largest PSS, of one every {}. Largest total at one reading: {} PSS at {} in {} (RSS {}{}).",
        time(memory.interval_ns),
        bytes(memory.peak_pss_bytes),
        time(memory.peak_pss_at_ns),
        counted(memory.processes_then, "process", "processes"),
        bytes(memory.rss_bytes_then),
        memory.uss_bytes_then.map_or_else(String::new, |uss| format!(", USS {}", bytes(uss))),
    );
    if let Some(peak) = memory.peak_rss_bytes_not_looked_at {
        says.push_str(&format!(
            " Missed by all readings: {}, peak RSS up to {}.",
            counted(memory.processes_not_looked_at, "other process", "other processes"),
            bytes(peak)
        ));
    }
    table.note(says)
}

/// Number of processes with a strip of their memory.
const COURSES: usize = 20;
/// Characters of a strip.
const BINS: usize = 30;

/// The memory of the largest processes over the time of the recording.
fn courses(recording: &Recording, memory: Option<&Memory>) -> Table {
    let mut largest: Vec<&ProcessMemory> =
        memory.iter().flat_map(|memory| &memory.processes).collect();
    largest.truncate(COURSES);
    let place: HashMap<u32, usize> =
        largest.iter().zip(0..).map(|(process, at)| (process.serial, at)).collect();
    let mut readings: Vec<Vec<(u64, u64)>> = vec![Vec::new(); largest.len()];
    for reading in recording.memory_readings().unwrap_or_default() {
        let serial = recording.processes()[reading.process].serial;
        if let Some(at) = place.get(&serial) {
            let time_ns = reading.record.head.time_ns.saturating_sub(recording.first_ns());
            readings[*at].push((time_ns, reading.record.pss_bytes));
        }
    }
    let most = largest.iter().map(|process| process.pss_bytes).max().unwrap_or(0);
    let length_ns = recording.recorded_ns();
    let strip = |readings: &Vec<(u64, u64)>| sparkline(readings, length_ns, most, BINS);
    let of = || largest.iter();
    let pids = of().map(|process| u64::try_from(process.pid).ok()).collect();
    Table::new("memory_courses", "PSS of the largest processes over time")
        .rows_need(&[Quantity::Forks, Quantity::Execs, Quantity::Memory])
        .whole("pss_bytes", "largest PSS", Unit::Bytes, of().map(|process| process.pss_bytes))
        .whole("time_ns", "at", Unit::Nanoseconds, of().map(|process| process.time_ns))
        .whole("readings", "readings", Unit::Count, readings.iter().map(|of| of.len() as u64))
        .text("course", "from the start to the end", readings.iter().map(strip))
        .column("pid", "pid", Unit::Text, Values::Whole(pids))
        .text("program", "program", of().map(|process| &*process.program))
        .note(
            "Each character is a thirtieth of the time recorded, and the largest reading in it; \
             the scale is the same for all. A dot: no reading. `proctrace show PID` has the \
             readings of one process.",
        )
}

fn over_time(passes: &[Pass], first_ns: u64) -> Table {
    let of = || passes.iter();
    Table::new("memory_looks", "Memory of all processes over time")
        .rows_need(&[Quantity::Forks, Quantity::Memory])
        .whole(
            "time_ns",
            "at",
            Unit::Nanoseconds,
            of().map(|pass| pass.time_ns.saturating_sub(first_ns)),
        )
        .whole("processes", "processes", Unit::Count, of().map(|pass| pass.processes))
        .whole("pss_bytes", "PSS", Unit::Bytes, of().map(|pass| pass.pss_bytes))
        .whole("uss_bytes", "USS", Unit::Bytes, of().map(Pass::known_uss_bytes))
        .whole("rss_bytes", "RSS", Unit::Bytes, of().map(|pass| pass.rss_bytes))
        .note(
            "Sums over the processes found at a reading. A page shared by several of them counts \
             once in PSS, once for each in RSS, and not at all in USS. Of a process that ended or \
             executed another program after its reading, and before the last of the others, only \
             its USS is added to PSS: the later readings have the rest.",
        )
}

#[cfg(test)]
mod tests {
    use super::*;
    use proctrace_findings::Cell;
    use proctrace_scenes::{MB, MS, S, Scene};

    #[test]
    fn peaks_come_first_and_looks_are_told_apart_from_them() {
        let mut scene = Scene::new(1, 100 * MS);
        scene.header().memory_interval_ns = Some(5 * S);
        scene.fork(0, 1, 2).fork(2 * S, 1, 3);
        scene.memory(S, 1, (190 * MB, 190 * MB, 0)).memory(S, 2, (178 * MB, 178 * MB, 0));
        scene.exit_with(2 * S - MS, 2, (0, 0), |exit| exit.maxrss_pages = 346 * MB / 4096);
        scene.exit_with(2 * S + MS, 3, (0, 0), |exit| exit.maxrss_pages = 120 * MB / 4096);
        let recording = scene.memory(6 * S, 1, (3 * MB, 2 * MB, MB)).load(None);
        let content = section(&Analysis::of(&recording), &Options::default());
        let [processes, courses, looks] = &content.tables[..] else { panic!("not three tables") };
        let of = |column: &str, row| processes.named(column).unwrap().values.get(row);
        assert_eq!(of("peak_rss_bytes", 0), Cell::Whole(346 * MB));
        assert_eq!(of("pss_bytes", 0), Cell::Whole(178 * MB));
        assert_eq!(
            (of("peak_rss_bytes", 1), of("rss_bytes", 1)),
            (Cell::Missing, Cell::Whole(190 * MB))
        );
        assert_eq!((of("time_ns", 0), of("time_ns", 1)), (Cell::Whole(S), Cell::Whole(S)));
        assert_eq!(courses.height(), 2);
        let course = |row| courses.named("course").unwrap().values.get(row);
        // Of 6 s, the readings at 1 s and at 6 s.
        let first = [&"·".repeat(5), "█", &"·".repeat(23), "▁"].concat();
        assert_eq!(course(0), Cell::Text(&first));
        assert_eq!(courses.named("readings").unwrap().values.get(1), Cell::Whole(1));
        let notes = processes.notes.join("\n");
        assert!(
            notes.contains("at the reading with the largest PSS, of one every 5.00 s"),
            "{notes}"
        );
        assert!(notes.contains("readings: 1 other process, peak RSS up to 126 MB"), "{notes}");
        assert!(notes.contains("386 MB PSS at 1.00 s in 2 processes"), "{notes}");
        assert_eq!(looks.height(), 2);
        assert_eq!(looks.named("pss_bytes").unwrap().values.get(0), Cell::Whole(368 * MB));
        assert_eq!(looks.named("time_ns").unwrap().values.get(0), Cell::Whole(S));
        // Without any reading there is nothing to report.
        let content = section(&Analysis::of(&Scene::new(1, S).load(None)), &Options::default());
        assert!(content.tables.iter().all(|table| table.height() == 0));
    }
}
