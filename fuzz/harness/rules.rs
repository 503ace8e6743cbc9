//! Any text as a pack of rules, and its first line as a pattern for the others.

use proctrace_classify::pack::{Pack, Tier};
use proctrace_classify::pattern::Pattern;

pub(crate) fn run(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    match Pack::parse("fuzz.toml", Tier::User, &text) {
        Ok(pack) => {
            for rule in &pack.rules {
                assert!(rule.line >= 1 && !rule.group.is_empty());
                for pattern in
                    [&rule.name, &rule.file, &rule.text, &rule.argv].into_iter().flatten()
                {
                    search(pattern, data);
                }
            }
        }
        Err(error) => assert!(error.to_string().starts_with("fuzz.toml:"), "{error}"),
    }
    let mut lines = text.lines();
    let pattern = lines.next().map(Pattern::new).filter(|pattern| !pattern.is_too_long());
    let Some(pattern) = pattern else { return };
    for line in lines {
        search(&pattern, line.as_bytes());
    }
}

fn search(pattern: &Pattern, text: &[u8]) {
    // Time is bounded by the product of both lengths.
    let text = &text[..text.len().min(4096)];
    match pattern.find(text) {
        Some(word) if pattern.words() > 0 => {
            assert!(!word.is_empty() && !word.contains(&b'/'), "{word:?}");
            assert!(text.windows(word.len()).any(|part| part == word));
        }
        Some(whole) => assert_eq!(whole, text),
        None => assert!(!pattern.matches(text)),
    }
}
