//! Ninja's log of what it has built: outputs, recognised by the hash of the command that made them.
//!
//! Source: src/build_log.cc of ninja. Versions 5 and 6 have MurmurHash64A of the command, version 7 rapidhash; of an edge with
//! a response file, also of its content, which is not recorded: such edges are not recognised.

use std::collections::hash_map::Entry;

use rapidhash::v1::rapidhash_v1;

use super::name_of;
use crate::error::RulesError;
use crate::fast::FastMap;

/// What the first line begins with; the version follows.
pub(crate) const SIGNATURE: &[u8] = b"# ninja log v";
/// As in HashCommand().
const MURMUR_SEED: u64 = 0xDECA_FBAD_DECA_FBAD;

/// Edges by the hash of their commands.
#[derive(Debug, Clone)]
pub(super) struct NinjaLog {
    hash: fn(&[u8]) -> u64,
    by_hash: FastMap<u64, Edge>,
}

#[derive(Debug, Clone)]
struct Edge {
    /// Its first output.
    name: String,
    /// Begin and end in milliseconds: the same for all outputs of an edge.
    times: (u64, u64),
    is_one: bool,
}

impl NinjaLog {
    /// Reads a log. `file` is used in messages.
    ///
    /// # Errors
    /// If its version is not known. Like ninja, this skips what is no line of five columns: a build that is killed may leave
    /// one.
    pub(crate) fn parse(file: &str, log: &[u8]) -> Result<Self, RulesError> {
        let wrong = |message: &str| RulesError {
            name: file.to_owned(),
            line: 1,
            column: 1,
            message: message.to_owned(),
        };
        let mut lines = log.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default().trim_ascii();
        let hash = match first.strip_prefix(SIGNATURE) {
            Some(b"5" | b"6") => murmur as fn(&[u8]) -> u64,
            Some(b"7") => rapidhash_v1,
            _ => return Err(wrong("of ninja's logs, versions 5 to 7 are understood")),
        };
        let mut by_output: FastMap<&[u8], (u64, (u64, u64))> = FastMap::default();
        let mut outputs: Vec<&[u8]> = Vec::new();
        for line in lines {
            let columns: Vec<&[u8]> = line.split(|byte| *byte == b'\t').collect();
            let [begin, end, _, output, hash] = columns[..] else {
                continue;
            };
            let number = |digits: &[u8], radix: u32| {
                let digits = std::str::from_utf8(digits).ok();
                digits.and_then(|digits| u64::from_str_radix(digits, radix).ok())
            };
            let (Some(begin), Some(end), Some(hash)) =
                (number(begin, 10), number(end, 10), number(hash, 16))
            else {
                continue;
            };
            // The log is added to: the last line of an output counts.
            if by_output.insert(output, (hash, (begin, end))).is_none() {
                outputs.push(output);
            }
        }
        let mut by_hash: FastMap<u64, Edge> = FastMap::default();
        for output in outputs {
            let (hash, times) = by_output[output];
            let Some(name) = name_of(output) else { continue };
            match by_hash.entry(hash) {
                Entry::Vacant(new) => {
                    new.insert(Edge { name, times, is_one: true });
                }
                // Another output of the edge, or another edge with the same command.
                Entry::Occupied(mut known) => known.get_mut().is_one &= known.get().times == times,
            }
        }
        Ok(Self { hash, by_hash })
    }

    /// The output that a command makes; `None` if that is not known, or not certain.
    pub(super) fn output(&self, command: &[u8]) -> Option<&str> {
        let edge = self.by_hash.get(&(self.hash)(command))?;
        edge.is_one.then_some(&edge.name)
    }
}

/// MurmurHash64A of Austin Appleby, with the seed of ninja. The crate that has it brings a random number generator of 2018.
fn murmur(command: &[u8]) -> u64 {
    const FACTOR: u64 = 0xc6a4_a793_5bd1_e995;
    const SHIFT: u32 = 47;
    let mut hash = MURMUR_SEED ^ (command.len() as u64).wrapping_mul(FACTOR);
    let (words, rest) = command.as_chunks::<8>();
    for word in words {
        let word = u64::from_le_bytes(*word).wrapping_mul(FACTOR);
        hash = (hash ^ (word ^ word >> SHIFT).wrapping_mul(FACTOR)).wrapping_mul(FACTOR);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(FACTOR);
    }
    hash = (hash ^ hash >> SHIFT).wrapping_mul(FACTOR);
    hash ^ hash >> SHIFT
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMANDS: [(&str, &str); 3] = [
        ("out/gen.h", "sleep 0.1; echo '#define X 1' > out/gen.h"),
        ("out/a.o", "gcc -c a.c -o out/a.o -I out"),
        ("out/app", "gcc out/a.o out/b.o -o out/app"),
    ];

    /// What ninja 1.11.1 wrote.
    const FIVE: &str = "# ninja log v5\n\
        0\t103\t1795793216982231343\tout/gen.h\t76012cc7324b4c62\n\
        103\t145\t1795793217026587463\tout/a.o\t286c0d98f140c623\n\
        145\t202\t1795793217080911035\tout/b.o\tef0d12d2da39057e\n\
        202\t229\t1795793217110925485\tout/app\tb3340dd29ecf24ae\n";

    /// The same of ninja 1.13.0.
    const SEVEN: &str = "# ninja log v7\n\
        0\t112\t1795806641037597740\tout/gen.h\t3897583ad7967070\n\
        115\t391\t1795806641158547756\tout/b.o\te1775cfa90eea842\n\
        112\t392\t1795806641155793440\tout/a.o\t8b0ebcb902cf83a5\n\
        392\t446\t1795806641431310910\tout/app\t286d9fe97845be1d\n";

    #[test]
    fn outputs_are_known_by_the_hash_of_their_commands() {
        for log in [FIVE, SEVEN] {
            let log = NinjaLog::parse("log", log.as_bytes()).unwrap();
            for (output, command) in COMMANDS {
                assert_eq!(log.output(command.as_bytes()), Some(output));
            }
            assert_eq!(log.output(b"gcc -c a.c -o out/a.o -I out "), None);
        }
    }

    #[test]
    fn what_a_killed_build_leaves_is_skipped() {
        let log = format!("{FIVE}12\t13\t17957\nx\t1\t2\ta\tb\n");
        let log = NinjaLog::parse("log", log.replace("v5", "v6").as_bytes()).unwrap();
        assert_eq!(log.output(COMMANDS[0].1.as_bytes()), Some(COMMANDS[0].0));
    }

    #[test]
    fn the_first_of_several_outputs_is_the_name() {
        let hash = "286c0d98f140c623";
        let output = |text: String| {
            let log = NinjaLog::parse("log", format!("# ninja log v5\n{text}").as_bytes()).unwrap();
            log.output(COMMANDS[1].1.as_bytes()).map(str::to_owned)
        };
        let two = format!("1\t2\t0\ta\t{hash}\n1\t2\t0\tb\t{hash}\n");
        assert_eq!(output(two).as_deref(), Some("a"));
        let edges = format!("1\t2\t0\ta\t{hash}\n5\t6\t0\tb\t{hash}\n");
        assert_eq!(output(edges), None);
        // Built again.
        let again = format!("1\t2\t0\ta\t{hash}\n5\t6\t0\ta\t{hash}\n");
        assert_eq!(output(again).as_deref(), Some("a"));
    }

    #[test]
    fn what_is_no_log_is_refused() {
        for log in ["# ninja log v4\n", "# ninja log v8\n", ""] {
            assert!(NinjaLog::parse("log", log.as_bytes()).is_err(), "{log}");
        }
    }

    proptest::proptest! {
        #[test]
        fn any_bytes_are_a_log_or_refused(rest: Vec<u8>) {
            let _ = NinjaLog::parse("log", &[SIGNATURE, b"7\n", &rest].concat());
            let _ = NinjaLog::parse("log", &rest);
        }
    }
}
