//! Any caller and any task: the rules of bpf/rights.bpf.h let the caller see the task exactly if the kernel would let
//! it open /proc/PID/environ, as that is written down here once more, from the kernel's sources.
//!
//! In pairs of real processes the kernel itself is asked (crates/cli/tests/it/root/rights_pairs.rs); here are the combinations
//! of ids, capabilities, maps and namespaces that nobody sets up.

use proctrace_fixtures::rights::{Case, Map, NAMESPACES, Namespace, RANGES, Range, may_see};

/// Few ids, so that those of a caller and a task are often equal.
const IDS: [u32; 8] = [0, 1, 1000, 1001, 65_534, 100_000, 100_001, 165_535];
/// CAP_SYS_PTRACE, what container engines leave, and all.
const CAPABILITIES: [u64; 4] = [0, 1 << 19, 0xa804_25fb, u64::MAX];

pub(crate) fn run(data: &[u8]) {
    let case = case(&mut Bytes(data));
    let rules = may_see(&case);
    let is_long = |map: &Map| map.len as usize > RANGES;
    let exact = !case.namespaces.iter().any(|ns| is_long(&ns.users) || is_long(&ns.groups));
    let kernel = kernel(&case);
    // What is in long maps is not known to the rules, and the kernel of this harness has the strictest there.
    assert!(kernel || !rules, "the rules show what the kernel does not: {case:?}");
    assert!(!exact || rules == kernel, "the rules hide what the kernel shows: {case:?}");
}

/// Bytes as numbers; after the last one, zeros.
struct Bytes<'a>(&'a [u8]);

impl Bytes<'_> {
    fn next(&mut self) -> u8 {
        let (first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        *first
    }

    fn below(&mut self, most: usize) -> usize {
        usize::from(self.next()) % most
    }

    fn flag(&mut self) -> u32 {
        u32::from(self.next() & 1)
    }

    fn id(&mut self) -> u32 {
        IDS[self.below(IDS.len())]
    }

    fn capabilities(&mut self) -> u64 {
        match self.below(5) {
            4 => u64::from_le_bytes(std::array::from_fn(|_| self.next())),
            known => CAPABILITIES[known],
        }
    }

    /// Ranges that do not overlap in the namespace, as map_write() in kernel/user_namespace.c wants them.
    fn map(&mut self) -> Map {
        let mut map = Map { len: self.below(RANGES + 2) as u32, ..Map::default() };
        for (at, range) in map.ranges.iter_mut().enumerate() {
            let first = at as u32 * 65_536 + self.flag();
            let count = [1, 2, 65_535][self.below(3)];
            *range = Range { first, lower_first: self.id(), count };
        }
        map
    }
}

fn case(bytes: &mut Bytes<'_>) -> Case {
    let mut case = Case {
        caller_uid: bytes.id(),
        caller_gid: bytes.id(),
        caller_ns: bytes.below(NAMESPACES) as u32,
        caller_may_trace: bytes.flag(),
        caller_may_read: bytes.flag(),
        ns: bytes.below(NAMESPACES) as u32,
        program_ns: bytes.below(NAMESPACES) as u32,
        dumpable: bytes.flag(),
        // Seldom: nothing else counts then.
        numbered: u32::from(bytes.below(16) != 1),
        between: u32::from(bytes.below(16) == 1),
        caller_permitted: bytes.capabilities(),
        permitted: bytes.capabilities(),
        ..Case::default()
    };
    // Mostly those of the caller.
    for (at, id) in case.ids.iter_mut().enumerate() {
        let own = if at < 3 { case.caller_uid } else { case.caller_gid };
        *id = if bytes.below(4) == 1 { bytes.id() } else { own };
    }
    for at in 1..NAMESPACES {
        let (parent, owner) = (bytes.below(at) as u32, bytes.id());
        case.namespaces[at] = Namespace { parent, owner, users: bytes.map(), groups: bytes.map() };
    }
    case
}

/// Returns whether proc_pid_environ's file can be opened: fs/proc/base.c, environ_open() by way of proc_mem_open(), and
/// the permissions of the file.
fn kernel(case: &Case) -> bool {
    // Only what has a number is in that /proc. In the middle of an exec, the rules wait for its end.
    if case.numbered == 0 || case.between != 0 {
        return false;
    }
    ptrace_may_access(case) && may_read_of_owner(case)
}

/// __ptrace_may_access() with PTRACE_MODE_READ_REALCREDS, kernel/ptrace.c.
fn ptrace_may_access(case: &Case) -> bool {
    let (users, groups) = case.ids.split_at(3);
    let are_ids_own = users.iter().all(|id| *id == case.caller_uid)
        && groups.iter().all(|id| *id == case.caller_gid);
    if !are_ids_own && !ns_capable(case, case.ns) {
        return false;
    }
    if case.dumpable == 0 && !ns_capable(case, case.program_ns) {
        return false;
    }
    // cap_ptrace_access_check(), security/commoncap.c
    (case.caller_ns == case.ns && case.permitted & !case.caller_permitted == 0)
        || ns_capable(case, case.ns)
}

/// cap_capable() for CAP_SYS_PTRACE, security/commoncap.c.
fn ns_capable(case: &Case, target: u32) -> bool {
    let level = |mut at: u32| {
        let mut level = 0;
        while at != 0 {
            at = case.namespaces[at as usize].parent;
            level += 1;
        }
        level
    };
    let mut at = target;
    loop {
        if at == case.caller_ns {
            return case.caller_may_trace != 0;
        }
        if level(at) <= level(case.caller_ns) {
            return false;
        }
        let ns = &case.namespaces[at as usize];
        if ns.parent == case.caller_ns && ns.owner == case.caller_uid {
            return true;
        }
        at = ns.parent;
    }
}

/// The file has mode 0400 and the owner that task_dump_owner(), fs/proc/base.c, gives it.
fn may_read_of_owner(case: &Case) -> bool {
    let (uid, gid) = if case.dumpable != 0 {
        (case.ids[2], case.ids[5])
    } else {
        (root_of(case, |ns| &ns.users), root_of(case, |ns| &ns.groups))
    };
    // generic_permission(), and capable_wrt_inode_uidgid() in the caller's namespace
    let is_there = |map: fn(&Namespace) -> &Map, id| {
        case.caller_ns == 0 || has(map(&case.namespaces[case.caller_ns as usize]), id)
    };
    uid == case.caller_uid
        || (case.caller_may_read != 0
            && is_there(|ns| &ns.users, uid)
            && is_there(|ns| &ns.groups, gid))
}

/// make_kuid(ns, 0), or the initial root if that is none. A long map: somebody else.
fn root_of(case: &Case, map: fn(&Namespace) -> &Map) -> u32 {
    if case.program_ns == 0 {
        return 0;
    }
    let map = map(&case.namespaces[case.program_ns as usize]);
    if map.len as usize > RANGES {
        return 0xdead_beef;
    }
    let ranges = &map.ranges[..map.len as usize];
    let of_root = ranges.iter().find(|range| range.first == 0 && range.count > 0);
    of_root.map_or(0, |range| range.lower_first)
}

/// Returns whether from_kuid() knows the id. A long map: no.
fn has(map: &Map, id: u32) -> bool {
    let ranges = map.ranges.get(..map.len as usize).unwrap_or_default();
    ranges.iter().any(|range| {
        (u64::from(range.lower_first)..u64::from(range.lower_first) + u64::from(range.count))
            .contains(&u64::from(id))
    })
}
