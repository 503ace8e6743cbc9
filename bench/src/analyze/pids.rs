//! The pids of a repeated recording: allocated sequentially, wrapping around at the end.

use std::collections::{BTreeSet, HashMap};

use anyhow::{Result, ensure};

/// Minimum pid after the first wrap-around: Linux reserves smaller ones for daemons.
const PID_FIRST: i32 = 300;

/// Maps the pid of a task to its pid in each repetition.
#[derive(Debug)]
pub(super) struct Pids {
    /// Pids that are reassigned, by their position in the order of births.
    places: HashMap<i32, u64>,
    /// Pids of the root and of tasks outside the recording: they are fixed, and never assigned to
    /// others.
    residents: Vec<i32>,
    /// The number of assignable pids.
    supply: u64,
}

impl Pids {
    /// Makes the pids for tasks with these pids, in birth order, among all pids that occur in a recording.
    pub(super) fn new(born: &[i32], all: impl Iterator<Item = i32>, pid_max: i32) -> Result<Self> {
        let mut places = HashMap::new();
        for pid in born {
            let next = places.len() as u64;
            places.entry(*pid).or_insert(next);
        }
        let pool = PID_FIRST..pid_max;
        let residents: BTreeSet<i32> =
            all.filter(|pid| pool.contains(pid) && !places.contains_key(pid)).collect();
        let supply = (i64::from(pid_max) - i64::from(PID_FIRST) - residents.len() as i64).max(0);
        let supply = supply.unsigned_abs();
        // Twice as many, so that a task that outlives its repetition keeps its pid exclusively.
        ensure!(supply >= 2 * places.len() as u64, "{supply} pids are too few: increase --pid-max");
        Ok(Self { places, residents: residents.into_iter().collect(), supply })
    }

    /// The pid of the same task in a repetition; the first repetition assigns new ones as well, so
    /// that the whole sequence is in order.
    pub(super) fn of_copy(&self, pid: i32, copy: u64) -> i32 {
        let Some(place) = self.places.get(&pid) else { return pid };
        let nth = (place + copy * self.places.len() as u64) % self.supply;
        let mut given = PID_FIRST.saturating_add(i32::try_from(nth).unwrap_or(i32::MAX));
        for resident in &self.residents {
            if *resident <= given {
                given += 1;
            }
        }
        given
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pids_begin_again_and_leave_out_those_that_stay() {
        let born = [40, 41, 40, 42];
        let pids = Pids::new(&born, [1, 301, 303, 40].into_iter(), 309).unwrap();
        let given: Vec<i32> =
            (0..4).flat_map(|copy| [40, 41, 42].map(|pid| pids.of_copy(pid, copy))).collect();
        assert_eq!(given, [300, 302, 304, 305, 306, 307, 308, 300, 302, 304, 305, 306]);
        assert_eq!([1, 303, 999].map(|pid| pids.of_copy(pid, 3)), [1, 303, 999]);
        assert!(Pids::new(&born, [].into_iter(), 305).is_err(), "a pid would have two owners");
    }
}
