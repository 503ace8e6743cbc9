//! Classifies each field of a record by how a repetition changes it: a serial, a pid, a time, a
//! look-up number, or none of these.

use std::collections::HashMap;

use anyhow::{Context, Result};
use proctrace_wire::Kind;
use proctrace_wire::layout::{LAYOUTS, Layout};

/// Meaning of a field, which decides how it changes in a repetition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Meaning {
    Serial,
    Pid,
    Time,
    /// A look-up number, by which later records refer to the look-up.
    Number,
    /// Unchanged.
    Kept,
}

/// The class of every field of the layout. An unlisted field is an error rather than unchanged, so
/// that adding a field requires a decision.
fn meaning(field: &str) -> Option<Meaning> {
    Some(match field {
        "task" | "process" | "child" | "child_process" | "waker" | "sender" => Meaning::Serial,
        "tgid" | "tid" | "parent_tgid" | "tgid_ns" | "tid_ns" | "old_tid" | "child_tgid"
        | "child_tid" | "child_tgid_ns" | "child_tid_ns" | "waker_tgid" | "sender_tgid" => {
            Meaning::Pid
        }
        "time_ns" | "start_ns" | "begin_ns" | "since_ns" | "woken_ns" => Meaning::Time,
        "number" => Meaning::Number,
        // The header is classified separately.
        "head" | "kind" | "size" | "pad" | "bits" | "comm" | "status" | "state" | "what" => {
            Meaning::Kept
        }
        // resources used by a task
        "run_ns" | "run_at_exit_ns" | "utime_ns" | "stime_ns" | "run_delay_ns" | "nvcsw"
        | "nivcsw" | "minflt" | "majflt" | "rchar" | "wchar" | "waited_utime_ns"
        | "waited_stime_ns" | "migrations" | "opens" | "lookups_failed" | "execs_failed" => {
            Meaning::Kept
        }
        // memory, and lengths
        _ if field.ends_with("_pages") || field.ends_with("_bytes") => Meaning::Kept,
        // arguments of a call
        "group" | "call" | "slot" | "exit_signal" | "flags" | "error" | "dirfd" | "argc"
        | "env_id" | "offset" | "bytes" | "argv_here" | "duration_ns" | "mount_namespace"
        | "syscall" | "waker_syscall" | "file_type" | "signal" | "code" => Meaning::Kept,
        "waker_comm" | "sender_comm" => Meaning::Kept,
        // counts at a tick, and of lost records
        "tasks" | "running" | "sleeping" | "uninterruptible" | "stopped" | "dead" | "sampled"
        | "lost" | "reason" | "cpu" | "count" => Meaning::Kept,
        _ => return None,
    })
}

/// The C struct of a record kind.
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
        Kind::LookupNamed | Kind::OpenedNamed => "pt_named",
        Kind::LookupAgain | Kind::OpenedAgain => "pt_again",
        Kind::Moved => "pt_moved",
        Kind::Written => "pt_written",
        Kind::Workdir => "pt_workdir",
        Kind::Place => "pt_place",
        Kind::Mounts => "pt_mounts",
        Kind::LookupTime => "pt_lookup_time",
        Kind::Wait => "pt_wait",
        Kind::Signal => "pt_signal",
    }
}

/// Byte offsets of these fields in a record of one kind.
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
                format!("no meaning is defined for {} of {}", field.name, layout.c_name)
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

    /// The look-up numbers in a record.
    pub(super) fn numbers(&self, record: &[u8]) -> impl Iterator<Item = u32> {
        self.numbers.iter().map(|at| u32::from_le_bytes(word(record, *at)))
    }

    /// Replaces each field by the value from `new`.
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

/// Supplies the values of fields in a repetition.
pub(super) trait Rewrite {
    fn serial(&self, serial: u32) -> u32;
    fn pid(&self, pid: i32) -> i32;
    fn time_ns(&self, time_ns: u64) -> u64;
    fn number(&self, number: u32) -> u32;
}

/// `N` bytes of a record, which has been decoded and so contains its fixed part.
fn word<const N: usize>(record: &[u8], at: usize) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&record[at..at + N]);
    word
}

fn layout(c_name: &str) -> Result<&'static Layout> {
    LAYOUTS.iter().find(|layout| layout.c_name == c_name).context("unknown record")
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
        // both ids of forker and child, the child's in its own namespace, and the parent's
        assert_eq!(fork.pids.len(), 7);
        // when the call was made, and when the child began
        assert_eq!(fork.times.len(), 2);
    }
}
