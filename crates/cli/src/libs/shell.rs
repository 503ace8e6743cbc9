//! Remedies as text for a shell: assignments and commands.

use proctrace_analysis::{Fixes, ListChange};
use proctrace_findings::Libs;
use proctrace_report::escape::terminal;
use proctrace_report::number::{count, counted};
use proctrace_report::shell::quoted;
use proctrace_wire::escape::to_text;

use crate::libs::tables::{not_modelled, some};
use crate::print;

/// Comment lines.
fn comment(out: &mut Vec<u8>, indent: &str, text: &str) {
    for line in print::wrapped(&terminal(text), indent.len() + 2) {
        out.extend_from_slice(format!("{indent}# {line}\n").as_bytes());
    }
}

/// Explains a remedy, as far as it is known, in a comment.
fn explain(out: &mut Vec<u8>, found: &Libs, name: &str) {
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
    comment(out, "", &text);
    let risk = match name {
        "clean" => {
            "a library that only another run needs, or dlopen(3), may not be found any more; of two \
             libraries of one name another one may be found"
        }
        _ => remedy.risk,
    };
    comment(out, "", &format!("Risk: {risk}."));
}

/// The cleaned variables as assignments.
pub(crate) fn environment(found: &Libs, fixes: &Fixes) -> Vec<u8> {
    let mut out = Vec::new();
    comment(&mut out, "", "LD_LIBRARY_PATH without unused entries, the most used ones first.");
    explain(&mut out, found, "clean");
    if let Some(note) = not_modelled(found) {
        comment(&mut out, "", &note);
    }
    variable(&mut out, "LD_LIBRARY_PATH", &fixes.library_paths);
    out.push(b'\n');
    comment(&mut out, "", "PATH without entries in which no program was found.");
    explain(&mut out, found, "path");
    variable(&mut out, "PATH", &fixes.paths);
    out
}

fn variable(out: &mut Vec<u8>, name: &str, changes: &[ListChange]) {
    let who = |change: &ListChange| {
        let programs: Vec<String> =
            change.programs.iter().map(|program| to_text(program).into_owned()).collect();
        let starts = counted(change.starts, "start", "starts");
        // Without any PATH a shell finds nothing.
        let kept = change.becomes.is_none() && name == "PATH";
        let kept = if kept { "; nothing was found in it, so it stays" } else { "" };
        format!("{starts}: {}{kept}", some(&programs))
    };
    let assignment = |change: &ListChange| -> Vec<u8> {
        let becomes = change.becomes.as_ref().or((name == "PATH").then_some(&change.was));
        match becomes {
            Some(value) => [name.as_bytes(), b"=", &quoted(value)].concat(),
            None => [b"unset ", name.as_bytes()].concat(),
        }
    };
    match changes {
        [] => comment(out, "", &format!("No program had {name}.")),
        [change] => {
            comment(out, "", &who(change));
            out.extend_from_slice(&assignment(change));
            out.push(b'\n');
            if change.becomes.is_some() || name == "PATH" {
                out.extend_from_slice(format!("export {name}\n").as_bytes());
            }
        }
        several => {
            let text = format!(
                "Programs had {} different values: the present one decides which replaces it.",
                count(several.len() as u64)
            );
            comment(out, "", &text);
            out.extend_from_slice(format!("case ${{{name}-}} in\n").as_bytes());
            for change in several {
                comment(out, "    ", &who(change));
                let case = [b"    (", &quoted(&change.was)[..], b")\n        "].concat();
                out.extend_from_slice(&case);
                out.extend_from_slice(&assignment(change));
                out.extend_from_slice(b" ;;\n");
            }
            out.extend_from_slice(b"esac\n");
        }
    }
}

/// The commands of the remedy "needed".
pub(crate) fn patchelf(found: &Libs, fixes: &Fixes) -> Vec<u8> {
    let mut out = b"#!/bin/sh\nset -e\n".to_vec();
    if fixes.rewrites.is_empty() {
        comment(
            &mut out,
            "",
            "No program or library of the application finds libraries by a list.",
        );
        return out;
    }
    comment(
        &mut out,
        "",
        "Absolute paths in place of the names of libraries, in the application's own programs and \
         libraries. Keep copies of these files.",
    );
    explain(&mut out, found, "needed");
    for rewrite in &fixes.rewrites {
        out.push(b'\n');
        for name in &rewrite.disputed {
            let text = format!(
                "Other starts find another {}: of two files the one of most starts is named.",
                to_text(name)
            );
            comment(&mut out, "", &text);
        }
        out.extend_from_slice(b"patchelf");
        for (name, path) in &rewrite.replace {
            out.extend_from_slice(b" --replace-needed ");
            out.extend_from_slice(&quoted(name));
            out.push(b' ');
            out.extend_from_slice(&quoted(path));
            out.extend_from_slice(b" \\\n   ");
        }
        out.push(b' ');
        out.extend_from_slice(&quoted(&rewrite.file));
        out.push(b'\n');
    }
    out
}
