//! The task of an interpreter, according to its arguments.
//!
//! Each interpreter has its own options, and some take the next argument as their value. A parser
//! that does not know them mistakes the value for the script: `node --conditions development
//! build.js` runs `build.js`, not `development`.

use crate::grammar::{GRAMMARS, Grammar, UNKNOWN};

/// The code that an interpreter is asked to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Code<'a> {
    /// This file or module.
    Script(&'a [u8]),
    /// This program text.
    Text(&'a [u8]),
    /// Its standard input.
    None,
}

/// Arguments after the interpreter's own name.
type Arguments<'a> = std::iter::Skip<std::slice::Split<'a, u8, fn(&u8) -> bool>>;

/// The code that `interpreter` is asked to run; its name has no version.
pub(super) fn task<'a>(interpreter: &[u8], argv: &'a [u8]) -> Code<'a> {
    let known = |grammar: &&Grammar| grammar.names.iter().any(|n| n.as_bytes() == interpreter);
    let grammar = GRAMMARS.iter().find(known).unwrap_or(&UNKNOWN);
    let is_nul: fn(&u8) -> bool = |byte| *byte == 0;
    let rest = argv.split(is_nul).skip(1);
    match (Reader { grammar, rest, text: None, first_is_text: false }).task() {
        // The name of a descriptor tells no script: `bash <(generate)`, `sh /dev/stdin`.
        Code::Script(path) if is_descriptor(path) => Code::None,
        code => code,
    }
}

/// True if a path is that of a descriptor of whoever opens it.
fn is_descriptor(path: &[u8]) -> bool {
    path.starts_with(b"/dev/fd/") || path.starts_with(b"/proc/self/fd/") || path == b"/dev/stdin"
}

struct Reader<'a> {
    grammar: &'static Grammar,
    rest: Arguments<'a>,
    /// A program text that a script may follow.
    text: Option<&'a [u8]>,
    first_is_text: bool,
}

impl<'a> Reader<'a> {
    fn task(mut self) -> Code<'a> {
        let is_shell = self.grammar.is_shell;
        while let Some(argument) = self.rest.next() {
            let found = match argument {
                b"" => return self.none(),
                b"--" => return self.operand(),
                b"-" if is_shell => return self.operand(),
                // Its standard input.
                b"-" => return self.none(),
                // What the file contains is not known.
                [b'@', ..] if self.grammar.argument_files => return self.none(),
                [b'-', ..] => match self.word(argument) {
                    Some(found) => found,
                    None => self.option(argument),
                },
                [b'+', letters @ ..] if is_shell => self.letters(letters),
                operand => return self.run(operand),
            };
            match found {
                None => {}
                Some(Code::Text(text)) if self.grammar.goes_on => self.text = Some(text),
                Some(task) => return task,
            }
        }
        self.none()
    }

    /// Result without a script: the program text, if any, is the task.
    fn none(&self) -> Code<'a> {
        self.text.map_or(Code::None, Code::Text)
    }

    fn operand(mut self) -> Code<'a> {
        match self.rest.next() {
            Some(operand) if !operand.is_empty() => self.run(operand),
            _ => self.none(),
        }
    }

    /// Handles the first operand.
    fn run(&self, operand: &'a [u8]) -> Code<'a> {
        if self.first_is_text { Code::Text(operand) } else { Code::Script(operand) }
    }

    /// Parses an option that is one of the words, returning the task it determines, if any; the
    /// outer `None` if it is another option.
    fn word(&mut self, argument: &'a [u8]) -> Option<Option<Code<'a>>> {
        let (name, value) = match argument.iter().position(|byte| *byte == b'=') {
            Some(at) => (&argument[..at], Some(&argument[at + 1..])),
            None => (argument, None),
        };
        let is = |words: &[&str]| words.iter().any(|word| same(word.as_bytes(), name));
        let (is_text, is_file) = (is(self.grammar.text_words), is(self.grammar.file_words));
        if !is_text && !is_file && !is(self.grammar.value_words) {
            return None;
        }
        let value = match value {
            None => match self.rest.next() {
                Some([b'@', ..]) if self.grammar.argument_files => return Some(Some(Code::None)),
                next => next,
            },
            attached => attached,
        };
        Some(match (is_text, is_file) {
            (true, _) => Some(given(value, Code::Text)),
            (_, true) => Some(given(value, Code::Script)),
            _ => None,
        })
    }

    /// Parses any other option.
    fn option(&mut self, argument: &'a [u8]) -> Option<Code<'a>> {
        match argument {
            [b'-', b'-', name @ ..] => {
                if !name.contains(&b'=') && !self.grammar.knows_long {
                    self.pass_value();
                }
                None
            }
            [_, letters @ ..] => self.letters(letters),
            [] => None,
        }
    }

    /// A long option that is not in the table takes no value, unless the next argument does not
    /// look like a script and the one after it does.
    fn pass_value(&mut self) {
        let mut ahead = self.rest.clone();
        if let (Some(first), Some(second)) = (ahead.next(), ahead.next())
            && is_operand(first)
            && is_operand(second)
            && !self.looks_like_script(first)
            && self.looks_like_script(second)
        {
            self.rest.next();
        }
    }

    fn looks_like_script(&self, argument: &[u8]) -> bool {
        let ending = argument.iter().rposition(|byte| *byte == b'.').map(|at| &argument[at + 1..]);
        match (self.grammar.endings, ending) {
            ([], _) => argument.iter().any(|byte| matches!(byte, b'.' | b'/')),
            (endings, Some(ending)) => endings.iter().any(|known| known.as_bytes() == ending),
            (_, None) => false,
        }
    }

    /// Parses short options that share an argument.
    fn letters(&mut self, letters: &'a [u8]) -> Option<Code<'a>> {
        // -Dname=value of an unknown interpreter.
        if self.grammar.names.is_empty() && !letters.iter().all(u8::is_ascii_alphabetic) {
            return None;
        }
        let grammar = self.grammar;
        let mut rest = letters;
        while let [letter, after @ ..] = rest {
            rest = after;
            let is = |letters: &[u8]| letters.contains(letter);
            let attached = (!after.is_empty()).then_some(after);
            if is(grammar.text) {
                return Some(given(attached.or_else(|| self.rest.next()), Code::Text));
            } else if is(grammar.file) {
                return Some(given(attached.or_else(|| self.rest.next()), Code::Script));
            } else if is(grammar.value) {
                if attached.is_none() {
                    self.rest.next();
                }
                return None;
            } else if is(grammar.perhaps_text) && after.is_empty() {
                let next = self.rest.clone().next();
                if next.is_none_or(|next| next.contains(&b' ') || next.contains(&b';')) {
                    return Some(given(next, Code::Text));
                }
            } else if is(grammar.attached) {
                return None;
            } else if is(grammar.input) {
                return Some(Code::None);
            } else if is(grammar.next) {
                self.rest.next();
            } else if is(grammar.first_is_text) {
                self.first_is_text = true;
            } else if is(grammar.digits) {
                let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
                rest = &after[digits..];
            }
        }
        None
    }
}

fn given<'a>(argument: Option<&'a [u8]>, task: fn(&'a [u8]) -> Code<'a>) -> Code<'a> {
    argument.filter(|argument| !argument.is_empty()).map_or(Code::None, task)
}

fn is_operand(argument: &[u8]) -> bool {
    !matches!(argument, [] | [b'-' | b'+', ..])
}

/// node accepts `_` for `-` within option names.
fn same(word: &[u8], given: &[u8]) -> bool {
    word.len() == given.len()
        && word.iter().zip(given).all(|(a, b)| a == b || (*a == b'-' && *b == b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(argv: &[&str]) -> Vec<u8> {
        argv.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect()
    }

    /// Checks the task of a command line that begins with the interpreter's name.
    fn check(argv: &[&str], expected: Code<'_>) {
        assert_eq!(task(argv[0].as_bytes(), &of(argv)), expected, "{argv:?}");
    }

    fn script<'a>(line: &'a str, expected: &'a str) {
        let argv: Vec<&str> = line.split(' ').collect();
        check(&argv, Code::Script(expected.as_bytes()));
    }

    #[test]
    fn an_interpreters_task_is_found() {
        for (argv, expected) in [
            (&["bash", "-e", "/job/run.sh", "x"][..], Code::Script(b"/job/run.sh")),
            (&["sh", "-ex", "run.sh"], Code::Script(b"run.sh")),
            (&["bash", "/dev/fd/63", "x"], Code::None),
            (&["sh", "/dev/stdin"], Code::None),
            (&["perl", "-ne", "print; next"], Code::Text(b"print; next")),
            (&["python", "-u", "runner.py"], Code::Script(b"runner.py")),
            (&["python", "-m", "pytest"], Code::Script(b"pytest")),
            (&["sh", "-c", "sed x"], Code::Text(b"sed x")),
            (&["sh", "-ec", "x"], Code::Text(b"x")),
            (&["perl", "-e", "print 1;"], Code::Text(b"print 1;")),
            (&["sh", "-c"], Code::None),
            (&["sh", "-e"], Code::None),
            (&["sh"], Code::None),
            (&["sh", "-"], Code::None),
        ] {
            check(argv, expected);
        }
    }

    #[test]
    fn a_value_of_an_option_is_no_script() {
        for line in [
            "node --conditions development build.js",
            "node -C development -r ts-node/register --import tsx build.js x.js",
            "node --experimental_loader ./loader.mjs --max-old-space-size=4096 build.js",
            "node --stack-trace-limit=9 --env-file .env --inspect-port 0 --title job build.js",
            "python -W ignore -X dev --check-hash-based-pycs never -u build.js",
            "python -Wignore -Xdev build.js",
            "perl -w -I lib -Ilib -MList::Util=sum -l012 -s build.js",
            "ruby -I lib -r json -rset -W0 --encoding utf-8 build.js",
            "bash -euo pipefail build.js",
            "bash -o pipefail +O extglob --rcfile /etc/rc --init-file /etc/x build.js",
            "bash -- build.js -c",
            "sh - build.js",
            "php -d memory_limit=1G -c php.ini -f build.js -- x",
            "php -dmemory_limit=1G build.js",
            "lua -l socket -e x=1 build.js",
            "luajit -O3 -j off build.js",
            "tclsh -encoding utf-8 build.js",
            "java -cp a.jar:b.jar -Xmx4g --add-modules java.sql -Dx=y -jar build.js z",
            "java --module-path mods -m build.js",
            "java -jar -Xmx1g build.js data.jar",
            "java --enable-preview -XX:+UseSerialGC -ea build.js data.jar",
            "java --source 21 -p mods --add-opens=java.base/java.lang=ALL-UNNAMED build.js",
        ] {
            script(line, "build.js");
        }
    }

    #[test]
    fn java_goes_by_its_main_class_or_archive() {
        for (line, expected) in [
            ("java -cp a.jar:b.jar org.apache.Main -jar x.jar", "org.apache.Main"),
            ("java -classpath a.jar --add-modules ALL-SYSTEM org.apache.Main", "org.apache.Main"),
            ("java --class-path=a.jar org.apache.Main @arguments", "org.apache.Main"),
            ("java -javaagent:agent.jar=x -Dname=value -jar /opt/lib/x.jar -v", "/opt/lib/x.jar"),
            ("java -p mods -m org.apache/org.apache.Main", "org.apache/org.apache.Main"),
            ("java --module=org.apache/org.apache.Main", "org.apache/org.apache.Main"),
            ("java --module-path mods --module org.apache", "org.apache"),
            ("java Hello.java", "Hello.java"),
        ] {
            script(line, expected);
        }
        // What an argument file contains is not known; what is behind it may be an argument of the program.
        for line in
            ["java @/tmp/arguments Worker", "java -cp @path org.apache.Main", "java -version"]
        {
            check(&line.split(' ').collect::<Vec<_>>(), Code::None);
        }
    }

    #[test]
    fn texts_are_found_behind_other_options() {
        for argv in [
            &["bash", "-c", "-e", "echo 1"][..],
            &["bash", "-o", "errexit", "-lc", "echo 1", "name"],
            &["node", "--conditions", "development", "-e", "echo 1"],
            &["node", "--eval=echo 1"],
            &["node", "-pe", "echo 1"],
            &["python", "-Bc", "echo 1"],
            &["python", "-cecho 1"],
            &["perl", "-0777", "-i.bak", "-pe", "echo 1", "file"],
            &["ruby", "-r", "json", "-e", "echo 1"],
            &["php", "-r", "echo 1"],
            &["lua", "-e", "echo 1"],
            &["Rscript", "--vanilla", "-e", "echo 1"],
        ] {
            check(argv, Code::Text(b"echo 1"));
        }
        check(&["sh", "-s", "argument"], Code::None);
        check(&["python", "-", "argument"], Code::None);
    }

    #[test]
    fn an_unknown_option_has_a_value_only_if_what_follows_says_so() {
        script("node --from-tomorrow value build.js", "build.js");
        script("node --from-tomorrow build.js other.js", "build.js");
        script("node --from-tomorrow build other", "build");
        script("node --from-tomorrow=value build.js", "build.js");
        script("mine --mode fast ./run.x", "./run.x");
        script("mine --fast run ./data", "./data");
        script("mine -Dname=value ./run.x", "./run.x");
        check(&["mine", "-ne", "print; next"], Code::Text(b"print; next"));
        script("mine -e run.x", "run.x");
    }

    fn arguments() -> impl Strategy<Value = Vec<u8>> {
        let words = GRAMMARS.iter().flat_map(|grammar| {
            let words = [grammar.value_words, grammar.text_words, grammar.file_words].concat();
            words.into_iter().map(str::to_owned)
        });
        let words: Vec<String> = words.collect();
        let argument = prop_oneof![
            proptest::sample::select(words),
            "[-+]{0,3}[a-zA-Z0-9=]{0,4}",
            "[a-z./]{0,6}",
        ];
        proptest::collection::vec(argument, 0..8).prop_map(|all| {
            all.iter().flat_map(|argument| [argument.as_bytes(), b"\0"].concat()).collect()
        })
    }

    fn interpreters() -> impl Strategy<Value = &'static str> {
        let names: Vec<&str> = GRAMMARS.iter().flat_map(|grammar| grammar.names).copied().collect();
        proptest::sample::select([&names[..], &["mine"]].concat())
    }

    proptest! {
        /// The task is a part of an argument, and never the interpreter's own name.
        #[test]
        fn any_arguments_have_a_task(interpreter in interpreters(), argv in arguments()) {
            let argv = [interpreter.as_bytes(), b"\0", &argv].concat();
            if let Code::Script(found) | Code::Text(found) = task(interpreter.as_bytes(), &argv) {
                prop_assert!(!found.is_empty());
                let at = found.as_ptr() as usize - argv.as_ptr() as usize;
                prop_assert!(at > interpreter.len() && at + found.len() < argv.len());
            }
        }

        #[test]
        fn any_bytes_have_a_task(interpreter in interpreters(), argv: Vec<u8>) {
            let _ = task(interpreter.as_bytes(), &argv);
        }
    }
}
