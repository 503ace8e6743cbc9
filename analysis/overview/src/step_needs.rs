//! What steps are declared to need: those that must come before each, and needs of which nothing is read.

use std::collections::{BTreeMap, BTreeSet};

use proctrace_recording::Recording;

use crate::step_files::{Level, StepFile, step_files};
use crate::step_order::{Made, StepFlow};

/// For each step, those that are declared to come before it, directly, `None` if nothing is declared of it; `None` as a whole
/// if nothing is declared of any.
///
/// By name, of the last run of each; what it needs is the last one of that name before it. By a graph, for steps that
/// write files which it makes, if opens were recorded: a file on the way back that nobody wrote was there before.
pub fn declared_needs(recording: &Recording) -> Option<Vec<Option<Vec<u32>>>> {
    let steps = recording.steps();
    let by_graph = !steps.graph.is_empty() && recording.header().opens;
    if steps.needs.is_empty() && !by_graph {
        return None;
    }
    let numbers = || (0_u32..).zip(&steps.all);
    let mut by_name: BTreeMap<&str, Vec<u32>> = BTreeMap::new();
    for (at, step) in numbers() {
        by_name.entry(&step.named.name).or_default().push(at);
    }
    let files = if by_graph { step_files(recording, Level::Innermost) } else { Vec::new() };
    let made = Made::of(recording, &files);
    let writers = made.writers();
    let needs = numbers().map(|(at, step)| {
        let runs = by_name.get(&*step.named.name);
        // Of a step that was tried again, only the last run matters.
        let is_last = runs.is_none_or(|runs| runs.last() == Some(&at));
        let named = steps.needs.get(&step.named.name).filter(|_| is_last);
        let products = made.by_step.get(&at);
        if named.is_none() && products.is_none() {
            return None;
        }
        let before = |name: &String| {
            let all = by_name.get(&**name)?;
            all.iter().rev().find(|other| **other < at).or(all.last()).copied()
        };
        let mut needs: Vec<u32> = named.into_iter().flatten().filter_map(before).collect();
        if let Some(products) = products {
            let own: BTreeSet<u32> = products.iter().copied().collect();
            let wanted = |file: u32| writers.contains_key(&file) && !own.contains(&file);
            let nearest = steps.graph.nearest(products, wanted);
            needs.extend(nearest.iter().filter_map(|file| writers.get(file)).flatten());
        }
        needs.sort_unstable();
        needs.dedup();
        needs.retain(|need| *need != at);
        Some(needs)
    });
    let needs: Vec<Option<Vec<u32>>> = needs.collect();
    needs.iter().flatten().any(|needs| !needs.is_empty()).then_some(needs)
}

/// Of a file with more writers, the first ones are looked at.
const WRITERS_MAX: usize = 100;

/// Declared needs of a step of which it reads nothing: names of the one that waits and of the one it waits for. Only of
/// steps that ran, and only if opens were recorded.
pub fn unused_needs<'a>(
    recording: &'a Recording,
    files: &[StepFile<'_>],
    flows: &[StepFlow<'_>],
) -> Vec<(&'a str, &'a str)> {
    let steps = recording.steps();
    let name = |step: u32| &*steps.all[step as usize].named.name;
    let ran: BTreeSet<&str> = steps.all.iter().map(|step| &*step.named.name).collect();
    let used: BTreeSet<(&str, &str)> =
        flows.iter().map(|flow| (name(flow.reader), name(flow.writer))).collect();
    let by_name = steps
        .needs
        .iter()
        .flat_map(|(reader, needs)| needs.iter().map(move |need| (reader.as_str(), need.as_str())));
    let mut unused: BTreeSet<(&str, &str)> = by_name
        .filter(|(reader, need)| ran.contains(reader) && ran.contains(need))
        .filter(|pair| !used.contains(pair))
        .collect();
    // By file: several lines of a recipe make one together, and one that reads is enough.
    let read: BTreeSet<(u32, u32)> = flows.iter().map(|flow| (flow.reader, flow.writer)).collect();
    let writers = Made::of(recording, files).writers();
    for (product, by) in &writers {
        for source in steps.graph.direct(*product) {
            let Some(of) = writers.get(&source) else { continue };
            let (by, of) = (&by[..by.len().min(WRITERS_MAX)], &of[..of.len().min(WRITERS_MAX)]);
            let mut pairs =
                by.iter().flat_map(|reader| of.iter().map(move |writer| (*reader, *writer)));
            let is_used = pairs.any(|pair| pair.0 == pair.1 || read.contains(&pair));
            let (Some(reader), Some(writer)) = (by.last(), of.last()) else { continue };
            // What begins later cannot have been waited for.
            if !is_used && writer < reader {
                unused.insert((name(*reader), name(*writer)));
            }
        }
    }
    unused.into_iter().collect()
}
