//! The plan of an experiment: what runs when, so that neither order nor cold caches favour a side.

/// One of two things that are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that runs first in the first round.
    A,
    /// The other.
    B,
}

/// The order of the sides in a round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Order {
    /// A before B: B depends on what A gave.
    Fixed,
    /// A first and B first in turn, from round to round.
    Alternating,
}

/// Pairs of runs, one round after another, so that a disturbance meets both sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// Rounds that are not counted, because they fill caches.
    pub warm_ups: u32,
    /// Rounds that are counted.
    pub rounds: u32,
    /// The order within a round.
    pub order: Order,
}

/// One round: a run of each side.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Round {
    /// Its number among those that are counted, from 1; 0 for a warm-up.
    pub number: u32,
    /// The side that runs first.
    pub first: Side,
}

impl Plan {
    /// The rounds in order, with the warm-ups.
    pub fn rounds(self) -> impl Iterator<Item = Round> {
        (0..self.warm_ups.saturating_add(self.rounds)).map(move |turn| Round {
            number: (turn + 1).saturating_sub(self.warm_ups),
            first: match self.order {
                Order::Alternating if turn % 2 == 1 => Side::B,
                _ => Side::A,
            },
        })
    }

    /// Runs all rounds, each given to `check` when it is complete; returns the counted runs of A and of B, of which
    /// the nth are a pair.
    ///
    /// # Errors
    /// The first of `run` or `check`.
    pub fn run<T, E>(
        self,
        mut run: impl FnMut(Round, Side) -> Result<T, E>,
        mut check: impl FnMut(Round, &T, &T) -> Result<(), E>,
    ) -> Result<(Vec<T>, Vec<T>), E> {
        let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
        for round in self.rounds() {
            let (a, b) = round.pair(|side| run(round, side))?;
            check(round, &a, &b)?;
            if !round.is_warm_up() {
                of_a.push(a);
                of_b.push(b);
            }
        }
        Ok((of_a, of_b))
    }
}

impl Round {
    /// Returns whether it is not counted.
    pub fn is_warm_up(self) -> bool {
        self.number == 0
    }

    /// Runs both sides in the order of the round; returns the run of A, then that of B.
    ///
    /// # Errors
    /// That of the first run that fails; the other is not made then.
    pub fn pair<T, E>(self, mut run: impl FnMut(Side) -> Result<T, E>) -> Result<(T, T), E> {
        match self.first {
            Side::A => Ok((run(Side::A)?, run(Side::B)?)),
            Side::B => {
                let b = run(Side::B)?;
                Ok((run(Side::A)?, b))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run, by its time.
    type Run = (u32, Side);

    /// The runs of A and of B, and the rounds, by a runner whose clock advances by one with each run.
    fn clocked(plan: Plan) -> (Vec<Run>, Vec<Run>, Vec<u32>) {
        let (mut now, mut checked) = (0, Vec::new());
        let run = |_, side| -> Result<_, ()> {
            now += 1;
            Ok((now, side))
        };
        let (a, b) = plan
            .run(run, |round, a, b| {
                assert_eq!((a.1, b.1), (Side::A, Side::B));
                assert_eq!(a.0.min(b.0), if round.first == Side::A { a.0 } else { b.0 });
                checked.push(round.number);
                Ok(())
            })
            .unwrap();
        (a, b, checked)
    }

    #[test]
    fn sides_alternate_and_warm_ups_are_not_counted() {
        let plan = Plan { warm_ups: 1, rounds: 3, order: Order::Alternating };
        let (a, b, checked) = clocked(plan);
        assert_eq!(a, [(4, Side::A), (5, Side::A), (8, Side::A)]);
        assert_eq!(b, [(3, Side::B), (6, Side::B), (7, Side::B)]);
        assert_eq!(checked, [0, 1, 2, 3]);
    }

    #[test]
    fn a_fixed_order_stays() {
        let (a, b, checked) = clocked(Plan { warm_ups: 0, rounds: 2, order: Order::Fixed });
        assert_eq!((a, b), (vec![(1, Side::A), (3, Side::A)], vec![(2, Side::B), (4, Side::B)]));
        assert_eq!(checked, [1, 2]);
        let (a, b, checked) = clocked(Plan { warm_ups: 0, rounds: 0, order: Order::Fixed });
        assert!(a.is_empty() && b.is_empty() && checked.is_empty());
    }

    #[test]
    fn a_failure_ends_it() {
        let plan = Plan { warm_ups: 0, rounds: 5, order: Order::Alternating };
        let mut runs = 0;
        let failed = plan.run(
            |round, side| {
                runs += 1;
                if (round.number, side) == (2, Side::B) { Err("run") } else { Ok(()) }
            },
            |_, (), ()| Ok(()),
        );
        // The second round begins with B.
        assert_eq!((failed, runs), (Err("run"), 3));
        let failed = plan.run(|_, _| Ok(()), |_, (), ()| Err("check"));
        assert_eq!(failed, Err("check"));
    }
}
