//! Identity of a process, by the kernel's own records: its credentials and namespaces.
//!
//! A broker decides by these what a client may see. Most of it is in no file of /proc that a broker may read without
//! rights over the client: two user namespaces of one user look alike in `uid_map`.

use std::os::fd::{AsFd, BorrowedFd};

use aya::Ebpf;
use aya::maps::{Array, MapData};
use aya::programs::Program;

use crate::compiled;
use crate::credentials::Credentials;
use crate::error::ProbeError;
use crate::link;
use crate::loader::{kernel_btf, new_loader};
use crate::program_info;
use crate::task_iterator::TaskIterator;

/// Must equal WHO_MAPS_MAX of who.h.
const MAPS_MAX: usize = 8;

/// `struct who_asked` of who.h.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Asked {
    tgid: u32,
    maps: [u32; MAPS_MAX],
    pad: u32,
}

/// `struct who_told` of who.h.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct Told {
    permitted: u64,
    effective: u64,
    ambient: u64,
    user_ns: u64,
    pid_ns: u64,
    cgroup: u64,
    started_ns: u64,
    ids: [u32; 6],
    user_ns_level: u32,
    owner: u32,
    pid_level: u32,
    found: u32,
    maps_found: u32,
    pad: u32,
}

// SAFETY: repr(C) structs of integers without padding: any bytes are valid, and all are initialised.
unsafe impl aya::Pod for Asked {}
// SAFETY: as above.
unsafe impl aya::Pod for Told {}

/// The number by which the kernel knows a map. It gives a number again only after it has given all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapId(u32);

impl MapId {
    /// The number of the map with this descriptor.
    ///
    /// # Errors
    /// When it is not one of a map.
    pub fn of(map: BorrowedFd<'_>) -> std::io::Result<Self> {
        program_info::map_id(map).map(Self)
    }
}

/// The programs that answer such questions, loaded.
pub struct TaskRecords {
    asked: Array<MapData, Asked>,
    told: Array<MapData, Told>,
    tasks: TaskIterator,
    maps: TaskIterator,
    /// Keeps the programs.
    _ebpf: Ebpf,
}

impl std::fmt::Debug for TaskRecords {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TaskRecords").finish_non_exhaustive()
    }
}

impl TaskRecords {
    /// Loads the programs.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub fn load() -> Result<Self, ProbeError> {
        let object = compiled::who();
        let btf = kernel_btf(&object)?;
        let mut loader = new_loader();
        let mut ebpf = loader
            .btf(Some(&btf.named))
            .load(&object)
            .map_err(|error| ProbeError::Load(error.into()))?;
        let mut link_of = |name: &'static str, visits: &str| {
            let set_up = ProbeError::set_up("iterator");
            let Some(Program::Iter(program)) = ebpf.program_mut(name) else {
                return Err(set_up(aya::programs::ProgramError::UnexpectedProgramType));
            };
            program
                .load(visits, &btf.attachable)
                .map_err(|error| ProbeError::Load(error.into()))?;
            let descriptor = program.fd().map_err(ProbeError::set_up("iterator"))?;
            let link = link::attach_iterator(descriptor.as_fd());
            Ok(TaskIterator { link: link.map_err(ProbeError::set_up("iterator"))? })
        };
        let tasks = link_of("on_who", "task")?;
        let maps = link_of("on_map", "bpf_map")?;
        let mut map = |name: &str| {
            let missing = aya::maps::MapError::InvalidName { name: name.to_owned() };
            ebpf.take_map(name).ok_or_else(|| ProbeError::set_up("maps")(missing))
        };
        let asked = Array::try_from(map("asked")?).map_err(ProbeError::set_up("maps"))?;
        let told = Array::try_from(map("told")?).map_err(ProbeError::set_up("maps"))?;
        Ok(Self { asked, told, tasks, maps, _ebpf: ebpf })
    }

    /// The process with this id in the initial pid namespace; none if there is none.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn credentials(&mut self, tgid: u32) -> Result<Option<Credentials>, ProbeError> {
        let told = self.ask(Asked { tgid, ..Asked::default() }, |records| &records.tasks)?;
        let [uid, euid, suid, gid, egid, sgid] = told.ids;
        Ok((told.found == 1).then_some(Credentials {
            uids: [uid, euid, suid],
            gids: [gid, egid, sgid],
            permitted: told.permitted,
            effective: told.effective,
            ambient: told.ambient,
            user_ns_level: told.user_ns_level,
            owner: told.owner,
            pid_level: told.pid_level,
            cgroup: told.cgroup,
            started_ns: told.started_ns,
            user_ns: told.user_ns,
            pid_ns: told.pid_ns,
        }))
    }

    /// Returns true if one of these maps exists still, because something refers to it: a descriptor, memory that is
    /// mapped, a pin, or a loaded program. At most 8 are looked for.
    ///
    /// # Errors
    /// When the kernel cannot be asked.
    pub fn are_in_use(&mut self, maps: &[MapId]) -> Result<bool, ProbeError> {
        let mut asked = Asked::default();
        for (map, id) in maps.iter().zip(&mut asked.maps) {
            *id = map.0;
        }
        Ok(self.ask(asked, |records| &records.maps)?.maps_found > 0)
    }

    fn ask(
        &mut self,
        asked: Asked,
        pass: impl Fn(&Self) -> &TaskIterator,
    ) -> Result<Told, ProbeError> {
        let maps = ProbeError::set_up;
        self.told.set(0, Told::default(), 0).map_err(maps("maps"))?;
        self.asked.set(0, asked, 0).map_err(maps("maps"))?;
        pass(self).pass(&mut Vec::new())?;
        self.told.get(&0, 0).map_err(maps("maps"))
    }
}

#[cfg(test)]
mod tests {
    mod root {
        use super::super::*;
        use std::os::unix::fs::MetadataExt;

        #[test]
        fn a_process_is_found_with_its_ids() {
            let mut records = TaskRecords::load().expect("the test needs root");
            let me = records.credentials(std::process::id()).unwrap().expect("it is alive");
            let ids = rustix::process::getuid().as_raw();
            assert_eq!((me.uids, me.is_one_user()), ([ids; 3], true));
            assert_eq!((me.user_ns_level, me.pid_level, me.owner), (0, 0, ids));
            let sets = rustix::thread::capabilities(None).unwrap();
            assert_eq!(me.permitted, sets.permitted.bits());
            assert_eq!(me.effective, sets.effective.bits());
            let own = std::fs::read_to_string("/proc/self/cgroup").unwrap();
            let path = own.lines().find_map(|line| line.strip_prefix("0::")).expect("version 2");
            let directory = std::fs::metadata(format!("/sys/fs/cgroup{path}"));
            if let Ok(directory) = directory {
                assert_eq!(me.cgroup, directory.ino());
            }
            assert_eq!(records.credentials(u32::MAX).unwrap(), None);
            let is_in_use = |records: &mut TaskRecords, id| records.are_in_use(&[id]).unwrap();
            // One of its own maps, found as anybody would: its descriptor is not public.
            let is_map = |fd: &std::path::Path| {
                std::fs::read_link(fd).is_ok_and(|link| link.ends_with("anon_inode:bpf-map"))
            };
            let entries = std::fs::read_dir("/proc/self/fd").unwrap();
            let map = entries.map(|entry| entry.unwrap().path()).find(|fd| is_map(fd)).unwrap();
            let number: i32 = map.file_name().unwrap().to_str().unwrap().parse().unwrap();
            // SAFETY: it is open as long as `records` is.
            let map = unsafe { BorrowedFd::borrow_raw(number) };
            let id = MapId::of(map).unwrap();
            assert!(is_in_use(&mut records, id) && !is_in_use(&mut records, MapId(u32::MAX)));
        }
    }
}
