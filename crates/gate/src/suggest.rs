//! Suggests the known name closest to a misspelt one.

/// Maximum length of a name for which others are sought: the search takes quadratic time.
const LONGEST: usize = 64;

/// The closest of these names, if at most a third of it differs.
pub(crate) fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if name.len() > LONGEST {
        return None;
    }
    known
        .into_iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .filter(|(distance, known)| *distance <= known.len().div_ceil(3))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// A sentence with the closest of these names, or with all of them.
pub(crate) fn hint(name: &str, known: &[&str]) -> String {
    match nearest(name, known.iter().copied()) {
        Some(nearest) => format!("did you mean {nearest}?"),
        None => format!("known names: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_names_are_found_and_far_ones_are_not() {
        let known = ["execs", "spawns", "total_execs"];
        assert_eq!(nearest("exec", known), Some("execs"));
        assert_eq!(nearest("total_exces", known), Some("total_execs"));
        assert_eq!(nearest("banana", known), None);
        assert_eq!(nearest(&"x".repeat(100_000), known), None);
    }
}
