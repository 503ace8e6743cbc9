//! Names of programs, scripts and command lines, as advice says them.

use proctrace_classify::is_shell;

/// Programs besides shells that run what their arguments name.
const INTERPRETERS: [&str; 8] = ["node", "nodejs", "deno", "bun", "java", "R", "Rscript", "tclsh"];

/// Name of a subshell, which has executed nothing: of `$(…)`, `(…)` or a part of a pipe.
pub(crate) const SUBSHELL: &str = "subshell";

/// First word of a command line.
pub(crate) fn first_word(template: &str) -> &str {
    template.split(' ').next().unwrap_or(template)
}

/// Returns whether a word is the name of a program that runs scripts.
pub(crate) fn is_interpreter(word: &str) -> bool {
    is_shell(word)
        || INTERPRETERS.contains(&word)
        || ["python", "perl", "ruby", "lua", "php"].iter().any(|name| is_version_of(word, name))
}

/// Returns whether a word is a name with a version behind it: python3.11, or python# in a template.
fn is_version_of(word: &str, name: &str) -> bool {
    let is_version = |rest: &str| rest.chars().all(|it| it.is_ascii_digit() || "#.-".contains(it));
    word.strip_prefix(name).is_some_and(is_version)
}

/// The name of the script that an interpreter runs, without directory: of `sh ./tool --all`, `tool`.
pub(crate) fn script(template: &str) -> Option<&str> {
    let mut words = template.split(' ');
    words.next().filter(|word| is_interpreter(word))?;
    let path = words.next().filter(|word| !word.starts_with('-'))?;
    path.rsplit('/').next().filter(|name| !name.is_empty())
}

/// The name of a program: that of its script, or its first word; of a script that is an argument, as of `sh -c`, the
/// whole command line.
pub(crate) fn called(template: &str) -> &str {
    let first = first_word(template);
    let has_option = || template.split(' ').nth(1).is_some_and(|word| word.starts_with('-'));
    match script(template) {
        Some(script) => script,
        None if is_interpreter(first) && has_option() => template,
        None => first,
    }
}

/// Returns whether a command line is known in full.
pub(crate) fn is_whole(line: &str) -> bool {
    !line.is_empty() && !line.contains('…')
}

/// A command line cut in its middle to fit into a sentence: what tells it from others is often at its end.
pub(crate) fn short(line: &str) -> String {
    const CHARACTERS_MAX: usize = 60;
    const LAST: usize = 24;
    let all = line.chars().count();
    if all <= CHARACTERS_MAX {
        return line.to_owned();
    }
    let head: String = line.chars().take(CHARACTERS_MAX - LAST - 1).collect();
    let tail: String = line.chars().skip(all - LAST).collect();
    format!("{}…{}", head.trim_end(), tail.trim_start())
}
