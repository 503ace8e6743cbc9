//! The process tree as text.

use std::fmt::Write as _;

use proctrace_findings::{ProcessTree, TreeRow, count, counted, time};

use crate::escape::terminal;
use crate::fit::{at_right, columns};
use crate::number::{or_dash, percent};
use crate::style::Style;
use crate::words::{begins, push_words};

/// Maximum depth of a row by which it is indented; deeper rows begin with their depth.
const DEPTH_MAX: u32 = 12;
/// Headings of the columns of figures.
const TITLES: [&str; 5] = ["processes", "CPU", "of all", "from", "span"];

/// The tree, one line for each row.
pub fn tree_text(tree: &ProcessTree, style: Style) -> String {
    let mut title = format!("Process tree: {}", counted(tree.processes, "process", "processes"));
    if let Some(at_ns) = tree.at_ns {
        let _ = write!(title, " alive at {}", time(at_ns));
    }
    let mut out = format!("{}\n", style.bold(&title));
    let figures: Vec<[String; 5]> = tree.rows.iter().map(|row| figures(row, tree)).collect();
    let width = |column: usize| {
        let cells = figures.iter().map(|cells| columns(&cells[column]));
        cells.chain([TITLES[column].len()]).max().unwrap_or(0)
    };
    let widths: [usize; 5] = std::array::from_fn(width);
    let lead = |cells: [&str; 5]| {
        cells.iter().zip(widths).fold(String::new(), |mut line, (cell, width)| {
            let _ = write!(line, "  {}", at_right(cell, width));
            line
        })
    };
    let _ = writeln!(out, "{}  command", lead(TITLES));
    let last = last_of_siblings(&tree.rows);
    let mut lines: Vec<bool> = Vec::new();
    for ((row, cells), is_last) in tree.rows.iter().zip(&figures).zip(last) {
        let mut line = lead(cells.each_ref().map(|cell| &**cell));
        line.push_str("  ");
        line.push_str(&branch(row.depth, is_last, &mut lines));
        let room = style.width.saturating_sub(columns(&line));
        let _ = writeln!(out, "{line}{}", begins(&label(row, tree.of_steps), room));
    }
    if tree.rows.is_empty() {
        out.push_str("  none\n");
    }
    out.push('\n');
    let mut says = "Figures include all below a line; ×N: siblings with the same command line, in \
                    which # stands for numbers. from: the first birth; span: until the last end."
        .to_owned();
    if tree.of_steps {
        says = "Figures include all below a line; ×N: steps of the group. from: the first birth; span: until the last end."
            .to_owned();
    } else if tree.rows.iter().any(|row| row.step.is_some()) {
        says.push_str(" [name]: the step that it begins; --steps shows only those.");
    }
    if tree.at_ns.is_some() {
        says.push_str(" CPU time is that of whole lives; `ps --at` has that until then.");
    }
    push_words(&mut out, "", &says, style);
    if let Some(why) = &tree.not_known {
        push_words(&mut out, "Unknown", why, style);
    }
    out
}

fn figures(row: &TreeRow, tree: &ProcessTree) -> [String; 5] {
    [
        count(row.processes),
        or_dash(row.cpu_ns, time),
        or_dash(row.cpu_ns.zip(tree.cpu_ns), |(cpu_ns, all_ns)| percent(cpu_ns, all_ns)),
        time(row.first_ns),
        time(row.last_ns.saturating_sub(row.first_ns)),
    ]
}

fn label(row: &TreeRow, of_steps: bool) -> String {
    let Some(command) = &row.command else {
        return format!("… {}", counted(row.left_out, "other command", "other commands"));
    };
    let what = match &row.step {
        Some(step) if of_steps => terminal(step).into_owned(),
        Some(step) => format!("[{}] {}", terminal(step), terminal(command)),
        None => terminal(command).into_owned(),
    };
    match row.pid.filter(|_| row.siblings == 1) {
        Some(pid) => format!("{pid} {what}"),
        None if row.siblings > 1 => format!("{what} ×{}", count(row.siblings)),
        None => what,
    }
}

/// One flag a row: true if no sibling follows it.
fn last_of_siblings(rows: &[TreeRow]) -> Vec<bool> {
    // From the end: whether a row of each depth follows before one that is less deep.
    let mut follows: Vec<u32> = Vec::new();
    let mut last: Vec<bool> = rows
        .iter()
        .rev()
        .map(|row| {
            while follows.last().is_some_and(|depth| *depth > row.depth) {
                follows.pop();
            }
            let has_next = follows.last() == Some(&row.depth);
            if !has_next {
                follows.push(row.depth);
            }
            !has_next
        })
        .collect();
    last.reverse();
    last
}

/// The lines that connect a row with its parent. `lines` has for each depth whether one goes on.
fn branch(depth: u32, is_last: bool, lines: &mut Vec<bool>) -> String {
    let deep = depth as usize;
    lines.truncate(deep);
    lines.resize(deep, false);
    let text = match deep {
        0 => String::new(),
        _ if depth > DEPTH_MAX => format!("{depth}: "),
        _ => {
            let above = lines[1..].iter().map(|goes_on| if *goes_on { "│ " } else { "  " });
            above.chain([if is_last { "└ " } else { "├ " }]).collect()
        }
    };
    lines.push(!is_last);
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(depth: u32, command: &str, siblings: u64) -> TreeRow {
        TreeRow {
            depth,
            command: Some(command.to_owned()),
            siblings,
            processes: siblings,
            cpu_ns: Some(2_000_000),
            first_ns: 1_000_000_000,
            last_ns: 3_000_000_000,
            pid: (siblings == 1).then_some(4711),
            ..TreeRow::default()
        }
    }

    fn tree(rows: Vec<TreeRow>) -> ProcessTree {
        ProcessTree { processes: 7, cpu_ns: Some(4_000_000), rows, ..ProcessTree::default() }
    }

    #[test]
    fn lines_connect_children_with_their_parents() {
        let rest = TreeRow { depth: 1, left_out: 2, command: None, ..row(1, "", 3) };
        let rows = vec![
            row(0, "make", 1),
            row(1, "sh", 2),
            row(2, "cc\x1b[1m", 1),
            row(2, "as", 1),
            row(1, "ld", 1),
            rest,
        ];
        let text = tree_text(&tree(rows), Style::default());
        let ends: Vec<&str> = text.lines().skip(2).take(6).map(|line| &line[45..]).collect();
        assert_eq!(
            ends,
            [
                "4711 make",
                "├ sh ×2",
                "│ ├ 4711 cc\\u{1b}[1m",
                "│ └ 4711 as",
                "├ 4711 ld",
                "└ … 2 other commands"
            ]
        );
        assert!(
            text.lines().nth(2).unwrap().contains("1  2.0 ms    50 %  1.00 s  2.00 s"),
            "{text}"
        );
    }

    #[test]
    fn the_deepest_tree_keeps_to_its_width() {
        let rows: Vec<TreeRow> = (0..300).map(|depth| row(depth, &"x".repeat(90), 1)).collect();
        let text = tree_text(&tree(rows), Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("  299: 4711 xx"), "{text}");
    }
}
