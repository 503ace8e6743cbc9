//! Counter-evidence: what command lines say against running something at once, or at all.

use std::collections::BTreeSet;

use super::names::{first_word, is_interpreter, is_whole};

/// Programs that decide themselves what runs at once: their own options change that, and nothing that is said of their
/// children does.
const COORDINATORS: [&str; 45] = [
    "airflow",
    "ansible-playbook",
    "ant",
    "bats",
    "bazel",
    "buck",
    "buck2",
    "cargo",
    "cmake",
    "configure",
    "ctest",
    "cwltool",
    "dagster",
    "doit",
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
    "prove",
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

/// Scripts that tools write or copy into a project: whoever builds it does not change them.
const GENERATED: [&str; 14] = [
    "compile",
    "config.guess",
    "config.status",
    "config.sub",
    "configure",
    "configure.sh",
    "depcomp",
    "gradlew",
    "install-sh",
    "libtool",
    "ltmain.sh",
    "missing",
    "mkinstalldirs",
    "mvnw",
];

/// Parts of the paths of scripts that were installed, and not written for this job.
const INSTALLED: [&str; 8] = [
    "/usr/bin/",
    "/usr/lib/",
    "/usr/libexec/",
    "/usr/sbin/",
    "/usr/share/",
    "/node_modules/",
    "/site-packages/",
    "/.pyenv/",
];

/// Programs whose first argument is the program that matters.
const LAUNCHERS: [&str; 9] =
    ["env", "time", "nice", "ionice", "stdbuf", "nohup", "setsid", "node", "java"];

/// Options with a number of workers or threads behind them, in the word itself or in the next one.
const WORKERS: [&str; 15] = [
    "-j",
    "-T",
    "-P",
    "-@",
    "-t",
    "-n",
    "-np",
    "--jobs",
    "--threads",
    "--workers",
    "--parallel",
    "--cores",
    "--processes",
    "--num-threads",
    "--max-procs",
];

/// Maximum number of workers: more are hardly meant for one machine.
const WORKERS_MAX: u32 = 1024;

/// Letters of make's options that take an argument.
const TAKE_ARGUMENT: &str = "CEIOWflo";

/// Returns whether a command line is that of a program that decides itself what runs at once.
pub(super) fn coordinates(template: &str) -> bool {
    let name = of_whole(program(template));
    COORDINATORS.contains(&name)
}

/// The name of the program that a command line is about: behind an interpreter its script or module, behind a launcher
/// what it launches.
pub(super) fn program(template: &str) -> &str {
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

/// Returns whether a command line is that of a script that belongs to a tool, as configure to autoconf, or mvn to Maven: who runs it
/// does not change it.
pub(super) fn is_of_tool(line: &str) -> bool {
    // A recipe of make: bash -c "/bin/bash ./libtool ...".
    if let Some((shell, command)) = line.split_once(" -c ")
        && is_interpreter(base(shell))
        && is_interpreter(base(first_word(command)))
        && is_one_command(command)
    {
        return is_of_tool(command);
    }
    // A tool that is a shell script of several files: bash -c ". /usr/share/quilt/push" quilt push.
    if let Some((shell, sourced)) = line.split_once(" -c . ")
        && is_interpreter(base(shell))
        && INSTALLED.iter().any(|part| first_path(sourced).contains(part))
        && is_one_command(sourced)
    {
        return true;
    }
    coordinates(line)
        || GENERATED.contains(&program(line))
        || INSTALLED.iter().any(|part| format!("/{}", script_path(line)).contains(part))
}

/// Returns whether a shell's command is a single one, not several as those of a job.
fn is_one_command(command: &str) -> bool {
    !command.contains([';', '&', '|', '\n', '<', '>', '(', '$', '`']) && !command.contains("\\n")
}

fn first_path(words: &str) -> &str {
    words.split(' ').next().unwrap_or("")
}

/// Returns whether a program of this name is a script that a tool has written or copied into a project. Of a long
/// command line that is cut, the name is known all the same.
pub(super) fn is_generated(name: &str) -> bool {
    GENERATED.contains(&name)
}

/// Returns whether a command line is that of a script that came with the system.
pub(super) fn is_of_system(line: &str) -> bool {
    script_path(line).starts_with("/usr/") && is_of_tool(line)
}

/// The script of an interpreter's command line; empty if there is none.
fn script_path(line: &str) -> &str {
    if !is_interpreter(base(first_word(line))) || line.split(' ').any(|word| word == "-c") {
        return "";
    }
    line.split(' ').skip(1).find(|word| !word.starts_with('-')).unwrap_or("")
}

/// Returns whether two command lines may be turns of one loop: the same options in the same places, and something else that differs.
/// Who runs the very same command again needs what it did before, as with LaTeX.
pub(super) fn are_turns(one: &str, other: &str) -> bool {
    // Of a number behind it: --seed=1, -n5.
    let option = |word: &str| -> Option<String> {
        let is_one = word.starts_with('-') && word.parse::<f64>().is_err();
        let end = match word.strip_prefix("--") {
            Some(_) => word.find('=').unwrap_or(word.len()),
            None => word
                .find(|letter: char| letter.is_ascii_digit() || letter == '=')
                .unwrap_or(word.len()),
        };
        is_one.then(|| word[..end].to_owned())
    };
    // The last word of a line that is cut is not known.
    let whole = is_whole(one) && is_whole(other);
    let (first, second): (Vec<&str>, Vec<&str>) =
        (one.split(' ').collect(), other.split(' ').collect());
    let known = if whole { first.len() } else { first.len().min(second.len()).saturating_sub(1) };
    (!whole || one != other && first.len() == second.len())
        && first.iter().zip(&second).take(known).all(|(one, other)| option(one) == option(other))
}

/// Arguments of make without those that ask for one job.
pub(super) fn without_jobs(arguments: &str) -> String {
    let mut words = arguments.split(' ').peekable();
    let mut left = Vec::new();
    while let Some(word) = words.next() {
        match word {
            "-j" | "--jobs" if words.peek() == Some(&"1") => {
                words.next();
            }
            "-j1" | "--jobs=1" => {}
            _ => left.push(word),
        }
    }
    left.join(" ")
}

/// The name of a program, where it is a part of one or has an ending.
pub(super) fn of_whole(name: &str) -> &str {
    let name = name.strip_suffix(".py").or(name.strip_suffix(".js")).unwrap_or(name);
    // bats-exec-file, bats-exec-suite, bats-exec-test
    if name.starts_with("bats-exec-") { "bats" } else { name }
}

/// Returns whether a command line of make asks for jobs at once: -j, -j4, -kj4, --jobs=4; not -j1.
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

/// Returns whether a command line asks for several threads or workers.
pub(super) fn asks_for_workers(line: &str) -> bool {
    workers(line).is_some()
}

/// Number of threads or workers that a command line asks for, if it asks for several; 0 for as many as there are cores.
pub(super) fn workers(line: &str) -> Option<u32> {
    let mut words = line.split(' ').skip(1).peekable();
    while let Some(word) = words.next() {
        let option = WORKERS.iter().filter(|option| word.starts_with(**option));
        let Some(option) = option.max_by_key(|option| option.len()) else { continue };
        let number = match word[option.len()..].trim_start_matches('=') {
            "" => words.peek().copied().unwrap_or(""),
            rest => rest,
        };
        // -n is often a number of something else, as of events; larger numbers are no workers.
        let is_many = |number: &u32| *option != "-n" && *number != 1 && *number <= WORKERS_MAX;
        if number == "auto" {
            return Some(0);
        }
        if let Some(number) = number.parse::<u32>().ok().filter(is_many) {
            return Some(number);
        }
    }
    None
}

/// The sub-command of a command that does different things: the first argument if that is a plain word, as `clone` of git.
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

/// The words of a command line that may be files which it writes: behind `>` and -o, if it has such, or else all.
pub(super) fn made(line: &str) -> impl Iterator<Item = &str> {
    let is_output = |word: &str| matches!(word, ">" | ">>" | "-o" | "--output" | "-out");
    let told = line.split(' ').any(is_output);
    let mut before = "";
    let mut outputs = BTreeSet::new();
    for word in line.split(' ') {
        if is_output(before) {
            outputs.insert(word);
        }
        before = word;
    }
    files(line).filter(move |file| !told || outputs.contains(file))
}

pub(super) fn base(path: &str) -> &str {
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
    fn scripts_of_tools_are_known_by_name_and_place() {
        for line in [
            "sh ./configure --prefix=/x",
            "bash ./libtool --mode=link",
            "/bin/bash -c /bin/bash ../../libtool --tag=CC",
            "bash -e ../config.status",
            "sh /usr/bin/ldd x",
            "bash node_modules/bats/libexec/x",
            "bash -c . /usr/share/quilt/refresh quilt refresh",
        ] {
            assert!(is_of_tool(line), "{line}");
        }
        for line in [
            "sh job.sh",
            "bash -c /usr/bin/x",
            "bash -c sh ./job.sh libtool",
            "bash -c . ./setup.sh",
            "bash -c python3 -m pytest -q && sleep 30 && ./report",
            "bash -c . /usr/share/modules/init/bash; module load x; ./sim",
            "/usr/bin/make",
            "sh ./usr/job.sh",
            "",
        ] {
            assert!(!is_of_tool(line), "{line}");
        }
    }

    #[test]
    fn turns_of_a_loop_differ_in_their_arguments_only() {
        assert!(are_turns("ffmpeg -i a.mkv -crf 28 out/a", "ffmpeg -i b.mkv -crf 28 out/b"));
        assert!(are_turns("fit -5 a", "fit -6 a"));
        assert!(are_turns("sim --seed=1", "sim --seed=2"));
        assert!(are_turns("sim -n5 a", "sim -n6 a"));
        assert!(are_turns("sim -x a b lon…", "sim -x a b lon…"));
        assert!(!are_turns("sim --seed=1", "sim --events=1"));
        for (one, other) in [
            ("ffmpeg -i a.mkv out/a", "ffmpeg -f concat out/b"),
            ("pdflatex a", "pdflatex a"),
            ("gzip a", "gzip -9 b"),
            ("gzip -1 a", "gzip -n b"),
        ] {
            assert!(!are_turns(one, other), "{one}, {other}");
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
    fn one_job_is_no_option_beside_several() {
        assert_eq!(without_jobs("-j1 all"), "all");
        assert_eq!(without_jobs("-j 1 --jobs=1 -C x"), "-C x");
        assert_eq!(without_jobs("-k all"), "-k all");
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
        assert_eq!(made("gcc -o build/a.o a.c").collect::<Vec<_>>(), ["build/a.o"]);
        let line = "bash -c bwa mem ref.fa a.fq > out/a.sam";
        assert_eq!(made(line).collect::<Vec<_>>(), ["out/a.sam"]);
        assert_eq!(made("cp a.x b.x").collect::<Vec<_>>(), ["a.x", "b.x"]);
        assert_eq!(files("python3 tool.py in.dat").collect::<Vec<_>>(), ["in.dat"]);
    }
}
