//! Programs that run others or compute with several threads if they are asked to, and the words in which they are asked.

use super::counter::{asks_for_workers, base, of_whole, program};
use super::names::is_whole;

/// Programs that run one child at a time if they are not asked for more, or are asked for one.
pub(super) struct Engine {
    pub(super) name: &'static str,
    /// Options with the number of children at a time. The first is how one asks for more.
    options: &'static [&'static str],
    /// True if it runs one at a time without any of these.
    one_unasked: bool,
    /// Requirement that is missing if it can run several at once only with something else.
    pub(super) needs: Option<&'static str>,
}

const ENGINES: [Engine; 9] = [
    Engine::new("bats", &["--jobs", "-j"], true, Some("bats needs GNU parallel for that")),
    Engine::new("ctest", &["-j", "--parallel"], true, None),
    Engine::new("doit", &["-n"], true, None),
    Engine::new("ninja", &["-j"], false, None),
    Engine::new("parallel", &["-j", "--jobs", "-P"], false, None),
    Engine::new("prove", &["-j", "--jobs"], true, None),
    Engine::new("samu", &["-j"], false, None),
    Engine::new("snakemake", &["--cores", "-c", "-j", "--jobs"], false, None),
    Engine::new("xargs", &["-P", "--max-procs"], true, None),
];

impl Engine {
    const fn new(
        name: &'static str,
        options: &'static [&'static str],
        one_unasked: bool,
        needs: Option<&'static str>,
    ) -> Self {
        Self { name, options, one_unasked, needs }
    }

    /// The option that asks for so many at a time.
    pub(super) fn asks_for(&self, number: u64) -> String {
        let option = self.options[0];
        if option.starts_with("--") {
            format!("{option} {number}")
        } else {
            format!("{option}{number}")
        }
    }

    /// Its command line with that, if it is known in full.
    pub(super) fn asked_for(&self, number: u64, line: &str) -> Option<String> {
        if !is_whole(line) {
            return None;
        }
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let own = words.iter().position(|word| base(word) == self.name)?;
        for at in own + 1..words.len() {
            let before = &words[at - 1];
            let has_word = at > own + 1 && XARGS_WITH_WORD.contains(&&**before);
            if self.name == "xargs" && !words[at].starts_with('-') && !has_word {
                break;
            }
            let Some(option) = self.option_of(&words[at]) else { continue };
            match words[at][option.len()..].trim_start_matches('=') {
                "" => *words.get_mut(at + 1)? = number.to_string(),
                "1" => words[at] = format!("{}{number}", words[at].strip_suffix('1')?),
                _ => return None,
            }
            return Some(words.join(" "));
        }
        // Options of doit are those of its command.
        let behind = if words.get(own + 1).is_some_and(|word| word == "run") { 2 } else { 1 };
        words.insert(own + behind, self.asks_for(number));
        Some(words.join(" "))
    }

    /// The option that a word begins with.
    fn option_of(&self, word: &str) -> Option<&'static str> {
        let options = self.options.iter().filter(|option| word.starts_with(**option));
        options.max_by_key(|option| option.len()).copied()
    }
}

/// The engine whose command line lets it run one child at a time.
pub(super) fn one_at_a_time(line: &str) -> Option<&'static Engine> {
    let name = program(line);
    // One test of bats runs its commands in order.
    let engine = ENGINES.iter().find(|engine| engine.name == of_whole(name))?;
    if name == "bats-exec-test" {
        return None;
    }
    let mut words = line.split(' ').skip(1).peekable();
    let mut before = "";
    while let Some(word) = words.next() {
        // What follows is the command of xargs.
        if name == "xargs" && !word.starts_with('-') && !XARGS_WITH_WORD.contains(&before) {
            break;
        }
        before = word;
        let Some(option) = engine.option_of(word) else { continue };
        let number = match word[option.len()..].trim_start_matches('=') {
            "" => words.peek().copied().unwrap_or(""),
            rest => rest,
        };
        return (number == "1").then_some(engine);
    }
    // The option may be behind what is cut.
    (engine.one_unasked && is_whole(line)).then_some(engine)
}

/// The name of the engine of a command line, whatever it asks for.
pub(super) fn engine_of(line: &str) -> Option<&'static str> {
    ENGINES.iter().find(|engine| engine.name == of_whole(program(line))).map(|engine| engine.name)
}

/// Options of xargs with a word of their own.
const XARGS_WITH_WORD: [&str; 8] = ["-n", "-P", "-I", "-L", "-a", "-d", "-s", "-E"];

/// A program that computes with one thread or process if it is not asked for more.
struct Threads {
    name: &'static str,
    /// Subcommands that know the option; empty if there are none.
    of: &'static [&'static str],
    option: &'static str,
}

const THREADS: [Threads; 8] = [
    Threads { name: "bwa", of: &["mem", "aln"], option: "-t " },
    Threads { name: "pylint", of: &[], option: "-j" },
    Threads { name: "pytest", of: &[], option: "-n " },
    Threads { name: "py.test", of: &[], option: "-n " },
    Threads { name: "samtools", of: &["sort", "view", "index", "merge", "markdup"], option: "-@ " },
    Threads { name: "sphinx-build", of: &[], option: "-j " },
    Threads { name: "xz", of: &[], option: "-T" },
    Threads { name: "zstd", of: &[], option: "-T" },
];

/// Name of a command line's program, with the subcommand, and the option by which it can use several cores.
pub(super) fn asks_for_threads(line: &str, number: u64) -> Option<(String, String)> {
    let name = program(line);
    let threads = THREADS.iter().find(|of| of.name == name)?;
    let option = threads.option.trim_end();
    let letter = option.chars().last()?;
    let mut words = line.split(' ').skip_while(|word| base(word) != name).skip(1);
    let called = match threads.of {
        [] => name.to_owned(),
        known => format!("{name} {}", words.next().filter(|word| known.contains(word))?),
    };
    // In one word with others, as in -9T0; and what only unpacks.
    let has = |word: &str| {
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        short.is_some_and(|letters| letters.contains([letter, 'd'])) || word == "--decompress"
    };
    let asked = line.split(' ').skip(1).any(has) || asks_for_workers(line) || !is_whole(line);
    (!asked).then(|| (called, format!("{}{number}", threads.option)))
}

/// Programs that compute with one thread, and what does the same with several: its name and option.
const OTHERWISE: [(&str, &str, &str); 2] = [("gzip", "pigz", "-p"), ("bzip2", "pbzip2", "-p")];

/// Replacement that does the work of a command line with several threads, which its program cannot: its command line.
pub(super) fn with_threads_otherwise(line: &str, number: u64) -> Option<(&str, String)> {
    let name = program(line);
    let (_, other, option) = OTHERWISE.iter().find(|(known, ..)| *known == name)?;
    let rest = line.split(' ').skip_while(|word| base(word) != name).skip(1);
    let unpacks = rest.clone().any(|word| {
        let short = word.strip_prefix('-').filter(|rest| !rest.starts_with('-'));
        short.is_some_and(|letters| letters.contains(['d', 't', 'l']))
            || matches!(word, "--decompress" | "--uncompress" | "--test" | "--list")
    });
    (!unpacks && is_whole(line)).then(|| (name, format!("{other} {option}{number}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn engines_that_run_one_at_a_time_are_asked_in_their_own_words() {
        let asks = |line: &str| one_at_a_time(line).map(|engine| engine.asks_for(4));
        assert_eq!(asks("python3 /usr/bin/snakemake -c1 all").as_deref(), Some("--cores 4"));
        assert_eq!(asks("snakemake --cores 1").as_deref(), Some("--cores 4"));
        assert_eq!(asks("ctest --output-on-failure").as_deref(), Some("-j4"));
        assert_eq!(asks("xargs -n 1 gzip").as_deref(), Some("-P4"));
        assert_eq!(asks("ninja -j 1").as_deref(), Some("-j4"));
        let asked = |line: &str| one_at_a_time(line).and_then(|it| it.asked_for(4, line));
        for (line, changed) in [
            ("python3 /usr/bin/snakemake -c1 all", "python3 /usr/bin/snakemake -c4 all"),
            ("snakemake --cores 1", "snakemake --cores 4"),
            ("snakemake --cores=1 x", "snakemake --cores=4 x"),
            ("ctest", "ctest -j4"),
            ("xargs -n 1 gzip", "xargs -P4 -n 1 gzip"),
        ] {
            assert_eq!(asked(line).as_deref(), Some(changed));
        }
        assert_eq!(asked("xargs -n 1 gz…"), None);
        assert_eq!(asked("doit run x").as_deref(), Some("doit run -n4 x"));
        assert_eq!(asked("xargs -n1 wget -P 2 x").as_deref(), Some("xargs -P4 -n1 wget -P 2 x"));
        for line in [
            "ctest --output-on-failure …",
            "bash bats-exec-test x",
            "tox",
            "snakemake --cores 2",
            "snakemake --cores all",
            "ninja",
            "ctest -j2",
            "xargs -P0 gzip",
            "make",
            "parallel gzip",
            "",
        ] {
            assert_eq!(asks(line), None, "{line}");
        }
    }

    #[test]
    fn another_program_divides_what_one_cannot() {
        let of =
            |line| with_threads_otherwise(line, 2).map(|(name, does)| format!("{name}: {does}"));
        assert_eq!(of("gzip -n -9 --rsyncable").as_deref(), Some("gzip: pigz -p2"));
        assert_eq!(of("/bin/bzip2 a").as_deref(), Some("bzip2: pbzip2 -p2"));
        for line in ["gzip -dc a", "gzip --test a", "gzip a…", "pigz a", "cat gzip", ""] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn programs_are_asked_for_threads_in_their_own_words() {
        let asks =
            |line: &str| asks_for_threads(line, 4).map(|(of, option)| format!("{of} {option}"));
        assert_eq!(asks("xz -9 a").as_deref(), Some("xz -T4"));
        assert_eq!(asks("python3 -m pytest -q").as_deref(), Some("pytest -n 4"));
        assert_eq!(asks("samtools sort a.bam").as_deref(), Some("samtools sort -@ 4"));
        assert_eq!(asks("bwa mem r.fa x.fq").as_deref(), Some("bwa mem -t 4"));
        for line in [
            "bwa index r.fa",
            "samtools mpileup x",
            "xz -T2 a",
            "xz -9T0 a",
            "xz -dc a",
            "zstd --threads=4 a",
            "pytest -n 2",
            "gzip a",
            "cc1 x.c",
            "xz a…",
            "",
        ] {
            assert_eq!(asks(line), None, "{line}");
        }
    }
}
