//! Lists of directories: LD_LIBRARY_PATH, RPATH and RUNPATH.

use std::collections::HashSet;

/// Values of the tokens of a list (ld.so(8), "Dynamic string tokens").
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tokens {
    /// $ORIGIN: the directory of the object that contains the list. An entry with the token is
    /// dropped where it is not known.
    pub origin: Option<Vec<u8>>,
    /// $LIB: "lib64", or "lib/x86_64-linux-gnu" on Debian.
    pub lib: Vec<u8>,
    /// $PLATFORM: "x86_64".
    pub platform: Vec<u8>,
}

/// Places to which $ORIGIN may lead in a secure start: `_dl_dst_substitute` of elf/dl-load.c.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Trust<'a> {
    /// Anywhere: the start is not secure.
    All,
    /// Anywhere, as a library was found at a trusted place, but it must be the first component.
    First,
    /// Only below these directories, as whoever starts a program may have linked it elsewhere.
    Below(&'a [Vec<u8>]),
}

/// The entries of a list as directories with a slash at the end, in the form in which the linker
/// compares them: duplicates are dropped, and an empty entry, the current directory, stays empty. Each
/// comes with the index of its entry.
pub(crate) fn directories(
    list: &[u8],
    separators: &[u8],
    tokens: &Tokens,
    trust: Trust<'_>,
) -> Vec<(usize, Vec<u8>)> {
    let mut found: Vec<(usize, Vec<u8>)> = Vec::new();
    let mut known: HashSet<Vec<u8>> = HashSet::new();
    for (at, entry) in list.split(|byte| separators.contains(byte)).enumerate() {
        let Some(mut directory) = expand(entry, tokens, trust) else { continue };
        while directory.len() > 1 && directory.ends_with(b"/") {
            directory.pop();
        }
        if directory.is_empty() && !entry.is_empty() {
            continue;
        }
        if !directory.is_empty() && !directory.ends_with(b"/") {
            directory.push(b'/');
        }
        if known.insert(directory.clone()) {
            found.push((at, directory));
        }
    }
    found
}

/// The directories of an RPATH or RUNPATH as they are searched, and whether they depend on the place of its
/// object: by $ORIGIN.
pub fn own_directories<'a>(
    list: &'a [u8],
    tokens: &'a Tokens,
) -> impl Iterator<Item = (Vec<u8>, bool)> + 'a {
    let entries = list.split(|byte| *byte == b':');
    entries.filter_map(|entry| Some((expand(entry, tokens, Trust::All)?, has_origin(entry))))
}

/// Returns whether a path has the token $ORIGIN.
pub fn has_origin(path: &[u8]) -> bool {
    let dollars = path.iter().enumerate().filter(|(_, byte)| **byte == b'$');
    dollars.map(|(at, _)| &path[at..]).any(|rest| matches!(token(rest), Some((b"ORIGIN", _))))
}

/// A path with its tokens replaced; `None` if one of them is not known or not trusted.
pub(crate) fn expand(path: &[u8], tokens: &Tokens, trust: Trust<'_>) -> Option<Vec<u8>> {
    let mut expanded = Vec::with_capacity(path.len());
    let mut rest = path;
    let mut has_origin = false;
    while let Some(dollar) = rest.iter().position(|byte| *byte == b'$') {
        expanded.extend_from_slice(&rest[..dollar]);
        rest = &rest[dollar..];
        match token(rest) {
            Some((name, length)) => {
                let after = &rest[length..];
                if name == b"ORIGIN" {
                    let is_component = matches!(after, [] | [b'/', ..]);
                    let is_first = rest.len() == path.len() && is_component;
                    if !is_first && !matches!(trust, Trust::All) {
                        return None;
                    }
                    has_origin = true;
                }
                expanded.extend_from_slice(match name {
                    b"ORIGIN" => tokens.origin.as_ref()?,
                    b"LIB" => &tokens.lib,
                    _ => &tokens.platform,
                });
                rest = after;
            }
            None => {
                expanded.push(b'$');
                rest = &rest[1..];
            }
        }
    }
    expanded.extend_from_slice(rest);
    match trust {
        Trust::Below(trusted) if has_origin && !is_below(&expanded, trusted) => None,
        _ => Some(expanded),
    }
}

/// Returns whether a path is one of these directories, or below one, once "." and ".." are resolved.
fn is_below(path: &[u8], directories: &[Vec<u8>]) -> bool {
    let mut plain: Vec<&[u8]> = Vec::new();
    for component in path.split(|byte| *byte == b'/') {
        match component {
            b"" | b"." => {}
            b".." => drop(plain.pop()),
            name => plain.push(name),
        }
    }
    let plain: Vec<u8> = plain.iter().flat_map(|name| [b"/", *name]).flatten().copied().collect();
    directories.iter().any(|directory| {
        plain.strip_prefix(&directory[..]).is_some_and(|rest| matches!(rest, [] | [b'/', ..]))
    })
}

/// The token at the start of a text that begins with a dollar sign, and its length there.
fn token(text: &[u8]) -> Option<(&'static [u8], usize)> {
    const NAMES: [&[u8]; 3] = [b"ORIGIN", b"LIB", b"PLATFORM"];
    let after = &text[1..];
    for name in NAMES {
        if let Some(inner) = after.strip_prefix(b"{")
            && inner.starts_with(name)
            && inner.get(name.len()) == Some(&b'}')
        {
            return Some((name, name.len() + 3));
        }
        let ends = |next: Option<&u8>| {
            next.is_none_or(|byte| !byte.is_ascii_alphanumeric() && *byte != b'_')
        };
        if after.starts_with(name) && ends(after.get(name.len())) {
            return Some((name, name.len() + 1));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens() -> Tokens {
        Tokens {
            origin: Some(b"/opt/bin".into()),
            lib: b"lib64".into(),
            platform: b"x86_64".into(),
        }
    }

    fn of(list: &str) -> Vec<(usize, String)> {
        let found = directories(list.as_bytes(), b":;", &tokens(), Trust::All);
        found.into_iter().map(|(at, d)| (at, String::from_utf8(d).expect("UTF-8"))).collect()
    }

    #[test]
    fn lists_are_split_and_expanded() {
        let of =
            |list: &str| of(list).into_iter().map(|(at, d)| format!("{at}{d}")).collect::<Vec<_>>();
        assert_eq!(of("/a:/b/;/a//"), ["0/a/", "1/b/"]);
        assert_eq!(of(":/a:"), ["0", "1/a/"]);
        assert_eq!(of("$ORIGIN/../lib:${LIB}/$PLATFORM"), ["0/opt/bin/../lib/", "1lib64/x86_64/"]);
        assert_eq!(of("$ORIGINAL:$"), ["0$ORIGINAL/", "1$/"]);
        assert_eq!(of("/"), ["0/"]);
        let unknown = Tokens { origin: None, ..tokens() };
        assert_eq!(directories(b"$ORIGIN:/a", b":", &unknown, Trust::All), [(1, b"/a/".to_vec())]);
    }

    #[test]
    fn entries_with_origin_depend_on_the_place() {
        let (tokens, list) = (tokens(), b"/a:$ORIGIN/../lib:$LIB:${ORIGIN}");
        let found: Vec<_> = own_directories(list, &tokens).collect();
        let expected: [(&[u8], bool); 4] =
            [(b"/a", false), (b"/opt/bin/../lib", true), (b"lib64", false), (b"/opt/bin", true)];
        assert_eq!(found, expected.map(|(path, relative)| (path.to_vec(), relative)));
        for (path, expected) in [("$ORIGINAL", false), ("$LIB/$ORIGIN", true), ("ORIGIN$", false)] {
            assert_eq!(has_origin(path.as_bytes()), expected, "{path}");
        }
    }

    #[test]
    fn a_secure_start_trusts_few_origins() {
        let trusted = [b"/opt".to_vec(), b"/usr/lib".to_vec()];
        let of = |path: &[u8], trust| expand(path, &tokens(), trust).is_some();
        for (path, first, below) in [
            ("$ORIGIN", true, true),
            ("${ORIGIN}/../lib", true, true),
            ("$ORIGIN/../../opt", true, true),
            ("$ORIGIN/../../optional", true, false),
            ("$ORIGIN/../../usr", true, false),
            ("$ORIGIN/../../usr/./lib//a", true, true),
            ("/$ORIGIN", false, false),
            ("$ORIGIN:", false, false),
            ("$ORIGIN/$ORIGIN", false, false),
            ("/no/$LIB", true, true),
        ] {
            let path = path.as_bytes();
            assert!(of(path, Trust::All));
            assert_eq!(of(path, Trust::First), first, "{path:?}");
            assert_eq!(of(path, Trust::Below(&trusted)), below, "{path:?}");
        }
    }

    #[test]
    fn long_lists_are_read_in_linear_time() {
        let list = vec![b':'; 10_000_000];
        assert_eq!(directories(&list, b":", &tokens(), Trust::All).len(), 1);
        let list: Vec<u8> = (0..200_000).flat_map(|n| format!("/{n}:").into_bytes()).collect();
        assert_eq!(directories(&list, b":", &tokens(), Trust::All).len(), 200_001);
    }

    proptest! {
        #[test]
        fn any_list_has_directories(list in proptest::collection::vec(any::<u8>(), 0..200)) {
            for (_, directory) in directories(&list, b":;", &tokens(), Trust::All) {
                prop_assert!(directory.is_empty() || directory.ends_with(b"/"));
            }
        }
    }
}
