//! Successful execs: the program, its arguments, working directory and search variables.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};
use std::os::unix::fs::MetadataExt;
use std::rc::Rc;

use proctrace_wire::layout::{
    ARGV_MAX, EXEC_ARGV_CAPPED, EXEC_ARGV_FAULT, EXEC_COMPAT, EXEC_ENV_CUT, EXEC_SECURE,
    EXEC_WITHHELD, EnvFixed, ExecArgsFixed, ExecFixed, PlaceFixed,
};
use proctrace_wire::{Kind, Stream};
use zerocopy::FromZeros;

use super::Tracer;
use super::letting_go::is_known_to_trace;
use super::stack::{self, Given};
use crate::arch::Registers;
use crate::process::{MountView, Process};
use crate::procfs::{self, comm_of};
use crate::records::{assemble, head};
use crate::sys::{self, Go, Tid};

/// Sizes as wire.h limits them: the first part of the arguments, each further part, the value of a variable.
const ARGV_FIRST: usize = 16384;
const ARGV_CHUNK: usize = 32768;
const ENV_VALUE_MAX: usize = 16384;
const ENV_MAX: usize = 49152;
const PATH_MAX: usize = 4095;

/// The environments recorded so far.
#[derive(Debug, Default)]
pub(super) struct Environments {
    known: HashSet<u64>,
    seed: RandomState,
    stack: Vec<u8>,
}

impl Tracer<'_> {
    /// A task has executed a program. All other tasks of its process have ended, and it has the thread id
    /// of the leader now.
    pub(super) fn executed(&mut self, tid: Tid) {
        let now = self.now();
        let process = self.tasks.get(&tid).and_then(|task| self.processes.get(&task.process));
        // If its thread id has changed, the kernel accepts no request before this.
        if process.is_none_or(|process| process.has_threads) {
            sys::take_stop(tid);
        }
        if !self.read_exec(tid, now) {
            sys::resume(tid, Go::On, 0);
        }
    }

    /// Reads and records an exec; the task goes on as soon as what could change then has been read. Returns
    /// whether it does.
    fn read_exec(&mut self, tid: Tid, now: u64) -> bool {
        let process = self.tasks.get(&tid).and_then(|task| self.processes.get(&task.process));
        let is_only = process.is_some_and(Process::has_one_task);
        let old_tid = match process {
            Some(process) if !process.has_threads => None,
            _ => sys::event_message(tid).ok().and_then(|old| Tid::try_from(old).ok()),
        };
        // If it is killed meanwhile, the message is its exit status.
        let old_tid = old_tid.filter(|old| self.tasks.contains_key(old)).unwrap_or(tid);
        if old_tid != tid
            && let Some(task) = self.tasks.remove(&old_tid)
        {
            self.replaced(tid);
            self.tasks.insert(tid, task);
        }
        let Some(task) = self.tasks.get(&tid) else { return false };
        let mut exec = ExecFixed::new_zeroed();
        exec.head = head(Kind::Exec, task.serial, now);
        (exec.process, exec.tgid, exec.tid) = (task.process, task.tgid, tid);
        exec.old_tid = old_tid;
        if let Some(process) = self.processes.get_mut(&task.process) {
            process.has_executed = true;
        }
        let registers = Registers::of(tid);
        let mut stack = std::mem::take(&mut self.environments.stack);
        let len = registers.map_or(0, |registers| stack::read(tid, &registers, &mut stack));
        let given = registers
            .and_then(|registers| Given::parse(&stack[..len], registers.stack(), registers.compat));
        if registers.is_some_and(|registers| registers.compat) {
            exec.bits |= EXEC_COMPAT;
        }
        let process = self.processes.get(&exec.process);
        let seen = process.and_then(|process| Seen::of(tid, given.as_ref(), process));
        exec.run_ns = match is_only {
            true => sys::usage_of_reported(tid).map(|usage| usage.cpu_ns()),
            false => procfs::schedstat(tid).map(|(run_ns, _)| run_ns),
        }
        .unwrap_or(0);
        let traces = seen.as_ref().is_some_and(|seen| is_known_to_trace(&seen.exe));
        let is_let_go = traces && !self.settings.filtered;
        match is_let_go {
            true => sys::detach(tid),
            false => sys::resume(tid, Go::On, 0),
        }
        match seen {
            // A program that may be executed but not read.
            None => self.tell_withheld(exec),
            Some(seen) => self.tell_exec(exec, given, &seen),
        }
        if is_let_go {
            self.has_gone(tid);
        }
        stack.shrink_to(1 << 20);
        self.environments.stack = stack;
        true
    }

    fn tell_withheld(&mut self, mut exec: ExecFixed) {
        exec.bits |= EXEC_WITHHELD;
        assemble(&mut self.record, &exec, &[]);
        self.write(Stream::Lifecycle);
    }

    fn tell_exec(&mut self, mut exec: ExecFixed, given: Option<Given<'_>>, seen: &Seen) {
        let tid = exec.tid;
        self.tell_place(&exec, seen);
        if given.is_none() {
            exec.bits |= EXEC_ARGV_FAULT;
        }
        let given = given.unwrap_or_default();
        if given.is_secure {
            exec.bits |= EXEC_SECURE;
        }
        let interpreter = match seen.is_script {
            true => given.arguments.split(|byte| *byte == 0).next().unwrap_or_default(),
            false => &[],
        };
        let [path, interpreter, exe, directory] =
            [given.path, interpreter, &seen.exe[..], &seen.directory[..]]
                .map(|path| &path[..path.len().min(PATH_MAX)]);
        let name = path.rsplit(|byte| *byte == b'/').next().unwrap_or_default();
        // The path of execveat(2) with a descriptor does not tell the name.
        exec.comm = seen.comm.unwrap_or_else(|| comm_of(name));
        if let Some(task) = self.tasks.get_mut(&tid) {
            task.comm = exec.comm;
        }
        exec.env_id = self.tell_environment(&mut exec, given.environment);
        let arguments = given.arguments;
        let kept = &arguments[..arguments.len().min(ARGV_MAX as usize)];
        if kept.len() < arguments.len() {
            exec.bits |= EXEC_ARGV_CAPPED;
        }
        let (first, rest) = kept.split_at(kept.len().min(ARGV_FIRST));
        exec.argc = given.argc;
        exec.argv_bytes = u32::try_from(arguments.len()).unwrap_or(u32::MAX);
        exec.argv_here = u32::try_from(first.len()).unwrap_or(0);
        let len = |path: &[u8]| u16::try_from(path.len()).unwrap_or(0);
        exec.path_bytes = len(path);
        exec.interp_bytes = len(interpreter);
        exec.exe_bytes = len(exe);
        exec.cwd_bytes = len(directory);
        assemble(&mut self.record, &exec, &[path, interpreter, exe, directory, first]);
        self.write(Stream::Lifecycle);
        let mut offset = first.len();
        for part in rest.chunks(ARGV_CHUNK) {
            let args = ExecArgsFixed {
                head: head(Kind::ExecArgs, exec.head.task, exec.head.time_ns),
                offset: u32::try_from(offset).unwrap_or(u32::MAX),
                bytes: u32::try_from(part.len()).unwrap_or(0),
            };
            assemble(&mut self.record, &args, &[part]);
            self.write(Stream::Lifecycle);
            offset += part.len();
        }
    }

    /// Records the wanted variables unless the same environment has been seen; returns its id.
    fn tell_environment(&mut self, exec: &mut ExecFixed, environment: &[u8]) -> u64 {
        let names = &self.settings.wanted.env_names;
        if names.is_empty() || environment.is_empty() {
            return 0;
        }
        let env_id = self.environments.seed.hash_one(environment) | 1;
        if self.environments.known.contains(&env_id) {
            return env_id;
        }
        let (wanted, is_cut) = wanted_of(environment, names);
        if is_cut {
            exec.bits |= EXEC_ENV_CUT;
        }
        let env = EnvFixed {
            head: head(Kind::Env, exec.head.task, exec.head.time_ns),
            env_id,
            bytes: u32::try_from(wanted.len()).unwrap_or(0),
            bits: if is_cut { EXEC_ENV_CUT } else { 0 },
        };
        assemble(&mut self.record, &env, &[&wanted]);
        if self.write(Stream::Lifecycle) {
            self.environments.known.insert(env_id);
        }
        env_id
    }

    /// Records where the paths of a process lead if that differs from its parent's.
    fn tell_place(&mut self, exec: &ExecFixed, seen: &Seen) {
        let Some(process) = self.processes.get_mut(&exec.process) else { return };
        if process.directory.as_deref() != Some(&seen.directory[..]) {
            process.directory = Some(seen.directory[..].into());
        }
        let Some(place) = &seen.place else { return };
        let is_known = process.place.as_ref().is_some_and(|known| known.is_same_as(place));
        process.place = Some(Rc::clone(place));
        if is_known {
            return;
        }
        let root = &place.root[..place.root.len().min(PATH_MAX)];
        let fixed = PlaceFixed {
            head: head(Kind::Place, exec.head.task, exec.head.time_ns),
            process: exec.process,
            tgid: exec.tgid,
            mount_namespace: place.number(),
            path_bytes: u16::try_from(root.len()).unwrap_or(0),
            bits: 0,
        };
        assemble(&mut self.record, &fixed, &[root]);
        self.write(Stream::Lifecycle);
    }
}

/// Data that the kernel shows of a program that has not run yet, and may be different as soon as it
/// has.
struct Seen {
    exe: Vec<u8>,
    directory: Vec<u8>,
    /// None if it may not be read.
    place: Option<Rc<MountView>>,
    is_script: bool,
    /// Name of the task, if the path that was executed does not tell it.
    comm: Option<[u8; 16]>,
}

impl Seen {
    /// Reads what a program is; None for one that may be executed but not read.
    fn of(tid: Tid, given: Option<&Given<'_>>, process: &Process) -> Option<Self> {
        let files = &process.files;
        let exe = files.link(tid, "exe")?;
        let directory = files.link(tid, "cwd").unwrap_or_default();
        let root_id = files.root_id(tid);
        let place = match &process.place {
            Some(before) if root_id.is_some() && before.root_id == root_id => {
                Some(Rc::clone(before))
            }
            _ => files
                .link(tid, "ns/mnt")
                .zip(files.link(tid, "root"))
                .map(|(namespace, root)| Rc::new(MountView { namespace, root, root_id })),
        };
        let is_script = given.is_some_and(|given| is_script(tid, given));
        // The path of execveat(2) with a descriptor.
        let is_descriptor = given.is_some_and(|given| given.path.starts_with(b"/dev/fd/"));
        let comm = is_descriptor.then(|| procfs::Usage::of_stat(tid, tid)).flatten();
        Some(Self { exe, directory, place, is_script, comm: comm.map(|usage| usage.comm) })
    }
}

/// True if a script was executed: its arguments are the interpreter, at most one option, the script and its own
/// arguments. If the script's interpreter is a script, that comes in between.
fn is_script(tid: Tid, given: &Given<'_>) -> bool {
    let mut arguments = given.arguments.split(|byte| *byte == 0).skip(1);
    if given.path.is_empty() || !arguments.by_ref().take(4).any(|argument| argument == given.path) {
        return false;
    }
    // A program may be given its own path as an argument.
    let identity = |path: String| {
        let file = std::fs::metadata(path).ok()?;
        Some((file.dev(), file.ino()))
    };
    let below = if given.path.starts_with(b"/") { "root" } else { "cwd" };
    let script = String::from_utf8_lossy(given.path);
    let script = identity(format!("/proc/{tid}/{below}/{script}"));
    script.is_none() || script != identity(format!("/proc/{tid}/exe"))
}

/// The wanted NAME=value strings of an environment, and whether some are missing.
fn wanted_of(environment: &[u8], names: &[String]) -> (Vec<u8>, bool) {
    let (mut wanted, mut is_cut) = (Vec::new(), false);
    for variable in environment.split_inclusive(|byte| *byte == 0) {
        let is_wanted = names.iter().any(|name| {
            variable.strip_prefix(name.as_bytes()).is_some_and(|value| value.starts_with(b"="))
        });
        if !is_wanted {
            continue;
        }
        let kept = &variable[..variable.len().min(ENV_VALUE_MAX - 1)];
        let kept = kept.strip_suffix(b"\0").unwrap_or(kept);
        if wanted.len() + kept.len() + 1 > ENV_MAX {
            return (wanted, true);
        }
        is_cut |= kept.len() + 1 < variable.len();
        wanted.extend_from_slice(kept);
        wanted.push(0);
    }
    (wanted, is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_wanted_variables_are_kept() {
        let names = ["PATH", "ROOTSYS"].map(String::from);
        let environment = b"SECRET=1\0PATH=/bin\0PATHS=x\0ROOTSYS=\0ROOTSYS\0";
        assert_eq!(wanted_of(environment, &names), (b"PATH=/bin\0ROOTSYS=\0".to_vec(), false));
        let long = [b"PATH=".as_slice(), &[b'x'; 20_000], b"\0A=1\0"].concat();
        let (kept, is_cut) = wanted_of(&long, &names);
        assert_eq!((kept.len(), is_cut), (ENV_VALUE_MAX, true));
        assert_eq!(kept.iter().filter(|byte| **byte == 0).count(), 1);
    }
}
