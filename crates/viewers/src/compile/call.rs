//! The command line of a compiler: what it compiles.

/// A call that compiles something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CompilerCall<'a> {
    /// The source files as they were given, each with its place in the command line.
    pub(super) sources: Vec<(usize, &'a [u8])>,
    /// The file that one compilation writes. That of a call which also links is no such file.
    pub(super) output: Option<&'a [u8]>,
    /// The places of files in assembler, and in Fortran, which tools that read the database do not read.
    pub(super) assembler: Vec<usize>,
    pub(super) fortran: Vec<usize>,
    /// True if arguments are in a file (`@FILE`), whose contents are not known.
    pub(super) has_response_file: bool,
}

/// Endings of source files. Preprocessed files are left out: tools that read the database do not read them.
const SOURCES: &[&[u8]] = &[
    b"c", b"cc", b"cp", b"cxx", b"cpp", b"CPP", b"c++", b"C", b"m", b"mm", b"M", b"cu", b"hip",
    b"cppm", b"ixx",
];

/// Suffixes of files that clang compiles as well, while gcc passes them to the linker.
const OF_CLANG: &[&[u8]] = &[b"CC", b"CXX", b"C++", b"MM", b"c++m", b"cxxm", b"ccm"];

const ASSEMBLER: &[&[u8]] = &[b"s", b"S", b"sx", b"asm"];

const FORTRAN: &[&[u8]] = &[
    b"f", b"for", b"ftn", b"f77", b"f90", b"f95", b"f03", b"f08", b"F", b"FOR", b"FPP", b"fpp",
    b"FTN", b"F77", b"F90", b"F95", b"F03", b"F08",
];

/// Options whose value is the next argument.
const WITH_VALUE: &[&[u8]] = &[
    b"-o",
    b"-x",
    b"-I",
    b"-D",
    b"-U",
    b"-L",
    b"-l",
    b"-A",
    b"-B",
    b"-F",
    b"-J",
    b"-T",
    b"-u",
    b"-z",
    b"-e",
    b"-include",
    b"-imacros",
    b"-isystem",
    b"-iquote",
    b"-idirafter",
    b"-iprefix",
    b"-iwithprefix",
    b"-iwithprefixbefore",
    b"-isysroot",
    b"-imultilib",
    b"-imultiarch",
    b"-iframework",
    b"-iframeworkwithsysroot",
    b"-cxx-isystem",
    b"-stdlib++-isystem",
    b"-ivfsoverlay",
    b"-include-pch",
    b"-MF",
    b"-MT",
    b"-MQ",
    b"-MJ",
    b"-target",
    b"--target",
    b"--sysroot",
    b"--param",
    b"-param",
    b"-arch",
    b"-framework",
    b"-aux-info",
    b"-dumpbase",
    b"-dumpbase-ext",
    b"-dumpdir",
    b"-gcc-toolchain",
    b"-mllvm",
    b"-Xclang",
    b"-Xpreprocessor",
    b"-Xassembler",
    b"-Xlinker",
    b"-Xarch_device",
    b"-Xarch_host",
    b"-Xcompiler",
    b"-Xptxas",
    b"-Xcudafe",
    b"-Xnvlink",
    b"-Xfatbin",
    b"-ccbin",
    b"-gencode",
    b"--generate-code",
    b"-wrapper",
    b"-specs",
    b"-plugin",
    b"-install_name",
    b"-main-file-name",
    b"--serialize-diagnostics",
    b"-serialize-diagnostics",
    b"-index-store-path",
    // The long names of GCC, which may have their value behind `=` too, and clang knows.
    b"--assert",
    b"--define-macro",
    b"--dumpbase",
    b"--dumpbase-ext",
    b"--dumpdir",
    b"--entry",
    b"--for-assembler",
    b"--for-linker",
    b"--force-link",
    b"--imacros",
    b"--include",
    b"--include-directory",
    b"--include-directory-after",
    b"--include-prefix",
    b"--include-with-prefix",
    b"--include-with-prefix-after",
    b"--include-with-prefix-before",
    b"--library-directory",
    b"--prefix",
    b"--specs",
    b"--undefine-macro",
];

/// Options with which nothing is compiled: preprocessing, dependencies alone, information, and the
/// programs that clang runs itself.
const NOT_COMPILING: &[&[u8]] = &[
    b"-E",
    b"--preprocess",
    b"-M",
    b"--dependencies",
    b"-MM",
    b"--user-dependencies",
    b"-###",
    b"-cc1",
    b"-cc1as",
    b"--version",
    b"--help",
    b"-dumpversion",
];

/// Options with which nothing is linked.
const NOT_LINKING: &[&[u8]] =
    &[b"-c", b"--compile", b"-S", b"--assemble", b"-fsyntax-only", b"-emit-llvm", b"-dc"];

impl<'a> CompilerCall<'a> {
    /// `None` if it only preprocesses, links or prints something.
    pub(super) fn of(arguments: &'a [Vec<u8>], is_of_clang: bool) -> Option<Self> {
        let mut call = Self {
            sources: Vec::new(),
            output: None,
            assembler: Vec::new(),
            fortran: Vec::new(),
            has_response_file: false,
        };
        let (mut links, mut no_more_options) = (true, false);
        let mut language = Language::ByEnding;
        let mut words = arguments.iter().map(Vec::as_slice).enumerate().skip(1);
        while let Some((at, word)) = words.next() {
            if no_more_options || !word.starts_with(b"-") || word == b"-" {
                if word.len() > 1 && word.starts_with(b"@") {
                    call.has_response_file = true;
                // Standard input is no file.
                } else if word != b"-" && !word.is_empty() {
                    call.file(at, word, language, is_of_clang);
                }
            } else if word == b"--" {
                no_more_options = true;
            } else if NOT_COMPILING.contains(&word) {
                return None;
            } else if NOT_LINKING.contains(&word) {
                links = false;
            } else if word == b"-o" || word == b"--output" {
                call.output = words.next().map(|(_, output)| output);
            } else if word == b"-x" || word == b"--language" {
                language = words.next().map_or(language, |(_, name)| Language::of(name));
            } else if let Some(name) =
                word.strip_prefix(b"--language=").or_else(|| word.strip_prefix(b"-x"))
            {
                language = Language::of(name);
            } else if let Some(output) =
                word.strip_prefix(b"--output=").or_else(|| word.strip_prefix(b"-o"))
            {
                call.output = Some(output);
            } else if WITH_VALUE.contains(&word) {
                words.next();
            }
        }
        if links || call.files().count() > 1 {
            call.output = None;
        }
        let compiles = call.files().next().is_some();
        (compiles || call.has_response_file).then_some(call)
    }

    /// The places of all files that are compiled.
    pub(super) fn files(&self) -> impl Iterator<Item = usize> {
        let sources = self.sources.iter().map(|(at, _)| *at);
        sources.chain(self.assembler.iter().copied()).chain(self.fortran.iter().copied())
    }

    fn file(&mut self, at: usize, path: &'a [u8], language: Language, is_of_clang: bool) {
        let ending = ending(path);
        let is = |endings: &[&[u8]]| ending.is_some_and(|ending| endings.contains(&ending));
        match language {
            Language::Other if !is_linked(path) => {}
            Language::Given if !is_linked(path) => self.sources.push((at, path)),
            Language::Assembler if !is_linked(path) => self.assembler.push(at),
            Language::Fortran if !is_linked(path) => self.fortran.push(at),
            _ if is(SOURCES) || is_of_clang && is(OF_CLANG) => self.sources.push((at, path)),
            _ if is(ASSEMBLER) => self.assembler.push(at),
            _ if is(FORTRAN) => self.fortran.push(at),
            _ => {}
        }
    }
}

/// The language in which files are compiled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Language {
    ByEnding,
    /// One that tools read, whatever the ending.
    Given,
    Assembler,
    Fortran,
    /// Headers, preprocessed files and others that no tool could read by themselves.
    Other,
}

impl Language {
    /// `-x NAME`
    fn of(name: &[u8]) -> Self {
        match name {
            b"none" => Self::ByEnding,
            b"assembler" | b"assembler-with-cpp" => Self::Assembler,
            b"f77" | b"f77-cpp-input" | b"f95" | b"f95-cpp-input" => Self::Fortran,
            b"ir" | b"ada" | b"d" | b"go" => Self::Other,
            _ if name.ends_with(b"-header") || name.ends_with(b"cpp-output") => Self::Other,
            _ => Self::Given,
        }
    }
}

fn ending(path: &[u8]) -> Option<&[u8]> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let at = name.iter().rposition(|byte| *byte == b'.')?;
    Some(&name[at + 1..])
}

fn is_linked(path: &[u8]) -> bool {
    ending(path).is_some_and(|ending| [&b"o"[..], b"a", b"so", b"lo", b"la"].contains(&ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(words: &str) -> Option<(String, Option<String>)> {
        let words: Vec<Vec<u8>> = words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        let call = CompilerCall::of(&words, words[0].starts_with(b"clang"))?;
        let sources: Vec<String> = call.sources.iter().map(|(_, source)| text(source)).collect();
        (!sources.is_empty()).then_some((sources.join(" "), call.output.map(text)))
    }

    #[test]
    fn what_is_compiled_is_found() {
        let found = |sources: &str, output: Option<&str>| {
            Some((sources.to_owned(), output.map(str::to_owned)))
        };
        assert_eq!(call("gcc -c x.c"), found("x.c", None));
        assert_eq!(call("gcc -c x.c -o y.o"), found("x.c", Some("y.o")));
        assert_eq!(call("gcc -oy.o -c x.c"), found("x.c", Some("y.o")));
        assert_eq!(call("g++ -include a.cpp -MF d.c -c dir/x.cc"), found("dir/x.cc", None));
        assert_eq!(call("gcc -MMD -MD -S x.c -o x.s"), found("x.c", Some("x.s")));
        assert_eq!(call("gcc a.c b.o c.cpp -lm -o prog"), found("a.c c.cpp", None));
        assert_eq!(call("gcc -c a.c b.c"), found("a.c b.c", None));
        assert_eq!(call("gcc -x c -c file"), found("file", None));
        assert_eq!(call("gcc -xc++ a -x none b"), found("a", None));
        assert_eq!(call("clang -fsyntax-only -- -x.c"), found("-x.c", None));
        assert_eq!(call("gcc --include two.c -c one.c"), found("one.c", None));
        assert_eq!(call("gcc --define-macro Q=two.c --compile one.c"), found("one.c", None));
        assert_eq!(call("gcc --compile --output=x.o one.c"), found("one.c", Some("x.o")));
        assert_eq!(call("gcc --assemble --output x.s one.c"), found("one.c", Some("x.s")));
        assert_eq!(call("gcc --language=c --compile file"), found("file", None));
        assert_eq!(call("clang++ -c x.CC"), found("x.CC", None));
        assert_eq!(call("gcc -c x.s y.c"), found("y.c", None));
        assert_eq!(call("nvcc -gencode arch=a,code=b -c k.cu"), found("k.cu", None));
    }

    #[test]
    fn what_compiles_nothing_is_left_out() {
        for words in [
            "gcc",
            "gcc --version",
            "gcc a.o b.o -o prog",
            "gcc -E x.c",
            "gcc -M x.c",
            "gcc -MM x.c",
            "gcc -c -",
            "gcc -E -",
            "clang -cc1 x.c",
            "gcc -### -c x.c",
            "gcc @all",
            "gcc -c x.s",
            "gcc -x c-header x.h",
            "gcc -o",
            "gcc -x",
            "gcc -c x.S",
            "gcc -o x.c",
            "gcc --preprocess x.c",
            "gcc --dependencies x.c",
            "gcc --include x.c",
            "g++ -c x.CC",
            "gcc -x assembler x.c",
            "gcc -c x.f90",
        ] {
            assert_eq!(call(words), None, "{words}");
        }
    }

    #[test]
    fn what_no_tool_reads_is_counted() {
        let counted = |words: &str| {
            let words: Vec<Vec<u8>> =
                words.split(' ').map(|word| word.as_bytes().to_vec()).collect();
            CompilerCall::of(&words, false)
                .map(|call| (call.sources.len(), call.assembler.len(), call.fortran.len()))
        };
        assert_eq!(counted("gcc -c a.s b.S c.c d.f90"), Some((1, 2, 1)));
        assert_eq!(counted("gcc -x f95 -c a -x none b.c"), Some((1, 0, 1)));
        assert_eq!(counted("gcc a.o"), None);
    }
}
