//! What each field of a record is, as far as a repetition of it has to differ: a serial, a pid, a
//! time, the number of a look-up, or none of these.

use std::collections::HashMap;

use anyhow::{Context, Result};
use proctrace_wire::Kind;
use proctrace_wire::layout::{LAYOUTS, Layout};

/// What becomes of a field in a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Serial,
    Pid,
    Time,
    /// The number of a look-up, by which others repeat it.
    Number,
    /// It stays what it is.
    Kept,
}

/// Says of every field of the layout what it is. A field that is not named here is an error, not
/// one that is kept: whoever adds one has to decide.
fn meaning(field: &str) -> Option<Meaning> {
    Some(match field {
        "task" | "process" | "child" | "child_process" => Meaning::Serial,
        "tgid" | "tid" | "parent_tgid" | "tgid_ns" | "tid_ns" | "old_tid" | "child_tgid"
        | "child_tid" | "child_tgid_ns" | "child_tid_ns" => Meaning::Pid,
        "time_ns" | "start_ns" | "begin_ns" => Meaning::Time,
        "number" => Meaning::Number,
        // The head has a plan of its own.
        "head" | "kind" | "size" | "pad" | "bits" | "comm" | "status" | "state" | "what" => {
            Meaning::Kept
        }
        // what a task has used
        "run_ns" | "run_at_exit_ns" | "utime_ns" | "stime_ns" | "run_delay_ns" | "nvcsw"
        | "nivcsw" | "minflt" | "majflt" | "rchar" | "wchar" | "read_bytes" | "write_bytes"
        | "waited_utime_ns" | "waited_stime_ns" | "migrations" | "opens" | "lookups_failed"
        | "execs_failed" => Meaning::Kept,
        "maxrss_pages"
        | "maxrss_ever_pages"
        | "maxrss_before_pages"
        | "rss_pages"
        | "rss_bytes"
        | "pss_bytes"
        | "uss_bytes"
        | "shared_bytes"
        | "swap_bytes" => Meaning::Kept,
        // what it asked for
        "call" | "slot" | "exit_signal" | "flags" | "error" | "dirfd" | "argc" | "env_id"
        | "offset" | "bytes" | "argv_bytes" | "argv_here" | "path_bytes" | "interp_bytes"
        | "exe_bytes" | "cwd_bytes" => Meaning::Kept,
        // counts at a tick, and of losses
        "tasks" | "running" | "sleeping" | "uninterruptible" | "stopped" | "dead" | "sampled"
        | "lost" | "reason" | "cpu" | "count" => Meaning::Kept,
        _ => return None,
    })
}

/// The C struct that a record of this kind is.
fn struct_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Attach => "pt_attach",
        Kind::Fork => "pt_fork",
        Kind::Exec => "pt_exec",
        Kind::ExecArgs => "pt_exec_args",
        Kind::ExecFailed | Kind::LookupFailed => "pt_miss",
        Kind::Exit => "pt_exit",
        Kind::Rename => "pt_rename",
        Kind::Sample => "pt_sample",
        Kind::Tick => "pt_tick",
        Kind::Env => "pt_env",
        Kind::Loss => "pt_loss",
        Kind::Blind => "pt_blind",
        Kind::Memory => "pt_memory",
        Kind::LookupNamed => "pt_named",
        Kind::LookupAgain => "pt_again",
        Kind::Workdir => "pt_workdir",
    }
}

/// Where in a record of one kind they are, in bytes from its start.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Plan {
    serials: Vec<usize>,
    pids: Vec<usize>,
    times: Vec<usize>,
    numbers: Vec<usize>,
}

impl Plan {
    fn of(kind: Kind) -> Result<Self> {
        let mut plan = Self::default();
        plan.add(layout("pt_head")?)?;
        plan.add(layout(struct_of(kind))?)?;
        Ok(plan)
    }

    fn add(&mut self, layout: &Layout) -> Result<()> {
        for field in layout.fields {
            let meaning = meaning(field.name).with_context(|| {
                format!("nothing says what to do with {} of {}", field.name, layout.c_name)
            })?;
            match meaning {
                Meaning::Serial => self.serials.push(field.offset),
                Meaning::Pid => self.pids.push(field.offset),
                Meaning::Time => self.times.push(field.offset),
                Meaning::Number => self.numbers.push(field.offset),
                Meaning::Kept => {}
            }
        }
        Ok(())
    }

    /// The pids in a record.
    pub(super) fn pids(&self, record: &[u8]) -> impl Iterator<Item = i32> {
        self.pids.iter().map(|at| i32::from_le_bytes(word(record, *at)))
    }

    /// The serials in a record.
    pub(super) fn serials(&self, record: &[u8]) -> impl Iterator<Item = u32> {
        self.serials.iter().map(|at| u32::from_le_bytes(word(record, *at)))
    }

    /// The numbers of look-ups in a record.
    pub(super) fn numbers(&self, record: &[u8]) -> impl Iterator<Item = u32> {
        self.numbers.iter().map(|at| u32::from_le_bytes(word(record, *at)))
    }

    /// Puts what `new` says in place of each.
    pub(super) fn rewrite(&self, record: &mut [u8], new: &impl Rewrite) {
        for at in &self.serials {
            let serial = new.serial(u32::from_le_bytes(word(record, *at)));
            record[*at..*at + 4].copy_from_slice(&serial.to_le_bytes());
        }
        for at in &self.pids {
            let pid = new.pid(i32::from_le_bytes(word(record, *at)));
            record[*at..*at + 4].copy_from_slice(&pid.to_le_bytes());
        }
        for at in &self.times {
            let time_ns = new.time_ns(u64::from_le_bytes(word(record, *at)));
            record[*at..*at + 8].copy_from_slice(&time_ns.to_le_bytes());
        }
        for at in &self.numbers {
            let number = new.number(u32::from_le_bytes(word(record, *at)));
            record[*at..*at + 4].copy_from_slice(&number.to_le_bytes());
        }
    }
}

/// What a repetition puts in place of what is in a record.
pub(super) trait Rewrite {
    fn serial(&self, serial: u32) -> u32;
    fn pid(&self, pid: i32) -> i32;
    fn time_ns(&self, time_ns: u64) -> u64;
    fn number(&self, number: u32) -> u32;
}

/// `N` bytes of a record. It has been decoded, so its fixed part is there.
fn word<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&record[at..at + N]);
    word
}

fn layout(c_name: &str) -> Result<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.c_name == c_name).context("no such record")
}

/// The plan for each kind of record.
pub(super) fn plans() -> Result<HashMap<Kind, Plan>> {
    Kind::ALL.into_iter().map(|kind| Ok((kind, Plan::of(kind)?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_field_has_a_meaning_and_the_size_of_it() {
        plans().unwrap();
        for layout in LAYOUTS {
            for field in layout.fields {
                let bytes = match meaning(field.name) {
                    Some(Meaning::Serial | Meaning::Pid | Meaning::Number) => 4,
                    Some(Meaning::Time) => 8,
                    Some(Meaning::Kept) => continue,
                    None => panic!("{} of {}", field.name, layout.c_name),
                };
                assert_eq!(field.size, bytes, "{} of {}", field.name, layout.c_name);
            }
        }
    }

    #[test]
    fn a_fork_names_two_tasks_and_their_processes() {
        let fork = Plan::of(Kind::Fork).unwrap();
        // the forker, its process, the child, the child's process
        assert_eq!(fork.serials.len(), 4);
        // of forker and child both ids, the child's in its own namespace too, and the parent's
        assert_eq!(fork.pids.len(), 7);
        // when it was called, and when the child began
        assert_eq!(fork.times.len(), 2);
    }
}
