//! Failed look-ups and waits of processes, the signals they got, and the critical path.

use std::cmp::Reverse;
use std::collections::HashMap;

use proctrace_classify::fast::FastMap;
use proctrace_classify::names::errno;
use proctrace_findings::{LeftOut, PackedColumn, PackedTable};
use proctrace_overview::details::waited::{Waited, waker};
use proctrace_overview::path::words;
use proctrace_recording::Recording;
use proctrace_recording::misses::Misses;
use proctrace_sections::Analysis;
use proctrace_wire::{Family, Quantity, signal_name};

use super::strings::Strings;
use super::{MISSES_MAX, MISSES_OF_PROCESS_MAX, SIGNALS_MAX, WAITS_MAX, known, since, wide};

/// Directory, errno and family, and the number of failed look-ups.
type MissKey = (u32, u16, u8, u32);

/// Failed look-ups by directory, as lists of which many processes have the same, and the list of each
/// process.
pub(super) fn misses(
    recording: &Recording,
    strings: &mut Strings,
    left_out: &mut Vec<LeftOut>,
) -> (PackedTable, Vec<Option<u64>>) {
    let mut list_of = vec![None; recording.processes().len()];
    let mut lists: Vec<Vec<MissKey>> = Vec::new();
    let mut numbers: HashMap<Vec<MissKey>, u64> = HashMap::new();
    let mut entries = 0;
    let mut without = 0;
    let mut end = |process: usize, mut list: Vec<MissKey>| {
        list.sort_by_key(|key| (Reverse(key.3), key.0, key.1, key.2));
        list.truncate(MISSES_OF_PROCESS_MAX);
        let number = numbers.get(&list).copied().or_else(|| {
            (entries + list.len() <= MISSES_MAX).then(|| {
                entries += list.len();
                lists.push(list.clone());
                let number = wide(lists.len() - 1);
                numbers.insert(list, number);
                number
            })
        });
        without += u64::from(number.is_none());
        if let Some(of) = list_of.get_mut(process) {
            *of = number;
        }
    };
    let (mut current, mut list) = (usize::MAX, Vec::new());
    for (miss, count) in recording.misses().into_iter().flat_map(Misses::iter) {
        if miss.process as usize != current {
            if !list.is_empty() {
                end(current, std::mem::take(&mut list));
            }
            current = miss.process as usize;
        }
        list.push((miss.directory, miss.errno, miss.family, count));
    }
    if !list.is_empty() {
        end(current, list);
    }
    if without > 0 {
        let shown = wide(list_of.iter().flatten().count());
        let what = "lists of failed look-ups by directory, one per process,";
        left_out.push(LeftOut { what, shown, of: shown + without });
    }
    (miss_table(recording, &lists, strings), list_of)
}

fn miss_table(recording: &Recording, lists: &[Vec<MissKey>], strings: &mut Strings) -> PackedTable {
    let rows: Vec<(u64, MissKey)> = lists
        .iter()
        .enumerate()
        .flat_map(|(at, list)| list.iter().map(move |k| (wide(at), *k)))
        .collect();
    let mut directories: FastMap<u32, Option<u64>> = FastMap::default();
    let mut directory = |key: &MissKey| {
        *directories.entry(key.0).or_insert_with(|| {
            strings.number_of_bytes(recording.directories().get(key.0 as usize)?)
        })
    };
    let directories: Vec<_> = rows.iter().map(|(_, key)| directory(key)).collect();
    let errnos: Vec<_> = rows.iter().map(|(_, key)| strings.number_of(&errno(key.1))).collect();
    let family = |key: &MissKey| Family::ALL.get(usize::from(key.2)).map(|family| family.name());
    let families: Vec<_> =
        rows.iter().map(|(_, key)| strings.number_of(family(key).unwrap_or("other"))).collect();
    let mut table = PackedTable::new("misses", rows.len());
    table.columns = vec![
        PackedColumn::ascending("list", rows.iter().map(|row| Some(row.0))),
        PackedColumn::of("directory", directories),
        PackedColumn::of("errno", errnos),
        PackedColumn::of("call", families),
        PackedColumn::of("count", rows.iter().map(|row| Some(row.1.3.into()))),
    ];
    table
}

/// Times off the CPU, by process and by what was waited for, those that took longest.
pub(super) fn waits(
    recording: &Recording,
    strings: &mut Strings,
    left_out: &mut Vec<LeftOut>,
) -> PackedTable {
    let mut sums: HashMap<(usize, &'static str), Waited> = HashMap::new();
    for wait in recording.waits().unwrap_or_default() {
        let Some(task) = recording.tasks().get(wait.task as usize) else { continue };
        let of = sums.entry((task.process(), words::object(wait.waits_for))).or_default();
        of.add(recording, wait);
    }
    let mut rows: Vec<_> = sums.into_iter().collect();
    let of = rows.len();
    if of > WAITS_MAX {
        rows.sort_by_key(|((process, _), waited)| (Reverse(waited.longest_ns), *process));
        rows.truncate(WAITS_MAX);
        left_out.push(LeftOut { what: "waits by process", shown: wide(WAITS_MAX), of: wide(of) });
    }
    rows.sort_by_key(|((process, what), waited)| (*process, Reverse(waited.asleep_ns), *what));
    let reasons: Vec<_> = rows.iter().map(|((_, what), _)| strings.number_of(what)).collect();
    let mut table = PackedTable::new("waits", rows.len());
    let column = |name, of: fn(&Waited) -> Option<u64>| {
        known(recording, &[Quantity::Waits], name, || rows.iter().map(move |row| of(&row.1)))
    };
    table.columns = vec![
        PackedColumn::ascending("process", rows.iter().map(|((at, _), _)| Some(wide(*at)))),
        PackedColumn::of("waits_for", reasons),
        column("count", |waited| Some(waited.count)),
        column("asleep_ns", |waited| Some(waited.asleep_ns)),
        column("cpu_wait_ns", |waited| Some(waited.for_cpu_ns)),
        column("longest_ns", |waited| Some(waited.longest_ns)),
        column("waker", |waited| waited.waker.map(wide)),
    ];
    table
}

/// Signals that usually end a process.
pub(super) fn signals(
    recording: &Recording,
    strings: &mut Strings,
    left_out: &mut Vec<LeftOut>,
) -> PackedTable {
    let all = recording.signals().unwrap_or_default();
    let rows = &all[..all.len().min(SIGNALS_MAX)];
    if rows.len() < all.len() {
        let of = wide(all.len());
        left_out.push(LeftOut { what: "signals", shown: wide(rows.len()), of });
    }
    let names: Vec<_> =
        rows.iter().map(|sent| strings.number_of(&signal_name(i32::from(sent.signal)))).collect();
    let senders: Vec<_> = rows.iter().map(|sent| strings.number_of(&sent.sender_name)).collect();
    let mut table = PackedTable::new("signals", rows.len());
    table.columns = vec![
        PackedColumn::of("process", rows.iter().map(|sent| Some(sent.process.into()))),
        PackedColumn::ascending(
            "time_ns",
            rows.iter().map(|sent| Some(since(recording, sent.time_ns))),
        ),
        PackedColumn::of("signal", names),
        PackedColumn::of("sender", rows.iter().map(|sent| waker(recording, sent.sender).map(wide))),
        PackedColumn::of("sender_name", senders),
    ];
    table
}

/// The critical path in order of time: which process was on it from when to when, doing what.
pub(super) fn path(analysis: &Analysis<'_>, strings: &mut Strings) -> PackedTable {
    let recording = analysis.recording;
    let parts = analysis.critical().map_or(&[][..], |path| &path.parts);
    let process = |task: u32| recording.tasks().get(task as usize).map(|task| wide(task.process()));
    let says: Vec<_> = parts.iter().map(|part| strings.number_of(&part.doing.says())).collect();
    let mut table = PackedTable::new("path", parts.len());
    table.columns = vec![
        known(recording, &[Quantity::Forks, Quantity::Waits], "process", || {
            parts.iter().map(|part| process(part.task))
        }),
        PackedColumn::ascending(
            "begin_ns",
            parts.iter().map(|part| Some(since(recording, part.begin_ns))),
        ),
        PackedColumn::of("length_ns", parts.iter().map(|part| Some(part.end_ns - part.begin_ns))),
        PackedColumn::of("doing", says),
    ];
    table
}
