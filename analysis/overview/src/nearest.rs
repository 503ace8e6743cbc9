//! The name that was probably meant.

/// The nearest of these names, if it is close enough for a misspelling.
pub fn nearest<'n>(name: &str, names: impl IntoIterator<Item = &'n str>) -> Option<&'n str> {
    let name = name.to_ascii_lowercase();
    names
        .into_iter()
        .map(|known| (strsim::jaro_winkler(&name, &known.to_ascii_lowercase()), known))
        .filter(|(similarity, _)| *similarity > 0.75)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspellings_are_found_and_nonsense_is_not() {
        let names = ["program", "process_id", "user_ns", "system_ns"];
        assert_eq!(nearest("progam", names), Some("program"));
        assert_eq!(nearest("sys_ns", names), Some("system_ns"));
        assert_eq!(nearest("processid", names), Some("process_id"));
        assert_eq!(nearest("zzz", names), None);
    }
}
