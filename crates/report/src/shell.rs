//! Words for a POSIX shell.

use crate::escape::is_unseen;

/// A word of a POSIX shell that stands for these bytes. What a terminal would interpret is not in it as
/// such.
pub fn quoted(bytes: &[u8]) -> Vec<u8> {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"/._-+:@%,".contains(byte);
    if !bytes.is_empty() && bytes.iter().all(plain) {
        return bytes.to_vec();
    }
    let mut word = vec![b'\''];
    let escape = |word: &mut Vec<u8>, bytes: &[u8]| {
        // Octal digits are the only escapes that every printf(1) knows. A command substitution drops
        // line feeds at its end, so they stay in the text.
        let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
        word.extend_from_slice(format!("'\"$(printf '{octal}')\"'").as_bytes());
    };
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            let mut buffer = [0; 4];
            let c_bytes = c.encode_utf8(&mut buffer).as_bytes();
            match c {
                '\'' => word.extend_from_slice(b"'\\''"),
                '\n' => word.push(b'\n'),
                c if c.is_control() || is_unseen(c) => escape(&mut word, c_bytes),
                _ => word.extend_from_slice(c_bytes),
            }
        }
        if !chunk.invalid().is_empty() {
            escape(&mut word, chunk.invalid());
        }
    }
    word.push(b'\'');
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_reads_what_was_quoted() {
        let words: [&[u8]; 8] = [
            b"/opt/lib:/usr/lib",
            b"",
            b"it's \"$HOME\" `id` \\ *",
            b"line\nfeed\n",
            b"\x1b[31mred\x07",
            b"\xff\xfe not UTF-8",
            "\u{202e}right to left, \u{e9}".as_bytes(),
            b"-n",
        ];
        for word in words {
            let script = [b"printf '%s' ", &quoted(word)[..]].concat();
            let script = <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(&script);
            let output = std::process::Command::new("sh").arg("-c").arg(script).output().unwrap();
            assert_eq!(output.stdout, word, "{script:?}");
            let seen = |byte: &u8| *byte == b'\n' || !byte.is_ascii_control();
            assert!(quoted(word).iter().all(seen));
        }
    }
}
