//! Tests of how ticks split CPU time, and of what they leave uncertain.

use super::*;
use proptest::prelude::*;

const TICK_NS: u64 = 4_000_000;

fn ticks(user: u64, system: u64) -> Ticks {
    Ticks { user_ns: user * TICK_NS, system_ns: system * TICK_NS }
}

fn split(user: u64, system: u64) -> Split {
    Split { tick_ns: TICK_NS, ticks: ticks(user, system) }
}

#[test]
fn the_length_of_a_tick_is_told_or_seen() {
    let of = |told, charged: &[Ticks]| Split::new(told, charged.iter().copied()).tick_ns;
    assert_eq!(of(Some(1_000_000), &[ticks(1, 0)]), 1_000_000);
    assert_eq!(of(None, &[ticks(1, 2), ticks(0, 1), ticks(1, 0)]), TICK_NS);
    // Two charges are nearer to a longer tick, but they are the minority.
    assert_eq!(of(None, &[ticks(2, 1), ticks(1, 0), ticks(1, 0)]), TICK_NS);
    let stolen = |user_ns| Ticks { user_ns, system_ns: 0 };
    assert_eq!(of(None, &[stolen(3_971_167), stolen(3_998_000), stolen(2_100_000)]), TICK_NS);
    assert_eq!(of(None, &[stolen(999_000), stolen(990_000)]), 1_000_000);
    // No kernel has ticks this long, or this short.
    assert_eq!(of(None, &[ticks(100, 0)]), 10_000_000);
    assert_eq!(of(None, &[stolen(12)]), 10_000_000);
}

#[test]
fn few_ticks_give_an_interval_and_no_number() {
    let split = split(400, 600);
    let group = |user, system| Divided {
        cpu: CpuTime { user_ns: 40, system_ns: 60 },
        ticks: ticks(user, system),
    };
    let found = split.certainty(&group(12, 18));
    assert_eq!((found.ticks, found.system_percent), (30.0, Some(60.0)));
    let found = split.certainty(&group(3, 0));
    assert_eq!(found.system_percent, None);
    let (low, high) = found.interval_percent.unwrap();
    assert!(low == 0.0 && high > 50.0, "{high}");
    assert_eq!(split.certainty(&group(0, 0)).interval_percent, None);
    assert!(!super::Split { ticks: ticks(29, 0), ..split }.is_known());
}

#[test]
fn a_group_is_split_by_its_own_ticks_only_if_it_has_enough() {
    let whole = split(400, 600);
    let cpu = CpuTime { user_ns: 40, system_ns: 60 };
    let group = |user, system| Divided { cpu, ticks: ticks(user, system) };
    assert_eq!(whole.own(&group(12, 18)), Some(cpu));
    assert_eq!(whole.own(&group(12, 17)), None);
    // Without ticks of the whole, those of the group prove nothing.
    assert_eq!(split(12, 17).own(&group(12, 18)), None);
    let half = CpuTime { user_ns: 50, system_ns: 50 };
    assert_eq!(whole.pooled(100, ticks(15, 15)), Some(half));
    assert_eq!(whole.pooled(100, ticks(14, 15)), None);
    let mut sum = group(12, 18);
    sum.add(&group(1, 2));
    assert_eq!(sum, Divided { cpu: CpuTime { user_ns: 80, system_ns: 120 }, ticks: ticks(13, 20) });
    let none = Divided { cpu: CpuTime::default(), ticks: ticks(12, 18) };
    assert_eq!(whole.certainty(&none).system_percent, None);
}

#[test]
fn an_interval_is_in_percent_with_six_decimals() {
    let of_half =
        split(400, 600).certainty(&Divided { cpu: CpuTime::default(), ticks: ticks(50, 50) });
    // Wilson 1927 for 50 of 100, z = 1.96.
    let (low, high) = of_half.interval_percent.unwrap();
    assert!((low - 40.383).abs() < 0.001 && (high - 59.617).abs() < 0.001, "{low} {high}");
    assert_eq!(low, (low * 1e6).round() / 1e6);
}

#[test]
fn what_waits_for_ticks_is_joined_and_nothing_of_it_is_lost() {
    let mut stretches = Stretches::new(TICK_NS);
    let growth = |at: u64| Growth { from_ns: at, to_ns: at + 1, run_ns: 10, ticks: ticks(0, 0) };
    let enough = Growth { ticks: ticks(1000, 0), ..growth(0) };
    assert!(stretches.suffices(&enough) && !stretches.suffices(&growth(0)));
    let pushed = PENDING_MAX as u64 + 3;
    for at in 0..pushed {
        stretches.push(7, growth(at), |_, _| panic!("it has no ticks"));
    }
    let pending = stretches.take_pending(7);
    assert_eq!(pending.len(), PENDING_MAX / 2 + 3);
    assert_eq!(pending.iter().map(|growth| growth.run_ns).sum::<u64>(), 10 * pushed);
    assert!(pending.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns));
    assert_eq!((pending[0].from_ns, pending[0].to_ns), (0, 2));
}

#[test]
fn a_program_with_few_ticks_borrows() {
    // Programs 0 and 1 are of one category, 2 of another.
    let programs = [ticks(30, 70), ticks(3, 0), ticks(0, 0)];
    let pools = Pools::new(TICK_NS, ticks(33, 70), &programs, &[0, 0, 1]);
    assert_eq!(pools.share(0), 0.7);
    let category = 70.0 / 103.0;
    assert!((pools.share(1) - category * 27.0 / 30.0).abs() < 1e-12);
    // No ticks of its own, and none in its category.
    assert!((pools.share(2) - category).abs() < 1e-12);
}

#[test]
fn enough_ticks_of_its_own_make_a_stretch() {
    let mut stretches = Stretches::new(TICK_NS);
    let mut told = Vec::new();
    let growth = |at: u64, user, system| Growth {
        from_ns: at,
        to_ns: at + 1,
        run_ns: 100,
        ticks: ticks(user, system),
    };
    stretches.push(7, growth(0, 20, 0), |growth, share| told.push((growth.from_ns, share)));
    assert!(stretches.pending[&7].len() == 1);
    stretches.push(7, growth(1, 0, 30), |growth, share| told.push((growth.from_ns, share)));
    stretches.push(7, growth(2, 9, 0), |growth, share| told.push((growth.from_ns, share)));
    assert_eq!(told, [(0, 0.6), (1, 0.6)]);
    let own = stretches.own(7);
    assert_eq!((own.run_ns, own.ticks, own.system_ns.round()), (200, ticks(20, 30), 120.0));
    assert_eq!(stretches.take_pending(7), [growth(2, 9, 0)]);
    // 120 of the first 200, and half of the rest.
    let cpu = divide(300, &own, 0.5);
    assert_eq!((cpu.user_ns, cpu.system_ns), (130, 170));
}

proptest! {
    #[test]
    fn what_waits_is_bounded_and_nothing_gets_lost(
        growths in proptest::collection::vec((0u64..1000, 0u64..2, 0u64..2), 1..2000),
    ) {
        let mut stretches = Stretches::new(TICK_NS);
        let (mut run_ns, mut divided_ns) = (0, 0);
        for (at, (run, user, system)) in growths.into_iter().enumerate() {
            let (from_ns, to_ns) = (at as u64, at as u64 + 1);
            let growth = Growth { from_ns, to_ns, run_ns: run, ticks: ticks(user, system) };
            run_ns += run;
            stretches.push(0, growth, |growth, share| {
                assert!((0.0..=1.0).contains(&share));
                divided_ns += growth.run_ns;
            });
        }
        let own = stretches.own(0);
        prop_assert_eq!(own.run_ns, divided_ns);
        prop_assert!(own.system_ns <= divided_ns as f64 + 1e-6);
        let pending = stretches.take_pending(0);
        prop_assert!(pending.len() <= PENDING_MAX);
        let waiting: u64 = pending.iter().map(|growth| growth.run_ns).sum();
        prop_assert_eq!(waiting + divided_ns, run_ns);
    }

    #[test]
    fn the_parts_are_the_whole(
        run: u64,
        own_run: u64,
        own_share in 0.0..=1.0f64,
        pooled in 0.0..=1.0f64,
    ) {
        let system_ns = own_run as f64 * own_share;
        let own = Own { run_ns: own_run, ticks: Ticks::default(), system_ns };
        let cpu = divide(run, &own, pooled);
        prop_assert_eq!(cpu.user_ns.checked_add(cpu.system_ns), Some(run));
    }

    #[test]
    fn a_balance_makes_parts_the_whole(
        parts in proptest::collection::vec((0u64..1_000_000_000, 0u64..1_000_000_000), 1..20),
        user in 1u64..1000,
        system in 0u64..1000,
    ) {
        let parts: Vec<CpuTime> = parts
            .into_iter()
            .map(|(user_ns, system_ns)| CpuTime { user_ns, system_ns })
            .collect();
        let sum: CpuTime = parts.iter().copied().sum();
        let split = split(user, system);
        let balance = split.balance(sum);
        let moved: Vec<CpuTime> = parts.iter().map(|part| balance.of_time(*part)).collect();
        for (before, after) in parts.iter().zip(&moved) {
            prop_assert_eq!(before.total_ns(), after.total_ns());
        }
        let found: CpuTime = moved.into_iter().sum();
        let expected = sum.total_ns() as f64 * split.ticks.system_share();
        prop_assert!((found.system_ns as f64 - expected).abs() <= 1.0 + parts.len() as f64);
    }

    #[test]
    fn hostile_ticks_give_shares(user: u64, system: u64, n in 0.0..1e18f64) {
        let found = Ticks { user_ns: user, system_ns: system }.system_share();
        prop_assert!((0.0..=1.0).contains(&found), "{found}");
        if let Some((low, high)) = wilson(found, n) {
            prop_assert!(0.0 <= low && low <= high && high <= 1.0, "{low} {high}");
        }
    }
}
