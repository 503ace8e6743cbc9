//! Logs of strace and prmon with any contents: an error, or a trace whose records can be read and whose
//! counts agree.

use std::io::{self, Read};

use proctrace_import::{Imported, Log, prmon, strace};
use proctrace_wire::{Frames, Kind, Record, Stream};

/// The first byte selects the tool and how the rest is divided into logs.
pub(crate) fn run(data: &[u8]) {
    let (how, rest) = data.split_first().unwrap_or((&0, &[]));
    let mut tasks = Tasks::default();
    let mut push = |stream: Stream, time_ns: u64, record: &[u8]| {
        tasks.take(stream, time_ns, record);
        Ok(())
    };
    let imported = match how {
        b'p' => prmon("fuzz", &mut &*rest, &mut push),
        b'2' => {
            let (first, second) = rest.split_at(rest.len() / 2);
            strace(vec![log(first, Some(7)), log(second, Some(8))], &mut push)
        }
        _ => strace(vec![log(rest, None)], &mut push),
    };
    if let Ok(imported) = imported {
        tasks.agree(&imported);
    }
}

fn log(bytes: &[u8], pid: Option<i32>) -> Log {
    let bytes = bytes.to_vec();
    let open = move || Ok(Box::new(io::Cursor::new(bytes.clone())) as Box<dyn Read>);
    Log { name: "fuzz".to_owned(), pid, open: Box::new(open) }
}

/// Tasks as the records tell of them, to be compared with what the trailer says.
#[derive(Default)]
struct Tasks {
    born: u64,
    ended: u64,
    losses: u64,
    records: u64,
    alive: std::collections::BTreeSet<u32>,
}

impl Tasks {
    fn take(&mut self, stream: Stream, time_ns: u64, bytes: &[u8]) {
        self.records += 1;
        let frame = Frames::new(bytes).next().expect("it is a record").expect("it is whole");
        assert_eq!((frame.bytes.len(), frame.head.time_ns), (bytes.len(), time_ns));
        let kind = Kind::from_number(frame.head.kind).expect("it is known");
        let is_lookup = matches!(
            kind,
            Kind::LookupNamed
                | Kind::LookupAgain
                | Kind::OpenedNamed
                | Kind::OpenedAgain
                | Kind::Moved
        );
        assert_eq!(stream == Stream::Lookups, is_lookup);
        match Record::decode(frame).expect("it can be decoded") {
            Record::Attach(attach) => self.birth(attach.head.task),
            Record::Fork(fork) => {
                assert!(self.alive.contains(&fork.head.task), "{fork:?}");
                self.birth(fork.child);
            }
            Record::Exit(exit) => {
                self.ended += 1;
                assert!(self.alive.remove(&exit.head.task), "{exit:?}");
            }
            Record::Loss(_) => self.losses += 1,
            Record::Env(..) => {}
            _ => assert!(self.alive.contains(&frame.head.task), "{frame:?}"),
        }
    }

    fn birth(&mut self, task: u32) {
        self.born += 1;
        assert!(self.alive.insert(task), "{task} is born twice");
    }

    fn agree(&self, imported: &Imported) {
        let trailer = &imported.trailer;
        assert_eq!(trailer.tasks, self.born);
        assert_eq!(trailer.losses.len() as u64, self.losses);
        assert_eq!(trailer.records.values().sum::<u64>(), self.records);
        assert_eq!(trailer.records.get("exit").copied().unwrap_or(0), self.ended);
        assert!(imported.doubts.first.len() as u64 <= imported.doubts.lines);
    }
}
