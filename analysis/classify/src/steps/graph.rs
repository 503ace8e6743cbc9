//! Which file is made from which, as the tools that build them say: the graph that `ninja -t graph` prints, and the data
//! base that `make -p` prints.

use crate::error::RulesError;
use crate::fast::{FastMap, FastSet};

/// Maximum number of files, and of pairs of a file and what it is made from.
const FILES_MAX: usize = 1 << 22;
const PAIRS_MAX: usize = 1 << 24;

/// What `make -p` says of a target that it has commands for; before 4.0, and since. Others only stand for what they need.
const HAS_RECIPE: [&[u8]; 2] = [b"#  recipe to execute", b"#  commands to execute"];

/// Files and what they are made from.
#[derive(Debug, Clone, Default)]
pub struct FileGraph {
    /// Numbers by name: absolute, or relative to the directory in which commands run.
    numbers: FastMap<Vec<u8>, u32>,
    files: Vec<File>,
    pairs: usize,
}

#[derive(Debug, Clone, Default)]
struct File {
    made_from: Vec<u32>,
    is_made: bool,
    /// Its makefile has commands run one at a time (`.NOTPARALLEL`): the order of its lines counts.
    is_in_order: bool,
    /// False for what is only a knot of lines in the graph.
    is_file: bool,
}

impl FileGraph {
    /// True if it says nothing.
    pub fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The number of a file that something makes, by its absolute path and the directory in which a command runs.
    pub fn made(&self, path: &[u8], directory: &[u8]) -> Option<u32> {
        let below = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix(b"/"));
        let number = self.numbers.get(path).or_else(|| self.numbers.get(below?))?;
        self.files.get(*number as usize)?.is_made.then_some(*number)
    }

    /// True if a file is made by commands that run one at a time, in the order of the makefile.
    pub fn is_in_order(&self, file: u32) -> bool {
        self.files.get(file as usize).is_some_and(|file| file.is_in_order)
    }

    /// All that these files are made from, directly or not, as a set by number; they themselves are no part of it.
    pub fn before(&self, files: &[u32]) -> Vec<bool> {
        let mut found = vec![false; self.files.len()];
        let mut next = files.to_vec();
        while let Some(file) = next.pop() {
            for from in self.files.get(file as usize).into_iter().flat_map(|file| &file.made_from) {
                if !std::mem::replace(&mut found[*from as usize], true) {
                    next.push(*from);
                }
            }
        }
        found
    }

    /// The files that a file is made from directly.
    pub fn direct(&self, file: u32) -> Vec<u32> {
        let mut all = Vec::new();
        for from in self.files.get(file as usize).into_iter().flat_map(|file| &file.made_from) {
            let knot = &self.files[*from as usize];
            match knot.is_file {
                true => all.push(*from),
                false => all.extend(&knot.made_from),
            }
        }
        all
    }

    /// The first files that are wanted on the ways back from these.
    pub fn nearest(&self, files: &[u32], wanted: impl Fn(u32) -> bool) -> Vec<u32> {
        let (mut found, mut seen, mut next) = (Vec::new(), FastSet::default(), files.to_vec());
        while let Some(file) = next.pop() {
            for from in self.files.get(file as usize).into_iter().flat_map(|file| &file.made_from) {
                if seen.insert(*from) {
                    if wanted(*from) { found.push(*from) } else { next.push(*from) }
                }
            }
        }
        found
    }

    fn number(&mut self, name: &[u8]) -> Result<u32, &'static str> {
        let name = name.strip_prefix(b"./").unwrap_or(name);
        if let Some(number) = self.numbers.get(name) {
            return Ok(*number);
        }
        let number = self.knot()?;
        self.files[number as usize].is_file = true;
        self.numbers.insert(name.to_vec(), number);
        Ok(number)
    }

    /// One without a name.
    fn knot(&mut self) -> Result<u32, &'static str> {
        let number = u32::try_from(self.files.len()).unwrap_or(u32::MAX);
        if self.files.len() >= FILES_MAX {
            return Err("too many files");
        }
        self.files.push(File::default());
        Ok(number)
    }

    fn comes_before(&mut self, from: u32, file: u32) -> Result<(), &'static str> {
        self.pairs += 1;
        if self.pairs > PAIRS_MAX {
            return Err("too many dependencies");
        }
        self.files[file as usize].made_from.push(from);
        Ok(())
    }

    /// Adds a file that something makes from these.
    ///
    /// # Errors
    /// If there are too many.
    pub(super) fn add_made<'a>(
        &mut self,
        file: &[u8],
        made_from: impl Iterator<Item = &'a [u8]>,
    ) -> Result<(), &'static str> {
        let file = self.number(file)?;
        self.files[file as usize].is_made = true;
        for from in made_from {
            let from = self.number(from)?;
            self.comes_before(from, file)?;
        }
        Ok(())
    }

    /// Adds a graph in the language of Graphviz, whose edges lead to what is made, and whose nodes are called like files;
    /// ellipses are only knots. As `ninja -t graph` prints it. `source` is used in messages.
    ///
    /// # Errors
    /// If a line is neither a node, an edge nor an attribute.
    pub fn add_dot(&mut self, source: &str, dot: &[u8]) -> Result<(), RulesError> {
        let mut nodes: FastMap<&[u8], u32> = FastMap::default();
        // Their outputs are made by whatever makes their inputs, or stand for these.
        let mut phony: FastSet<u32> = FastSet::default();
        // A node may come after the edges of it: its name is given first.
        let lines = || dot.split(|byte| *byte == b'\n').enumerate();
        let error = |line: usize, message: &str| RulesError {
            name: source.to_owned(),
            line: line + 1,
            column: 1,
            message: message.to_owned(),
        };
        for (at, line) in lines() {
            let Some((id, rest)) = quoted(line) else { continue };
            if rest.trim_ascii_start().starts_with(b"->") {
                continue;
            }
            let is_knot = find(rest, b"shape=ellipse").is_some();
            let number = match label(rest) {
                Some(label) if !is_knot => self.number(&unescaped(label)),
                _ => self.knot(),
            };
            let number = number.map_err(|why| error(at, why))?;
            if is_knot && label(rest) == Some(b"phony") {
                phony.insert(number);
            }
            nodes.insert(id, number);
        }
        for (at, line) in lines() {
            let Some((from, rest)) = quoted(line) else { continue };
            let Some(rest) = rest.trim_ascii_start().strip_prefix(b"->") else { continue };
            let Some((made, rest)) = quoted(rest) else {
                return Err(error(at, "an edge leads to a node in quotes"));
            };
            // ninja 1.11 describes no second outputs that nothing needs.
            let mut number = |id| match nodes.get(id) {
                Some(number) => Ok(*number),
                None => self.knot().inspect(|number| {
                    nodes.insert(id, *number);
                }),
            };
            let (from, made) = number(from)
                .and_then(|from| Ok((from, number(made)?)))
                .map_err(|why| error(at, why))?;
            let is_phony =
                phony.contains(&from) || label(rest).is_some_and(|of| of.trim_ascii() == b"phony");
            self.files[made as usize].is_made |= !is_phony;
            self.comes_before(from, made).map_err(|why| error(at, why))?;
        }
        if nodes.is_empty() {
            return Err(error(0, "a graph without nodes: give what `ninja -t graph` prints"));
        }
        Ok(())
    }

    /// Adds the data base that `make -p` prints, with those of the makes within it. `source` is used in messages.
    ///
    /// # Errors
    /// If it contains no files, or too many.
    pub fn add_make(&mut self, source: &str, text: &[u8]) -> Result<(), RulesError> {
        let mut directory: &[u8] = b"";
        let (mut is_of_files, mut is_no_target) = (false, false);
        let mut last: Vec<u32> = Vec::new();
        let (mut of_this, mut is_in_order): (Vec<u32>, bool) = (Vec::new(), false);
        let before = self.files.len();
        let lines = text.split(|byte| *byte == b'\n').enumerate();
        for (at, line) in lines {
            if let Some(path) = line.strip_prefix(b"CURDIR := ") {
                directory = path;
            } else if line.starts_with(b"# Files") {
                is_of_files = true;
            } else if line.starts_with(b"# files hash-table") {
                is_of_files = false;
                for file in of_this.drain(..).filter(|_| is_in_order) {
                    self.files[file as usize].is_in_order = true;
                }
                is_in_order = false;
            }
            if !is_of_files {
                continue;
            }
            let added = if line.starts_with(b"# Not a target") {
                is_no_target = true;
                continue;
            } else if let Some(names) = line.strip_prefix(b"#  Also makes:") {
                self.also_makes(&mut last, directory, names)
            } else if HAS_RECIPE.iter().any(|words| line.starts_with(words)) {
                for file in &last {
                    self.files[*file as usize].is_made = true;
                }
                continue;
            } else if line.is_empty()
                || matches!(line[0], b'#' | b'\t')
                || std::mem::take(&mut is_no_target)
            {
                continue;
            } else {
                is_in_order |= line.starts_with(b".NOTPARALLEL:");
                self.rule(directory, line).map(|made| {
                    of_this.extend(&made);
                    last = made;
                })
            };
            added.map_err(|why| RulesError {
                name: source.to_owned(),
                line: at + 1,
                column: 1,
                message: why.to_owned(),
            })?;
        }
        if self.files.len() == before {
            return Err(RulesError {
                name: source.to_owned(),
                line: 1,
                column: 1,
                message: "no files in it: give what `make -pn` prints".to_owned(),
            });
        }
        Ok(())
    }

    /// A line `targets: what they are made from | what must be there`; returns the targets.
    fn rule(&mut self, directory: &[u8], line: &[u8]) -> Result<Vec<u32>, &'static str> {
        let Some(colon) = find(line, b":") else { return Ok(Vec::new()) };
        let (targets, from) = (&line[..colon], &line[colon + 1..]);
        // `a:: b` and `a &: b` are rules as well.
        let from = from.strip_prefix(b":").unwrap_or(from);
        let targets = targets.strip_suffix(b"&").unwrap_or(targets);
        let mut made = Vec::new();
        for target in words(targets) {
            // .PHONY and the like say something of the files, and are none.
            let is_special = target.first() == Some(&b'.')
                && target[1..].iter().all(|letter| letter.is_ascii_uppercase() || *letter == b'_');
            if !is_special {
                made.push(self.number(&absolute(directory, &target))?);
            }
        }
        if made.is_empty() {
            return Ok(made);
        }
        // What comes after .WAIT waits for what comes before it (GNU make 4.4).
        let (mut before, mut since): (Vec<u32>, Vec<u32>) = (Vec::new(), Vec::new());
        for word in words(from).filter(|word| word != b"|") {
            if word == b".WAIT" {
                before.append(&mut since);
                continue;
            }
            let from = self.number(&absolute(directory, &word))?;
            for target in &made {
                self.comes_before(from, *target)?;
            }
            for first in &before {
                self.comes_before(*first, from)?;
            }
            since.push(from);
        }
        Ok(made)
    }

    /// Files that one recipe makes together depend on each other as far as the order of commands is concerned.
    fn also_makes(
        &mut self,
        made: &mut Vec<u32>,
        directory: &[u8],
        names: &[u8],
    ) -> Result<(), &'static str> {
        for name in words(names) {
            let other = self.number(&absolute(directory, &name))?;
            for file in made.iter() {
                self.comes_before(other, *file)?;
                self.comes_before(*file, other)?;
            }
            made.push(other);
        }
        Ok(())
    }
}

fn find(text: &[u8], part: &[u8]) -> Option<usize> {
    text.windows(part.len()).position(|window| window == part)
}

/// What is in quotes at the beginning of a line, and the rest.
fn quoted(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = line.trim_ascii_start().strip_prefix(b"\"")?;
    let mut at = 0;
    loop {
        match text.get(at)? {
            b'"' => return Some((&text[..at], &text[at + 1..])),
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
}

/// The label among the attributes of a node.
fn label(attributes: &[u8]) -> Option<&[u8]> {
    let at = find(attributes, b"label=")?;
    Some(quoted(&attributes[at + b"label=".len()..])?.0)
}

fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.iter();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => out.extend(bytes.next()),
            _ => out.push(*byte),
        }
    }
    out
}

/// Words of a line of make, in which a backslash makes a space, a colon or a # a part of the name.
fn words(text: &[u8]) -> impl Iterator<Item = Vec<u8>> {
    let mut rest = text;
    std::iter::from_fn(move || {
        rest = rest.trim_ascii_start();
        let mut word = Vec::new();
        let mut at = 0;
        while let Some(byte) = rest.get(at) {
            match (byte, rest.get(at + 1)) {
                (b'\\', Some(next @ (b' ' | b':' | b'#' | b'\\'))) => {
                    word.push(*next);
                    at += 2;
                }
                (b' ' | b'\t', _) => break,
                _ => {
                    word.push(*byte);
                    at += 1;
                }
            }
        }
        rest = &rest[at.min(rest.len())..];
        (!word.is_empty()).then_some(word)
    })
}

fn absolute(directory: &[u8], name: &[u8]) -> Vec<u8> {
    let name = name.strip_prefix(b"./").unwrap_or(name);
    if name.starts_with(b"/") || directory.is_empty() {
        return name.to_vec();
    }
    let mut parts: Vec<&[u8]> = directory.split(|byte| *byte == b'/').collect();
    let mut rest = name;
    // Also of a directory next to this one, as makes within makes write it.
    while let Some(above) = rest.strip_prefix(b"../").filter(|_| parts.len() > 1) {
        parts.pop();
        rest = above;
    }
    parts.push(rest);
    parts.join(&b'/')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// As ninja 1.11 prints it.
    const DOT: &[u8] = br#"digraph ninja {
rankdir="LR"
node [fontsize=10, shape=box, height=0.25]
"0x1" [label="out/app"]
"0x2" [label="link", shape=ellipse]
"0x2" -> "0x1"
"0x3" -> "0x2" [arrowhead=none]
"0x4" -> "0x2" [arrowhead=none]
"0x3" [label="out/a.o"]
"0x5" [label="cc", shape=ellipse]
"0x5" -> "0x3"
"0x6" -> "0x5" [arrowhead=none]
"0x7" -> "0x5" [arrowhead=none style=dotted]
"0x6" [label="a.c"]
"0x7" [label="out/gen.h"]
"0x8" [label="gen", shape=ellipse]
"0x8" -> "0x7"
"0x4" [label="out/b.o"]
"0x9" -> "0x4" [label=" cc"]
"0x9" [label="b.c"]
}
"#;

    #[test]
    fn graphs_of_ninja_say_what_comes_before() {
        let mut graph = FileGraph::default();
        graph.add_dot("graph", DOT).unwrap();
        let made = |name: &str| graph.made(format!("/job/build/{name}").as_bytes(), b"/job/build");
        let (a, b, header) =
            (made("out/a.o").unwrap(), made("out/b.o").unwrap(), made("out/gen.h").unwrap());
        assert!(graph.before(&[a])[header as usize]);
        assert!(!graph.before(&[b])[header as usize]);
        let app = made("out/app").unwrap();
        assert!(graph.before(&[app])[header as usize]);
        assert_eq!(graph.direct(app), [a, b]);
        assert_eq!(graph.nearest(&[app], |file| file == header), [header]);
        assert!(graph.nearest(&[b], |file| file == header).is_empty());
        // A source is not made, and another directory has other files.
        assert_eq!(made("a.c"), None);
        assert_eq!(graph.made(b"/job/out/a.o", b"/job/build"), None);
    }

    #[test]
    fn data_bases_of_make_say_what_comes_before() {
        let recipe = "\n#  recipe to execute (from 'Makefile', line 1):\n\tx\n";
        let text = format!(
            "# GNU Make 4.3\nCURDIR := /job/sub\n# Files\n\nz: ../m/app\n#  Implicit{recipe}\
             # files hash-table stats:\nCURDIR := /job\nm/no: m/gen.h\n# Files\nall: m/app\nm/app: m/a.o m/b\\ c.o{recipe}\
             m/a.o: a.c | m/gen.h{recipe}# Not a target:\na.c:\nm/gen.h:{recipe}m/q.x: a.c\n#  Also makes: m/q.y{recipe}\
             w.all: w.a .WAIT w.b{recipe}w.a:{recipe}w.b:{recipe}side: m/app\n.PHONY: all\n# files hash-table stats:\n"
        );
        let mut graph = FileGraph::default();
        graph.add_make("database", text.as_bytes()).unwrap();
        let made = |name: &str| graph.made(name.as_bytes(), b"/elsewhere");
        let (a, header) = (made("/job/m/a.o").unwrap(), made("/job/m/gen.h").unwrap());
        assert!(graph.before(&[a])[header as usize]);
        let z = made("/job/sub/z").unwrap();
        assert!(graph.before(&[z])[a as usize] && graph.before(&[z])[header as usize]);
        let (x, y) = (made("/job/m/q.x").unwrap(), made("/job/m/q.y").unwrap());
        assert!(graph.before(&[x])[y as usize] && graph.before(&[y])[x as usize]);
        let (first, second) = (made("/job/w.a").unwrap(), made("/job/w.b").unwrap());
        assert!(
            graph.before(&[second])[first as usize] && !graph.before(&[first])[second as usize]
        );
        // Those of a makefile that runs one command at a time, and no others.
        let one_at_a_time = format!(
            "CURDIR := /x\n# Files\n.NOTPARALLEL:\nb:{recipe}# files hash-table stats:\n{text}"
        );
        let mut both = FileGraph::default();
        both.add_make("database", one_at_a_time.as_bytes()).unwrap();
        let in_order = |path: &str| both.is_in_order(both.made(path.as_bytes(), b"").unwrap());
        assert!(in_order("/x/b") && !in_order("/job/m/a.o"));
        for none in
            ["/job/a.c", "/job/.PHONY", "/job/m/no", "/job/m/b c.o", "/job/all", "/job/side"]
        {
            assert_eq!(made(none), None, "{none}");
        }
    }

    /// ninja 1.11 prints no node for a second output that nothing needs; what is phony is made by others.
    #[test]
    fn graphs_of_cmake_have_phony_edges_and_outputs_without_a_node() {
        let dot = b"digraph ninja {\n\"1\" [label=\"gen.h\"]\n\"2\" [label=\"CUSTOM_COMMAND\", shape=ellipse]\n\
            \"2\" -> \"1\"\n\"2\" -> \"3\"\n\"4\" [label=\"gen\"]\n\"1\" -> \"4\" [label=\" phony\"]\n\
            \"5\" [label=\"all\"]\n\"6\" [label=\"phony\", shape=ellipse]\n\"6\" -> \"5\"\n\"4\" -> \"6\" [arrowhead=none]\n}\n";
        let mut graph = FileGraph::default();
        graph.add_dot("g.dot", dot).unwrap();
        let made = |name: &str| graph.made(format!("/b/{name}").as_bytes(), b"/b");
        assert!(made("gen.h").is_some());
        assert_eq!((made("gen"), made("all")), (None, None));
    }

    #[test]
    fn what_is_no_graph_is_an_error_with_its_line() {
        let of = |text: &[u8]| FileGraph::default().add_dot("g.dot", text).unwrap_err().to_string();
        assert!(of(b"digraph {\n}\n").contains("without nodes"));
        assert!(of(b"digraph {\n\"a\" [label=\"x\"]\n\"a\" -> b\n").contains(":3:"));
        let of = FileGraph::default().add_make("m.txt", b"all: x\n").unwrap_err().to_string();
        assert!(of.contains("make -pn"), "{of}");
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_graph_or_an_error(text in proptest::collection::vec(any::<u8>(), 0..400)) {
            let mut graph = FileGraph::default();
            let _ = graph.add_dot("g", &text);
            let _ = graph.add_make("g", &[b"CURDIR := /x\n# Files\n", &text[..]].concat());
            let all: Vec<u32> = (0..graph.files.len()).filter_map(|at| u32::try_from(at).ok()).collect();
            prop_assert_eq!(graph.before(&all).len(), all.len());
        }
    }
}
