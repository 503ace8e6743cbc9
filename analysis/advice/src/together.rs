//! Gain of all advice together, which is less than the sum of the gains where two changes save the same time.

use proctrace_findings::{Gain, Together};

use super::evidence::{Evidence, less};
use super::{Effect, Found};

/// Gain of all changes that surely gain something and are not about mostly the same processes as a better one.
///
/// Processes that are no longer started are taken out of the recording at once, so that each counts once. Low:
/// what that gains at least, or the largest gain of any single change, since no change undoes another. Middle:
/// that estimate and those of the other changes, at least the largest of all. High: the sum. CPU time likewise.
pub(super) fn gain(evidence: &Evidence<'_>, found: &[Found]) -> Option<Together> {
    let is_counted = |found: &&Found| found.advice.part_of.is_none() && found.advice.is_certain();
    let separate = || found.iter().filter(is_counted);
    separate().next()?;
    // The same changes everywhere: what is part of a better one may concern a few processes more.
    let mut removed: Vec<u32> = separate()
        .filter(|it| it.effect == Effect::Removed)
        .flat_map(|it| &it.processes)
        .copied()
        .collect();
    removed.sort_unstable();
    removed.dedup();
    let sum_of = |of: &dyn Fn(u32) -> u64| {
        removed.iter().fold(0_u64, |sum, process| sum.saturating_add(of(*process)))
    };
    let path_ns = sum_of(&|process| evidence.path_ns(process));
    let cpu_ns = sum_of(&|process| evidence.process(process).cpu.total_ns());
    let earlier = evidence.earlier_without(&removed).unwrap_or_default();
    let (low_ns, earlier_ns) = (earlier.low_ns.min(path_ns), earlier.ns.min(path_ns));
    let combine = |at_once: Gain, of: &dyn Fn(&Found) -> Gain| {
        let (mut low, mut middle, mut high) = (at_once.low, at_once.middle, 0_u64);
        let mut largest = 0;
        for found in separate() {
            let gain = of(found);
            low = low.max(gain.low);
            largest = largest.max(gain.middle);
            high = high.saturating_add(gain.high);
            if found.effect != Effect::Removed {
                middle = middle.saturating_add(gain.middle);
            }
        }
        Gain::new(low, middle.max(largest), high)
    };
    let wall = Gain::new(less(low_ns), earlier_ns.midpoint(path_ns), path_ns);
    let cpu = Gain::new(less(cpu_ns), cpu_ns, cpu_ns);
    Some(Together {
        wall_ns: combine(wall, &|found| found.advice.wall_ns).at_most(evidence.wall_ns),
        cpu_ns: combine(cpu, &|found| found.advice.cpu_ns).at_most(evidence.cpu_ns),
    })
}
