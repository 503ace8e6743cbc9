//! Detectors at work at the same time, with their findings in order.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::{available_parallelism, scope};

/// A question that can be answered on any thread.
pub(crate) type Question<'q, T> = &'q (dyn Fn() -> T + Sync);

/// Maximum number of threads: most detectors read all processes, and one reads them as long as four others.
const THREADS_MAX: usize = 4;

/// Answers all questions on up to [`THREADS_MAX`] cores, or on this thread alone; returns the answers in the order of
/// the questions.
pub(crate) fn answers<T: Send>(questions: &[Question<'_, T>], alone: bool) -> Vec<T> {
    let cores = available_parallelism().map_or(1, NonZero::get).min(THREADS_MAX);
    if alone || cores == 1 {
        return questions.iter().map(|question| question()).collect();
    }
    let next = AtomicUsize::new(0);
    let work = || {
        let mut answered = Vec::new();
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(question) = questions.get(at) else { return answered };
            answered.push((at, question()));
        }
    };
    let mut answered = scope(|scope| {
        let others: Vec<_> = (1..cores).map(|_| scope.spawn(work)).collect();
        let mut answered = work();
        for other in others {
            let other = other.join();
            answered.extend(other.unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        }
        answered
    });
    answered.sort_unstable_by_key(|(at, _)| *at);
    answered.into_iter().map(|(_, answer)| answer).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let numbers: Vec<u64> = (0..100).collect();
        let questions: Vec<_> = numbers
            .iter()
            .map(|number| {
                // The first ones take longest.
                move || (0..(100 - number) * 1000).fold(*number, |sum, _| std::hint::black_box(sum))
            })
            .collect();
        let asked: Vec<Question<'_, u64>> =
            questions.iter().map(|question| question as Question<'_, u64>).collect();
        assert_eq!(answers(&asked, false), numbers);
        assert_eq!(answers(&asked, true), numbers);
        assert!(answers::<u64>(&[], false).is_empty());
    }
}
