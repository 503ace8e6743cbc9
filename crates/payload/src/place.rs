//! Maps an offset in a TOML file to its key: the toml crate reports the position of an error, but
//! not the key.

/// The state of a scan through the text.
#[derive(Default)]
struct Scan<'a> {
    table: &'a str,
    /// Keys of the open inline tables.
    open: Vec<&'a str>,
    key: &'a str,
    /// Number of open array brackets.
    arrays: usize,
}

/// The key at an offset, prefixed with its tables and dots; empty if there is none. The text may be
/// invalid TOML.
pub(crate) fn field_at(text: &str, offset: usize) -> String {
    let mut scan = Scan::default();
    let mut at = 0;
    while at < offset.min(text.len()) {
        at = scan.step(text, at);
    }
    // At a table header: a missing key.
    if text[at.min(text.len())..].starts_with('[') {
        scan.step(text, at);
    }
    // At a key: an unknown or duplicate key.
    let word = word_at(text, offset);
    if !word.is_empty() && text[offset + word.len()..].trim_start_matches(' ').starts_with('=') {
        scan.key = word;
    }
    let parts = [scan.table].into_iter().chain(scan.open).chain([scan.key]);
    parts.filter(|part| !part.is_empty()).collect::<Vec<_>>().join(".")
}

impl<'a> Scan<'a> {
    /// Processes the token at an offset, and returns the offset of the next.
    fn step(&mut self, text: &'a str, at: usize) -> usize {
        let rest = &text[at..];
        let top = self.open.is_empty() && self.arrays == 0;
        match rest.as_bytes()[0] {
            b'\n' if top => self.key = "",
            b'#' => return at + rest.find('\n').unwrap_or(rest.len()),
            quote @ (b'"' | b'\'') => return at + string(rest.as_bytes(), quote),
            b'[' if top && self.key.is_empty() => {
                let line = rest.lines().next().unwrap_or(rest);
                let line = line.split('#').next().unwrap_or(line);
                self.table = line.trim().trim_matches(['[', ']']).trim();
                return at + line.len().max(1);
            }
            b'[' => self.arrays += 1,
            b']' => self.arrays = self.arrays.saturating_sub(1),
            b'{' => {
                self.open.push(self.key);
                self.key = "";
            }
            b'}' => self.key = self.open.pop().unwrap_or(""),
            _ => {
                let word = word_at(text, at);
                if !word.is_empty() {
                    if rest[word.len()..].trim_start_matches(' ').starts_with('=') {
                        self.key = word;
                    }
                    return at + word.len();
                }
                return at + rest.chars().next().map_or(1, char::len_utf8);
            }
        }
        at + 1
    }
}

/// The length of a string including its quotes; it ends at the end of the line at the latest.
fn string(rest: &[u8], quote: u8) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != b'\n' {
        match rest[at] {
            b'\\' if quote == b'"' => at += 1,
            byte if byte == quote => return at + 1,
            _ => {}
        }
        at += 1;
    }
    // A backslash before a multi-byte character would end in the middle of it.
    let at = at.min(rest.len());
    (at..=rest.len()).find(|at| rest.get(*at).is_none_or(|b| (*b & 0xc0) != 0x80)).unwrap_or(at)
}

/// The bare key that starts at an offset; empty if none does.
fn word_at(text: &str, at: usize) -> &str {
    let rest = &text[at.min(text.len())..];
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || "_-.".contains(c)));
    &rest[..end.unwrap_or(rest.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_have_the_tables_they_are_in() {
        let text = "a = 1 # b = 2\n[x] # y\nc = \"d = #\\\" [\"\ne = [\n  { f = 1, g = { h = 'i' } },\n]\n[[y.z]]\nk = 2\n";
        let at = |what: &str| field_at(text, text.find(what).unwrap());
        assert_eq!(at("a ="), "a");
        assert_eq!(at("[[y"), "y.z");
        assert_eq!(at("1 #"), "a");
        assert_eq!(at("\"d"), "x.c");
        assert_eq!(at("e ="), "x.e");
        assert_eq!(at("1, g"), "x.e.f");
        assert_eq!(at("'i'"), "x.e.g.h");
        assert_eq!(at("2\n"), "a", "in a comment the key before it is meant");
        assert_eq!(field_at(text, text.len() - 2), "y.z.k");
        assert_eq!(field_at(text, text.len()), "y.z");
    }
}
