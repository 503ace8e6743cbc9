//! Several logs without times, in an order of causes: what a task did stands behind its birth, and before what its
//! parent did next.

use std::collections::{BTreeMap, HashSet};

use crate::body::Body;
use crate::call::{Parsed, Role};
use crate::error::ImportError;
use crate::log::{Log, open};
use crate::reading::{Reading, Written};

/// Logs that are open at once, as deep as tasks are nested. What is deeper is read when all others have been.
const OPEN_MAX: usize = 256;

/// Passes the lines of all logs to `take`.
pub(crate) fn read_untimed(
    mut logs: Vec<Log>,
    take: &mut dyn FnMut(&Reading) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let born = born_in(&mut logs)?;
    // Those that nobody created come first. Without a pid of its own a log has those of its lines.
    let is_born = |log: &Log| log.pid.is_some_and(|pid| born.contains(&pid));
    let mut waiting = BTreeMap::new();
    for (at, log) in logs.into_iter().enumerate() {
        waiting.insert((is_born(&log), log.pid, at), log);
    }
    while let Some((_, mut log)) = waiting.pop_first() {
        let mut stack = vec![open(&mut log, 0)?];
        while let Some(reading) = stack.last_mut() {
            if !reading.advance()? {
                stack.pop();
                continue;
            }
            take(reading)?;
            let Some(child) = birth(reading).filter(|_| stack.len() < OPEN_MAX) else { continue };
            let of_child = waiting.range((true, Some(child), 0)..=(true, Some(child), usize::MAX));
            let found = of_child.map(|(key, _)| *key).next();
            if let Some(mut log) = found.and_then(|key| waiting.remove(&key)) {
                stack.push(open(&mut log, 0)?);
            }
        }
    }
    Ok(())
}

/// Tasks that were created in one of the logs.
fn born_in(logs: &mut [Log]) -> Result<HashSet<i32>, ImportError> {
    let mut born = HashSet::new();
    for log in logs {
        let mut reading = open(log, 0)?;
        while reading.advance()? {
            born.extend(birth(&reading));
        }
    }
    Ok(born)
}

/// The task that the current line creates.
fn birth(reading: &Reading) -> Option<i32> {
    if reading.written != Written::ByStrace {
        return None;
    }
    let (Body::Call { name, text } | Body::Resumed { name, text }) = reading.line().says() else {
        return None;
    };
    let Role::Fork(call) = Role::of(name) else { return None };
    Some(Parsed::of(text)?.forked(call)?.child)
}
