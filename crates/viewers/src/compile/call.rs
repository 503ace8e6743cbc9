//! The command line of a compiler: what it compiles.

/// A call that compiles something.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Call<'a> {
    /// The source files, as they were given.
    pub(super) sources: Vec<&'a [u8]>,
    /// The file that one compilation writes. That of a call which also links is no such file.
    pub(super) output: Option<&'a [u8]>,
}

/// Endings of source files. Assembler and preprocessed files are left out: tools that read the
/// database read neither.
const SOURCES: &[&[u8]] = &[
    b"c", b"cc", b"cp", b"cxx", b"cpp", b"CPP", b"c++", b"C", b"m", b"mm", b"M", b"cu", b"hip",
    b"cppm", b"ixx",
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
];

/// Options with which nothing is compiled: preprocessing, dependencies alone, information, and the
/// programs that clang runs itself.
const NOT_COMPILING: &[&[u8]] =
    &[b"-E", b"-M", b"-MM", b"-###", b"-cc1", b"-cc1as", b"--version", b"--help", b"-dumpversion"];

/// Options with which nothing is linked.
const NOT_LINKING: &[&[u8]] = &[b"-c", b"-S", b"-fsyntax-only", b"-emit-llvm", b"-dc"];

impl<'a> Call<'a> {
    /// `None` if it only preprocesses, links or prints something.
    pub(super) fn of(arguments: &'a [Vec<u8>]) -> Option<Self> {
        let mut call = Self { sources: Vec::new(), output: None };
        let (mut links, mut language_is_given, mut no_more_options) = (true, false, false);
        let mut words = arguments.iter().map(Vec::as_slice).skip(1);
        while let Some(word) = words.next() {
            if no_more_options || !word.starts_with(b"-") || word == b"-" {
                // Standard input is no file, and what a response file contains is not known.
                let is_file = word != b"-" && !word.starts_with(b"@") && !word.is_empty();
                if is_file && (is_source(word) || (language_is_given && !is_linked(word))) {
                    call.sources.push(word);
                }
            } else if word == b"--" {
                no_more_options = true;
            } else if NOT_COMPILING.contains(&word) {
                return None;
            } else if NOT_LINKING.contains(&word) {
                links = false;
            } else if word == b"-o" {
                call.output = words.next();
            } else if word == b"-x" {
                language_is_given = words.next().is_some_and(is_language);
            } else if let Some(language) = word.strip_prefix(b"-x") {
                language_is_given = is_language(language);
            } else if let Some(output) = word.strip_prefix(b"-o") {
                call.output = Some(output);
            } else if WITH_VALUE.contains(&word) {
                words.next();
            }
        }
        if links || call.sources.len() > 1 {
            call.output = None;
        }
        (!call.sources.is_empty()).then_some(call)
    }
}

/// Whether files are compiled whatever their ending. Headers and assembler files are none that a
/// tool could read by themselves.
fn is_language(name: &[u8]) -> bool {
    let left_out = [&b"none"[..], b"assembler", b"assembler-with-cpp", b"ir"];
    !left_out.contains(&name) && !name.ends_with(b"-header") && !name.ends_with(b"cpp-output")
}

fn ending(path: &[u8]) -> Option<&[u8]> {
    let name = path.rsplit(|byte| *byte == b'/').next()?;
    let at = name.iter().rposition(|byte| *byte == b'.')?;
    Some(&name[at + 1..])
}

fn is_source(path: &[u8]) -> bool {
    ending(path).is_some_and(|ending| SOURCES.contains(&ending))
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
        let call = Call::of(&words)?;
        let sources: Vec<String> = call.sources.iter().map(|source| text(source)).collect();
        Some((sources.join(" "), call.output.map(text)))
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
        ] {
            assert_eq!(call(words), None, "{words}");
        }
    }
}
