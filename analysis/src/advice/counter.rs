//! Counter-evidence: what command lines say against running something at once, or at all.

use super::evidence::{first_word, is_interpreter};

/// Programs that decide themselves what runs at once: their own options change that, and nothing that is said of their
/// children does.
const COORDINATORS: [&str; 41] = [
    "airflow",
    "ant",
    "bazel",
    "buck",
    "buck2",
    "cargo",
    "cmake",
    "configure",
    "ctest",
    "cwltool",
    "dagster",
    "go",
    "gradle",
    "gradlew",
    "luigi",
    "meson",
    "mpiexec",
    "mpirun",
    "mvn",
    "mvnw",
    "nextflow",
    "ninja",
    "ninja-build",
    "nox",
    "npm",
    "npx",
    "parallel",
    "pnpm",
    "py.test",
    "pytest",
    "rake",
    "samu",
    "sbt",
    "scons",
    "snakemake",
    "srun",
    "toil",
    "tox",
    "waf",
    "xargs",
    "yarn",
];

/// Programs whose first argument is the program that matters.
const LAUNCHERS: [&str; 9] =
    ["env", "time", "nice", "ionice", "stdbuf", "nohup", "setsid", "node", "java"];

/// Options with a number of workers or threads behind them, in the word itself or in the next one.
const WORKERS: [&str; 14] = [
    "-j",
    "-T",
    "-P",
    "-@",
    "-t",
    "-n",
    "--jobs",
    "--threads",
    "--workers",
    "--parallel",
    "--cores",
    "--processes",
    "--num-threads",
    "--max-procs",
];

/// More are hardly meant for one machine.
const WORKERS_MAX: u32 = 1024;

/// Letters of make's options that take an argument.
const TAKE_ARGUMENT: &str = "CEIOWflo";

/// Whether a command line is that of a program that decides itself what runs at once.
pub(super) fn coordinates(template: &str) -> bool {
    let name = program(template);
    let name = name.strip_suffix(".py").or(name.strip_suffix(".js")).unwrap_or(name);
    COORDINATORS.contains(&name)
}

/// The name of the program that a command line is about: behind an interpreter its script or module, behind a launcher
/// what it launches.
fn program(template: &str) -> &str {
    let first = base(first_word(template));
    if !is_interpreter(first) && !LAUNCHERS.contains(&first) {
        return first;
    }
    let mut words = template.split(' ').skip(1);
    while let Some(word) = words.next() {
        match word {
            "-m" => return words.next().unwrap_or(first),
            "-c" => return first,
            _ if word.starts_with('-') || word.contains('=') => {}
            _ => return base(word),
        }
    }
    first
}

/// Whether a command line of make asks for jobs at once: -j, -j4, -kj4, --jobs=4; not -j1.
pub(super) fn asks_for_jobs(line: &str) -> bool {
    let mut words = line.split(' ').skip(1).peekable();
    while let Some(word) = words.next() {
        let number = match word.strip_prefix("--") {
            Some(long) => match long.strip_prefix("jobs") {
                Some("") => words.peek().copied().unwrap_or(""),
                Some(rest) => rest.strip_prefix('=').unwrap_or("1"),
                None => continue,
            },
            None => {
                let Some(letters) = word.strip_prefix('-') else { continue };
                let Some(at) = letters.find('j') else { continue };
                let before = &letters[..at];
                let is_flags = before.chars().all(|letter| letter.is_ascii_alphabetic());
                if !is_flags || before.contains(|letter| TAKE_ARGUMENT.contains(letter)) {
                    continue;
                }
                match &letters[at + 1..] {
                    "" => words.peek().copied().unwrap_or(""),
                    rest => rest,
                }
            }
        };
        if number.parse::<u32>() != Ok(1) {
            return true;
        }
    }
    false
}

/// Whether a command line asks for several threads or workers.
pub(super) fn asks_for_workers(line: &str) -> bool {
    let mut words = line.split(' ').skip(1).peekable();
    while let Some(word) = words.next() {
        let option = WORKERS.iter().filter(|option| word.starts_with(**option));
        let Some(option) = option.max_by_key(|option| option.len()) else { continue };
        let number = match word[option.len()..].trim_start_matches('=') {
            "" => words.peek().copied().unwrap_or(""),
            rest => rest,
        };
        // -n is often a number of something else, as of events; larger numbers are no workers.
        let is_many = |number: u32| *option != "-n" && number != 1 && number <= WORKERS_MAX;
        if number == "auto" || number.parse::<u32>().is_ok_and(is_many) {
            return true;
        }
    }
    false
}

/// What a command does, for those that do different things: the first argument if that is a plain word, as `clone` of git.
pub(super) fn subcommand(line: &str) -> Option<&str> {
    let plain =
        |word: &&str| word.chars().all(|letter| letter.is_ascii_lowercase() || letter == '-');
    line.split(' ').nth(1).filter(|word| !word.starts_with('-') && plain(word) && !word.is_empty())
}

/// The words of a command line that may be files which it reads or writes.
pub(super) fn files(line: &str) -> impl Iterator<Item = &str> {
    let skipped = if is_interpreter(base(first_word(line))) { 2 } else { 1 };
    let words = line.split(' ').skip(skipped);
    words.filter(|word| {
        let may_be = word.len() > 2 && !word.starts_with('-') && word.contains(['.', '/']);
        may_be && !word.starts_with("/dev/") && word.parse::<f64>().is_err()
    })
}

fn base(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinators_are_known_however_they_are_started() {
        for line in [
            "ninja -C build",
            "/usr/bin/cmake --build .",
            "python# -m pytest -q",
            "python# /usr/bin/snakemake all",
            "sh ./configure --prefix=/x",
            "env A=b ninja",
            "node /usr/bin/npm run build",
            "perl /usr/bin/parallel gzip",
        ] {
            assert!(coordinates(line), "{line}");
        }
        for line in
            ["sh -c ninja", "make -j#", "sh job.sh ninja", "python# sim.py", "grep ninja x", ""]
        {
            assert!(!coordinates(line), "{line}");
        }
    }

    #[test]
    fn jobs_of_make_are_read_in_all_forms() {
        for line in [
            "make -j2",
            "make -j",
            "make -j 2 all",
            "make -kj4",
            "make --jobs",
            "make --jobs=3",
            "make all -sj",
        ] {
            assert!(asks_for_jobs(line), "{line}");
        }
        for line in [
            "make",
            "make -j1",
            "make -j 1",
            "make --jobs=1",
            "make -f job.mk",
            "make -fjob.mk",
            "make -Cjunk",
            "make x=-jy",
        ] {
            assert!(!asks_for_jobs(line), "{line}");
        }
    }

    #[test]
    fn threads_of_programs_are_read_in_all_forms() {
        for line in [
            "xz -T2 a",
            "xz -T 2 a",
            "xz -T0 a",
            "samtools sort -@ 4 a",
            "bwa mem -t 8 a",
            "tool --threads=2",
            "x --workers 3",
            "pytest -n auto",
        ] {
            assert!(asks_for_workers(line), "{line}");
        }
        for line in [
            "xz a",
            "xz -T1 a",
            "tool --threads=1",
            "tool -name 4",
            "head -n",
            "sort -t , a",
            "tool --jobs-file=2x",
            "sim -n 50",
            "fit -t 20000",
        ] {
            assert!(!asks_for_workers(line), "{line}");
        }
    }

    #[test]
    fn subcommands_are_plain_words() {
        assert_eq!(subcommand("git clone -q x"), Some("clone"));
        for line in ["git", "xz -T2", "python3 sim.py", "work 3x", "cc /x/y", "x "] {
            assert_eq!(subcommand(line), None, "{line}");
        }
    }

    #[test]
    fn files_are_words_that_may_be_paths() {
        let found: Vec<&str> = files("gcc -O2 -o build/a.o a.c -I/x 2 0.25 /dev/null").collect();
        assert_eq!(found, ["build/a.o", "a.c"]);
        assert_eq!(files("python3 tool.py in.dat").collect::<Vec<_>>(), ["in.dat"]);
    }
}
