//! Every interleaving of a tracer and a recorder that loom finds, with rings of few bytes.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::AtomicU64;
use loom::thread;
use proctrace_wire::layout::{Again, Head};
use proctrace_wire::{IntoBytes, Kind};

use super::*;

impl Number for AtomicU64 {
    fn load(&self, order: Ordering) -> u64 {
        self.load(order)
    }

    fn store(&self, value: u64, order: Ordering) {
        self.store(value, order);
    }

    fn fetch_add(&self, value: u64, order: Ordering) -> u64 {
        self.fetch_add(value, order)
    }
}

/// A ring of two records of 24 bytes, and of 16 bytes that are left unused before its end.
const RING_WORDS: usize = 8;

/// What both processes map. loom fails if a word is read and written at the same time.
#[derive(Default)]
struct Shared {
    positions: Positions<AtomicU64>,
    words: [UnsafeCell<u64>; RING_WORDS],
    tasks: Tasks<AtomicU64>,
    end: End<AtomicU64>,
}

impl Memory for &[UnsafeCell<u64>; RING_WORDS] {
    fn bytes(&self) -> usize {
        8 * RING_WORDS
    }

    #[expect(unsafe_code, reason = "loom checks each access")]
    unsafe fn put(&self, at: usize, bytes: &[u8]) {
        for (word, bytes) in self[at / 8..].iter().zip(bytes.chunks_exact(8)) {
            let value = u64::from_ne_bytes(bytes.try_into().unwrap());
            // SAFETY: the pointer is that of the cell, and loom fails if another thread has one.
            word.with_mut(|word| unsafe { *word = value });
        }
    }

    #[expect(unsafe_code, reason = "loom checks each access")]
    unsafe fn look<T>(&self, at: usize, len: usize, at_bytes: impl FnOnce(&[u8]) -> T) -> T {
        let words = &self[at / 8..(at + len) / 8];
        // SAFETY: as above.
        let read = words.iter().flat_map(|word| word.with(|word| unsafe { *word }).to_ne_bytes());
        at_bytes(&read.collect::<Vec<u8>>())
    }
}

impl Shared {
    fn ring(&self) -> Ring<'_, AtomicU64, &[UnsafeCell<u64>; RING_WORDS]> {
        Ring { positions: &self.positions, memory: &self.words }
    }

    /// Writes a record with this number.
    fn write(&self, number: u32) -> bool {
        let head = Head { kind: Kind::LookupAgain as u16, size: 24, task: 7, time_ns: 1 };
        self.ring().write(Again { head, number, pad: 0 }.as_bytes())
    }

    /// Reads what is there, and adds the numbers of the records.
    fn drain(&self, numbers: &mut Vec<u32>) {
        let taken = self.ring().drain(|frame| {
            assert_eq!(frame.bytes.len(), 24);
            numbers.push(u32::from_ne_bytes(frame.bytes[16..20].try_into().unwrap()));
        });
        assert!(self.positions.waiting_bytes() <= 8 * RING_WORDS as u64);
        assert!(taken <= 2);
    }
}

/// Runs a tracer and a recorder, in all the orders that loom finds different; says in how many.
fn explore<T: 'static>(
    tracer: impl Fn(&Shared) -> T + Clone + Send + Sync + 'static,
    recorder: impl Fn(&Shared, &mut dyn FnMut() -> T) + Send + Sync + 'static,
) {
    loom::model(move || {
        let shared = Arc::new(Shared::default());
        let (theirs, tracer) = (Arc::clone(&shared), tracer.clone());
        let mut running = Some(thread::spawn(move || tracer(&theirs)));
        recorder(&shared, &mut || running.take().unwrap().join().unwrap());
    });
}

#[test]
fn records_come_out_whole_and_in_order_and_those_that_were_refused_do_not() {
    explore(
        |shared| (1..=4).filter(|number| shared.write(*number)).collect::<Vec<_>>(),
        |shared, join| {
            let mut numbers = Vec::new();
            shared.drain(&mut numbers);
            shared.drain(&mut numbers);
            let written = join();
            shared.drain(&mut numbers);
            assert_eq!(numbers, written);
            assert!(written.starts_with(&[1, 2]));
        },
    );
}

#[test]
fn whoever_has_seen_the_end_of_a_task_finds_its_record() {
    explore(
        |shared| {
            for number in 1..=2 {
                shared.tasks.bear();
                assert!(shared.write(number));
                shared.tasks.end();
            }
        },
        |shared, join| {
            let (born, ended) = shared.tasks.counts();
            assert!(ended <= born && born <= 2);
            let mut numbers = Vec::new();
            shared.drain(&mut numbers);
            assert!(numbers.len() as u64 >= ended);
            join();
            assert_eq!(shared.tasks.counts(), (2, 2));
        },
    );
}

#[test]
fn whoever_has_seen_the_end_of_the_writing_finds_all_of_it() {
    explore(
        |shared| {
            assert!(shared.write(1) && shared.write(2));
            shared.end.set((3, 4));
        },
        |shared, join| {
            let mut numbers = Vec::new();
            shared.drain(&mut numbers);
            if shared.end.is_set() {
                assert_eq!(shared.end.cpu_ns(), (3, 4));
                shared.drain(&mut numbers);
                assert_eq!(numbers, [1, 2]);
            }
            join();
        },
    );
}
