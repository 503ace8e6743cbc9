//! Labels of rows that disambiguate identical names.

use std::collections::{BTreeSet, HashMap};

use proctrace_findings::Class;

use crate::Program;

/// Unique names for rows: for each its first name; where that is not unique, followed by as many of
/// the further names in parentheses as are needed to disambiguate.
pub fn told_apart<const N: usize>(rows: &[[&str; N]]) -> Vec<String> {
    let mut same: HashMap<Option<&&str>, Vec<&[&str; N]>> = HashMap::new();
    for row in rows {
        same.entry(row.first()).or_default().push(row);
    }
    rows.iter()
        .map(|row| {
            let same = same.get(&row.first()).map_or(&[][..], Vec::as_slice);
            let distinct = |length: usize| {
                same.iter().map(|row| &row[..length]).collect::<BTreeSet<_>>().len() == same.len()
            };
            let length = (1..N).find(|length| distinct(*length)).unwrap_or(N);
            match row.split_at(length.min(1)) {
                (name, _) if length <= 1 => name.concat(),
                (name, more) => format!("{} ({})", name.concat(), more[..length - 1].join(", ")),
            }
        })
        .collect()
}

/// Names of programs, with the category where the name is not unique, and the class if necessary.
pub fn of_programs<'a>(programs: impl Iterator<Item = &'a Program>) -> Vec<String> {
    let rows: Vec<[&str; 3]> = programs
        .map(|program| [&*program.name, program.category(), class_name(program.class)])
        .collect();
    told_apart(&rows)
}

/// The name of a class, as rules and tables write it.
pub fn class_name(class: Class) -> &'static str {
    match class {
        Class::Command => "command",
        Class::Framework => "framework",
        Class::Program => "program",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_has_the_same_name_says_more() {
        let rows = [
            ["sed", "text", "command"],
            ["awk", "text", "command"],
            ["sed", "o2 sim", "framework"],
            ["perl", "other", "command"],
            ["perl", "other", "program"],
        ];
        assert_eq!(
            told_apart(&rows),
            ["sed (text)", "awk", "sed (o2 sim)", "perl (other, command)", "perl (other, program)"]
        );
        // Rows that nothing distinguishes get all names.
        assert_eq!(told_apart(&[["a", "b"], ["a", "b"]]), ["a (b)", "a (b)"]);
        assert_eq!(told_apart(&[["a"], ["a"]]), ["a", "a"]);
    }
}
