//! Files that are written, for any user.

use std::fs;
use std::io::Write;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use proctrace_outputs::{Access, Outputs, Specials};

#[test]
fn files_are_whole_or_not_there() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name);
    let outputs = Outputs::of_this_process();
    let names = || fs::read_dir(directory.path()).unwrap().count();
    let mut file = outputs.create(&at("out"), Access::Owner, Specials::Asked).unwrap();
    file.write_all(b"half").unwrap();
    assert!(!at("out").exists() && names() == 1);
    drop(file);
    assert_eq!(names(), 0);
    outputs.write(&at("out"), Access::Owner, Specials::Asked, b"first").unwrap();
    assert_eq!(fs::metadata(at("out")).unwrap().mode() & 0o7777, 0o600);
    let mut file = outputs.create(&at("out"), Access::Owner, Specials::Asked).unwrap();
    file.keep_earlier(".old").unwrap();
    file.write_all(b"second").unwrap();
    assert_eq!(file.commit().unwrap(), Some(at("out.old")));
    assert_eq!(fs::read(at("out")).unwrap(), b"second");
    assert_eq!(fs::read(at("out.old")).unwrap(), b"first");
    // Nothing is kept of what is empty.
    fs::write(at("empty"), "").unwrap();
    let mut file = outputs.create(&at("empty"), Access::Owner, Specials::Asked).unwrap();
    file.keep_earlier(".old").unwrap();
    assert_eq!(file.commit().unwrap(), None);
    let mut added = outputs.append(&at("log"), Access::Umask, false).unwrap();
    added.write_all(b"a").unwrap();
    let mut added = outputs.append(&at("log"), Access::Umask, false).unwrap();
    added.write_all(b"b").unwrap();
    assert_eq!(fs::read(at("log")).unwrap(), b"ab");
    // Paths are said as they were given.
    let here = outputs.create(Path::new("here"), Access::Owner, Specials::Asked).unwrap();
    assert_eq!(here.final_path(), Path::new("here"));
    for wrong in ["", ".", "out/", "none/out"] {
        assert!(outputs.create(&at(wrong), Access::Owner, Specials::Asked).is_err(), "{wrong}");
    }
    let long = "x".repeat(255);
    outputs.write(&at(&long), Access::Owner, Specials::Asked, b"x").unwrap();
}
