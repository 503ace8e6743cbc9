//! `startup-cost`: a program that is started many times, and mostly loads its libraries.

use std::collections::BTreeMap;

use proctrace_findings::{Advice, Gain, counted, time};

use super::Found;
use super::evidence::Evidence;

/// Minimum starts that are worth a change.
const STARTS_MIN: usize = 10;

/// Per command: all starts but one, as far as they loaded libraries.
///
/// When loading was over is known at the earliest ([`proctrace_recording::load::starts`]). Wall: of the loading time, the part
/// that the process was on the critical path (middle); low 0; high as [`Evidence::without`] for all starts but
/// the first, as a start is more than loading. CPU: of the process's CPU time, the part of its life in which it
/// loaded (middle); the same low and high.
pub(super) fn find(evidence: &Evidence<'_>) -> Vec<Found> {
    let mut groups: BTreeMap<u32, Vec<(u32, u64)>> = BTreeMap::new();
    for (process, it) in evidence.processes() {
        let start = it
            .run()
            .and_then(|run| evidence.recording.starts().unwrap_or_default().get(run as usize));
        let loaded_ns = start.map_or(0, proctrace_recording::load::starts::Start::loaded_ns);
        let life_ns = evidence.life_ns(process);
        let mostly_loads = loaded_ns > 0 && (life_ns / 2..=life_ns).contains(&loaded_ns);
        if mostly_loads
            && it.execs > 0
            && let Some(command) = evidence.command_number(process)
        {
            groups.entry(command).or_default().push((process, loaded_ns));
        }
    }
    let groups = groups.into_iter().filter(|(_, starts)| starts.len() >= STARTS_MIN);
    groups
        .filter_map(|(command, starts)| {
            advice(evidence, evidence.command_numbered(command), &starts)
        })
        .collect()
}

fn advice(evidence: &Evidence<'_>, command: &str, starts: &[(u32, u64)]) -> Option<Found> {
    let (mut path_ns, mut cpu_ns, mut loaded_sum_ns) = (0_u64, 0_u64, 0_u64);
    for (process, loaded_ns) in &starts[1..] {
        let part = *loaded_ns as f64 / evidence.life_ns(*process).max(1) as f64;
        let own = |ns: u64| (ns as f64 * part.min(1.0)) as u64;
        path_ns = path_ns.saturating_add(own(evidence.path_ns(*process)));
        cpu_ns = cpu_ns.saturating_add(own(evidence.process(*process).cpu.total_ns()));
        loaded_sum_ns = loaded_sum_ns.saturating_add(*loaded_ns);
    }
    if !evidence.pays(path_ns, cpu_ns) {
        return None;
    }
    let processes: Vec<u32> = starts.iter().map(|(process, _)| *process).collect();
    let all = evidence.without(&processes[1..])?;
    let advice = Advice {
        kind: "startup-cost",
        what: format!("Start `{command}` once for all its work: it mostly loads libraries"),
        evidence: format!(
            "{} such as `{}` search their libraries for {} in total, more than half of their lives",
            counted(starts.len() as u64, "start", "starts"),
            evidence.line(starts[0].0),
            time(loaded_sum_ns)
        ),
        commands: vec![command.to_owned()],
        processes: processes.len() as u64,
        wall_ns: Gain::new(0, path_ns, all.wall.high),
        cpu_ns: Gain::new(0, cpu_ns, all.cpu.high),
        method:
            "loading lasts at least until the last failed look-up of a library; wall: that part of \
                 their time on the critical path (middle), all of it and the time to start them (high)"
                .into(),
        risk: "one process keeps what separate ones do not share".into(),
        check: "`proctrace libs` says which searches these are; record again".into(),
        ..Advice::default()
    };
    Some(Found::less(processes, advice))
}
