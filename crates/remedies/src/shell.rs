//! Remedies as text for a shell: assignments and commands.

use proctrace_analysis::{Fixes, ListChange};
use proctrace_findings::Libs;
use proctrace_report::escape::terminal;
use proctrace_report::fit::wrap;
use proctrace_report::number::{count, counted};
use proctrace_report::shell::quoted;
use proctrace_wire::escape::to_text;

use crate::tables::{not_modelled, some};

/// A script with comments of this width.
struct Script {
    text: Vec<u8>,
    width: usize,
}

impl Script {
    fn new(width: usize) -> Self {
        Self { text: Vec::new(), width }
    }

    fn comment(&mut self, indent: &str, text: &str) {
        for line in wrap(&terminal(text), self.width.saturating_sub(indent.len() + 2)) {
            self.push(format!("{indent}# {line}\n"));
        }
    }

    fn push(&mut self, text: impl AsRef<[u8]>) {
        self.text.extend_from_slice(text.as_ref());
    }
}

/// Explains a remedy, as far as it is known, in a comment.
fn explain(out: &mut Script, found: &Libs, name: &str) {
    let Some(remedy) = found.remedies.iter().find(|remedy| remedy.name == name) else { return };
    let whose = match remedy.about {
        "programs" => "in the entries of PATH",
        _ => "of the dynamic linker at starts",
    };
    let text = format!(
        "Predicted: {} failed look-ups {whose} instead of {}.",
        count(remedy.predicted_misses),
        count(remedy.today_misses)
    );
    out.comment("", &text);
    let risk = match name {
        "clean" => {
            "a library that only another run needs, or dlopen(3), may not be found any more; of two \
             libraries of one name another one may be found"
        }
        _ => remedy.risk,
    };
    out.comment("", &format!("Risk: {risk}."));
}

/// The cleaned variables as assignments, with comments of this width.
pub fn environment(found: &Libs, fixes: &Fixes, width: usize) -> Vec<u8> {
    let mut out = Script::new(width);
    out.comment("", "LD_LIBRARY_PATH without unused entries, the most used ones first.");
    explain(&mut out, found, "clean");
    if let Some(note) = not_modelled(found) {
        out.comment("", &note);
    }
    variable(&mut out, "LD_LIBRARY_PATH", &fixes.library_paths);
    out.push("\n");
    out.comment("", "PATH without entries in which no program was found.");
    explain(&mut out, found, "path");
    variable(&mut out, "PATH", &fixes.paths);
    out.text
}

/// A variable by its present value: a shell that has another one, or none, keeps it.
fn variable(out: &mut Script, name: &str, changes: &[ListChange]) {
    let who = |change: &ListChange| {
        let programs: Vec<String> =
            change.programs.iter().map(|program| to_text(program).into_owned()).collect();
        let starts = counted(change.starts, "start", "starts");
        format!("{starts}: {}", some(&programs))
    };
    // Without any PATH a shell finds nothing.
    let is_needed = |change: &ListChange| change.becomes.is_none() && name == "PATH";
    let is_change =
        |change: &ListChange| change.becomes.as_ref() != Some(&change.was) && !is_needed(change);
    if changes.is_empty() {
        out.comment("", &format!("No program had {name}."));
    }
    let (changed, same): (Vec<_>, Vec<_>) = changes.iter().partition(|change| is_change(change));
    if !changed.is_empty() {
        out.push(format!("case ${{{name}-}} in\n"));
        for change in changed {
            out.comment("    ", &who(change));
            out.push([b"    (", &quoted(&change.was)[..], b")\n        "].concat());
            match &change.becomes {
                Some(value) => out.push([name.as_bytes(), b"=", &quoted(value)].concat()),
                None => out.push(format!("unset {name}")),
            }
            out.push(" ;;\n");
        }
        out.push("esac\n");
    }
    for change in same {
        let but = if is_needed(change) { ", though nothing was found in it" } else { "" };
        let text = format!("{} stays as it is{but} ({}).", to_text(&change.was), who(change));
        out.comment("", &text);
    }
}

/// The commands of the remedy "needed", with comments of this width.
pub fn patchelf(found: &Libs, fixes: &Fixes, width: usize) -> Vec<u8> {
    let mut out = Script::new(width);
    out.push("#!/bin/sh\nset -e\n");
    if fixes.rewrites.is_empty() {
        out.comment("", "No program or library of the application finds libraries by a list.");
        return out.text;
    }
    out.comment(
        "",
        "Absolute paths in place of the names of libraries, in the application's own programs and \
         libraries. Keep copies of these files.",
    );
    explain(&mut out, found, "needed");
    for rewrite in &fixes.rewrites {
        out.push("\n");
        for name in &rewrite.disputed {
            let text = format!(
                "Other starts find another {}: of two files the one of most starts is named.",
                to_text(name)
            );
            out.comment("", &text);
        }
        out.push("patchelf");
        for (name, path) in &rewrite.replace {
            out.push(" --replace-needed ");
            out.push(quoted(name));
            out.push(" ");
            out.push(quoted(path));
            out.push(" \\\n   ");
        }
        out.push(" ");
        out.push(quoted(&rewrite.file));
        out.push("\n");
    }
    out.text
}
