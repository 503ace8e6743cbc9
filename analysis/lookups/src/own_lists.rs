//! Searches of a program by lists of its own: compilers search the directories of headers on their command line, node
//! the node_modules of all directories above.

use std::collections::BTreeMap;

/// Names of headers that are followed in one process; a translation unit has some thousands.
const HEADERS_MAX: usize = 1 << 16;

/// The lists of a program that has some.
#[derive(Debug)]
pub(crate) enum Lists {
    /// A compiler, with its options for directories of headers.
    Headers(Vec<Includes>),
    Node,
}

/// A directory of headers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Includes {
    /// The option, as it is called in results.
    kind: &'static str,
    /// As it was written.
    directory: Vec<u8>,
}

/// Programs that search headers by these options: those of GCC, and clang, whose driver gives them on.
const COMPILERS: [&[u8]; 8] =
    [b"cc1", b"cc1plus", b"cc1obj", b"cc1objplus", b"cpp", b"clang", b"clang++", b"cudafe++"];

/// Options in the order in which their directories are searched. Those of -iquote are left out of it: only
/// `#include "…"` searches there.
const OPTIONS: [(&str, &[u8]); 3] =
    [("-I", b"-I"), ("-isystem", b"-isystem"), ("-idirafter", b"-idirafter")];

/// Name in results for directories that belong to the compiler or the system.
const BUILT_IN: &str = "include";

impl Lists {
    /// Lists of this program, if it has any.
    pub(crate) fn of(exe: &[u8], argv: &[Vec<u8>]) -> Option<Self> {
        let name = exe.rsplit(|byte| *byte == b'/').next().unwrap_or(exe);
        let bare = match name.iter().rposition(|byte| !matches!(byte, b'0'..=b'9' | b'.' | b'-')) {
            // cc1 ends in a digit of its own.
            Some(end) if name != b"cc1" => &name[..=end],
            _ => name,
        };
        match bare {
            b"node" | b"nodejs" => Some(Self::Node),
            _ if COMPILERS.contains(&bare) => Some(Self::Headers(includes(argv))),
            _ => None,
        }
    }

    /// The kind and the place of a failed look-up of such a search.
    pub(crate) fn cause_of(&self, path: &[u8]) -> Option<(&'static str, Vec<u8>)> {
        match self {
            Self::Headers(list) => match at(list, path) {
                Some((at, _)) => Some((list[at].kind, list[at].directory.clone())),
                None => built_in(path).map(|directory| (BUILT_IN, directory.to_vec())),
            },
            Self::Node => node(path),
        }
    }
}

fn includes(argv: &[Vec<u8>]) -> Vec<Includes> {
    let mut found: Vec<Includes> = Vec::new();
    let mut words = argv.iter().skip(1);
    while let Some(word) = words.next() {
        for (kind, option) in OPTIONS.into_iter().chain([("-iquote", &b"-iquote"[..])]) {
            let directory = match word.strip_prefix(option) {
                Some([]) => words.next().cloned(),
                Some(attached) => Some(attached.to_vec()),
                None => continue,
            };
            let Some(directory) = directory.filter(|directory| !directory.is_empty()) else {
                break;
            };
            let includes = Includes { kind, directory };
            if !found.contains(&includes) {
                found.push(includes);
            }
            break;
        }
    }
    let rank = |kind: &str| OPTIONS.iter().position(|(other, _)| *other == kind);
    found.sort_by_key(|includes| rank(includes.kind).unwrap_or(OPTIONS.len()));
    found
}

/// The entry below which a path is, the longest if there are several, and the name of the header.
fn at<'a>(list: &[Includes], path: &'a [u8]) -> Option<(usize, &'a [u8])> {
    let below = |includes: &Includes| {
        let slashes = includes.directory.iter().rev().take_while(|byte| **byte == b'/').count();
        let plain = &includes.directory[..includes.directory.len() - slashes];
        match path.strip_prefix(plain)? {
            // The directory itself, of which compilers ask whether it exists.
            [] => Some(&b""[..]),
            rest => rest.strip_prefix(b"/"),
        }
    };
    let entries = list.iter().enumerate().filter_map(|(at, it)| Some((at, below(it)?)));
    entries.min_by_key(|(at, header)| (header.len(), *at))
}

/// The directory of the system's headers that a path is below.
fn built_in(path: &[u8]) -> Option<&[u8]> {
    [&b"/include/"[..], b"/include-fixed/"].into_iter().find_map(|part| {
        let at = path.windows(part.len()).position(|window| window == part)?;
        // /usr/include/x86_64-linux-gnu and /usr/include/c++/12 are directories of their own, but look alike.
        path.starts_with(b"/").then(|| &path[..at + part.len() - 1])
    })
}

fn node(path: &[u8]) -> Option<(&'static str, Vec<u8>)> {
    // Those in the home directory are searched as well.
    const MODULES: [&[u8]; 3] = [b"node_modules", b".node_modules", b".node_libraries"];
    let mut end = path.len();
    // The innermost: a package has those that it depends on in a directory of its own.
    while let Some(slash) = path[..end].iter().rposition(|byte| *byte == b'/') {
        if MODULES.contains(&&path[slash + 1..end]) {
            return Some(("node_modules", path[..end].to_vec()));
        }
        end = slash;
    }
    // Which package a file belongs to is written above it.
    let directory = path.strip_suffix(b"/package.json")?;
    Some(("package.json", if directory.is_empty() { b"/".to_vec() } else { directory.to_vec() }))
}

/// The failed look-ups of headers of one process, by which it is known where each was found.
#[derive(Debug, Default, Clone)]
pub(crate) struct Headers {
    /// By name: in which entries it is not.
    missed: BTreeMap<Vec<u8>, Vec<bool>>,
    /// Entries that do not exist, and are not searched.
    absent: Vec<usize>,
}

impl Headers {
    pub(crate) fn miss(&mut self, lists: &Lists, path: &[u8]) {
        // GCC looks for a precompiled header first.
        if path.ends_with(b".gch") {
            return;
        }
        let Lists::Headers(list) = lists else { return };
        let Some((at, header)) = at(list, path) else { return };
        if header.is_empty() {
            self.absent.push(at);
            return;
        }
        if self.missed.len() >= HEADERS_MAX && !self.missed.contains_key(header) {
            return;
        }
        let missed = self.missed.entry(header.to_vec()).or_insert_with(|| vec![false; list.len()]);
        if let Some(missed) = missed.get_mut(at) {
            *missed = true;
        }
    }

    /// Numbers of headers that were looked for and found at each entry but the first. What is found in the first leaves
    /// no failed look-up. Headers that none of the entries have are the system's.
    pub(crate) fn finish<'a>(
        &self,
        lists: &'a Lists,
    ) -> impl Iterator<Item = (&'static str, &'a [u8], u64, u64)> {
        let list = match lists {
            Lists::Headers(list) => list.as_slice(),
            Lists::Node => &[],
        };
        let searched = list.iter().filter(|includes| includes.kind != "-iquote").count();
        let mut figures = vec![(0_u64, 0_u64); searched];
        for missed in self.missed.values() {
            for (at, (probes, hits)) in figures.iter_mut().enumerate() {
                if self.absent.contains(&at) {
                    continue;
                }
                *probes += 1;
                if !missed.get(at).copied().unwrap_or(false) {
                    *hits += 1;
                    break;
                }
            }
        }
        let rows = list.iter().zip(figures).skip(1);
        rows.map(|(includes, (probes, hits))| {
            (includes.kind, includes.directory.as_slice(), probes, hits)
        })
        .filter(|(_, _, probes, _)| *probes > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lists(words: &str) -> Option<Lists> {
        let words: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        Lists::of(&words[0], &words)
    }

    #[test]
    fn directories_of_headers_are_those_of_the_command_line() {
        let cc1 = "/usr/libexec/gcc/x86_64-linux-gnu/14/cc1plus -quiet -idirafter /late -I a -I/opt/b/ \
                   -isystem /sys -iquote q -I a x.cc";
        let lists = lists(cc1).unwrap();
        let cause = |path: &str| {
            let cause = lists.cause_of(path.as_bytes());
            cause.map(|(kind, entry)| (kind, String::from_utf8(entry).unwrap()))
        };
        let says = |kind, entry: &str| Some((kind, entry.to_owned()));
        assert_eq!(cause("a/x.h"), says("-I", "a"));
        assert_eq!(cause("a"), says("-I", "a"));
        assert_eq!(cause("ab/x.h"), None);
        assert_eq!(cause("a/x.h.gch"), says("-I", "a"));
        assert_eq!(cause("/opt/b/deep/x.h"), says("-I", "/opt/b/"));
        assert_eq!(cause("/sys/x"), says("-isystem", "/sys"));
        assert_eq!(cause("/late/x.h"), says("-idirafter", "/late"));
        assert_eq!(cause("q/x.h"), says("-iquote", "q"));
        assert_eq!(cause("/usr/local/include/x.h"), says("include", "/usr/local/include"));
        assert_eq!(cause("/usr/share/locale/x.mo"), None);
        assert!(self::lists("/usr/bin/ls -I a").is_none());
        assert!(self::lists("/usr/lib/llvm-19/bin/clang-19 -I a").is_some());
    }

    #[test]
    fn where_headers_were_found_is_known_by_where_they_were_not() {
        let lists = lists("cc1 -I a -I gone -I b -I c -isystem d").unwrap();
        let mut headers = Headers::default();
        for path in [
            "gone",
            "a/x.h.gch",
            "a/x.h",
            "a/y.h",
            "b/y.h",
            "a/stdio.h",
            "b/stdio.h",
            "c/stdio.h",
            "d/stdio.h",
        ] {
            headers.miss(&lists, path.as_bytes());
        }
        let found: Vec<_> = headers.finish(&lists).collect();
        let row = |kind, entry: &'static str, probes, hits| (kind, entry.as_bytes(), probes, hits);
        // x.h is in b, y.h in c; d never had anything.
        let expected = [row("-I", "b", 3, 1), row("-I", "c", 2, 1), row("-isystem", "d", 1, 0)];
        assert_eq!(found, expected);
    }

    #[test]
    fn node_searches_upwards() {
        let lists = lists("/usr/bin/node a.js").unwrap();
        for (path, kind, entry) in [
            ("/w/a/node_modules", "node_modules", "/w/a/node_modules"),
            ("/w/node_modules/x/package.json", "node_modules", "/w/node_modules"),
            (
                "/w/node_modules/x/node_modules/y.js",
                "node_modules",
                "/w/node_modules/x/node_modules",
            ),
            ("/w/a/package.json", "package.json", "/w/a"),
            ("/package.json", "package.json", "/"),
            ("/home/anna/.node_modules/x", "node_modules", "/home/anna/.node_modules"),
        ] {
            let cause = lists.cause_of(path.as_bytes());
            assert_eq!(cause, Some((kind, entry.as_bytes().to_vec())), "{path}");
        }
        assert_eq!(lists.cause_of(b"/w/node_modules_old/x"), None);
        assert_eq!(lists.cause_of(b"/etc/ssl/openssl.cnf"), None);
    }
}
