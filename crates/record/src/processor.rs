//! The processors of the machine, from /proc/cpuinfo and sysfs.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use proctrace_trace::Processor;

/// The processors, as far as the machine tells.
pub fn processor() -> Processor {
    let cpuinfo = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    of(&cpuinfo, Path::new("/sys/devices/system/cpu"))
}

fn of(cpuinfo: &str, cpus: &Path) -> Processor {
    let mut processor = Processor { model: model(cpuinfo), ..Processor::default() };
    // Of each CPU that is online: its package, and its core within the package.
    let mut places: Vec<(i64, i64)> = Vec::new();
    for entry in fs::read_dir(cpus).into_iter().flatten().flatten() {
        let number = |name: &str| -> Option<i64> {
            fs::read_to_string(entry.path().join("topology").join(name)).ok()?.trim().parse().ok()
        };
        places.extend(number("physical_package_id").zip(number("core_id")));
    }
    let packages: BTreeSet<i64> = places.iter().map(|(package, _)| *package).collect();
    let cores: BTreeSet<(i64, i64)> = places.iter().copied().collect();
    let each = |all: usize, of: usize| u32::try_from(all.checked_div(of)?).ok();
    processor.cpus = u32::try_from(places.len()).ok().filter(|cpus| *cpus > 0);
    processor.sockets = u32::try_from(packages.len()).ok().filter(|sockets| *sockets > 0);
    processor.cores_per_socket = each(cores.len(), packages.len());
    processor.threads_per_core = each(places.len(), cores.len());
    processor
}

/// The model of the first CPU; not every architecture has it.
fn model(cpuinfo: &str) -> Option<String> {
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let known = matches!(name.trim(), "model name" | "Model" | "cpu model");
        known.then(|| value.trim().to_owned()).filter(|model| !model.is_empty())
    };
    cpuinfo.lines().find_map(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_cores_and_threads_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let directory = directory.path();
        // Two sockets of three cores with two threads each.
        for cpu in 0..12 {
            let topology = directory.join(format!("cpu{cpu}/topology"));
            fs::create_dir_all(&topology).unwrap();
            fs::write(topology.join("physical_package_id"), format!("{}\n", cpu / 6)).unwrap();
            fs::write(topology.join("core_id"), format!("{}\n", cpu % 3)).unwrap();
        }
        fs::create_dir_all(directory.join("cpuidle")).unwrap();
        let text = "processor\t: 0\nvendor_id\t: X\nmodel name\t: A  B\n\nmodel name\t: C\n";
        let found = of(text, directory);
        let expected = Processor {
            model: Some("A  B".into()),
            cpus: Some(12),
            sockets: Some(2),
            cores_per_socket: Some(3),
            threads_per_core: Some(2),
        };
        assert_eq!(found, expected);
        assert_eq!(of("", &directory.join("none")), Processor::default());
    }

    #[test]
    fn this_machine_has_one() {
        let found = processor();
        let online = fs::read_dir("/sys/devices/system/cpu").unwrap().flatten();
        let online = online.filter(|entry| entry.path().join("topology/core_id").exists()).count();
        assert_eq!(found.cpus.unwrap_or(0) as usize, online);
    }
}
