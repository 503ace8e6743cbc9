//! Tests of what others put in the way of a file: as root, with a second user in a process of its
//! own.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};

use proctrace_outputs::{Access, OutputError, Outputs, Owner, Specials};
use tempfile::TempDir;

/// nobody.
const OTHER: u32 = 65_534;

/// A directory that all may write to, and one that only root may.
struct Scene {
    directory: TempDir,
}

impl Scene {
    fn new() -> Self {
        assert!(rustix::process::geteuid().is_root(), "run it as root: cargo xtask test");
        let directory = tempfile::tempdir().unwrap();
        open_to_all(directory.path());
        let scene = Self { directory };
        for (name, is_open) in [("shared", true), ("private", false)] {
            fs::create_dir(scene.at(name)).unwrap();
            if is_open {
                open_to_all(&scene.at(name));
            }
        }
        scene
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Runs a script of the other user, by a shell.
    fn other(&self, script: &str) {
        use std::os::unix::process::CommandExt;
        let mut shell = std::process::Command::new("sh");
        shell.args(["-ec", script]).current_dir(self.at("shared")).gid(OTHER).uid(OTHER);
        assert!(shell.status().unwrap().success(), "{script}");
    }
}

fn open_to_all(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
}

fn root() -> Outputs {
    Outputs::of_this_process()
}

fn write(outputs: &Outputs, path: &Path) -> Result<(), OutputError> {
    outputs.write(path, Access::Owner, Specials::Asked, b"secret")
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).unwrap();
    let mut names: Vec<String> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn a_file_is_new_whatever_had_its_name() {
    let scene = Scene::new();
    let path = scene.at("shared/out");
    write(&root(), &path).unwrap();
    fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
    let before = fs::metadata(&path).unwrap();
    let mut opened = fs::File::open(&path).unwrap();
    root().write(&path, Access::Owner, Specials::Asked, b"new").unwrap();
    let after = fs::metadata(&path).unwrap();
    assert_ne!(before.ino(), after.ino());
    assert_eq!((after.uid(), after.mode() & 0o7777), (0, 0o600));
    let mut seen = String::new();
    std::io::Read::read_to_string(&mut opened, &mut seen).unwrap();
    assert_eq!(seen, "secret");
    assert_eq!(names(&scene.at("shared")), ["out"]);
}

#[test]
fn what_another_user_has_put_there_is_refused() {
    let scene = Scene::new();
    let victim = scene.at("private/victim");
    fs::write(&victim, "precious").unwrap();
    scene.other(
        ": > file; mkfifo fifo; ln -s ../private/victim link; ln -s ../private/new dangling; \
                 ln -s ../private place; chmod 666 file fifo",
    );
    for name in ["file", "fifo", "link", "dangling", "place/victim", "place/new"] {
        let path = scene.at("shared").join(name);
        let failed = write(&root(), &path).unwrap_err();
        let is_refused = matches!(
            failed,
            OutputError::Foreign { uid: OTHER, .. }
                | OutputError::Link { uid: OTHER }
                | OutputError::Component { uid: OTHER, .. }
        );
        assert!(is_refused, "{name}: {failed:?}");
        // Adding to it, and creating directories behind it, is refused as well.
        assert!(root().append(&path, Access::Owner, false).is_err(), "{name}");
    }
    assert!(root().create_directory(&scene.at("shared/place/new"), Access::Owner).is_err());
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(names(&scene.at("private")), ["victim"]);
    assert_eq!(fs::metadata(scene.at("shared/file")).unwrap().len(), 0);
    // Under sudo, these are the files of who asks for it; a link is followed by nobody.
    let owner = Owner { uid: OTHER, gid: OTHER };
    let invoked = root().owned_by(owner);
    write(&invoked, &scene.at("shared/file")).unwrap();
    let file = fs::metadata(scene.at("shared/file")).unwrap();
    assert_eq!((file.uid(), file.gid(), file.mode() & 0o7777), (OTHER, OTHER, 0o600));
    assert!(matches!(write(&invoked, &scene.at("shared/link")), Err(OutputError::Link { .. })));
}

#[test]
fn another_name_of_a_file_is_not_written_through() {
    let scene = Scene::new();
    let victim = scene.at("private/victim");
    fs::write(&victim, "precious").unwrap();
    // As the other user could, with fs.protected_hardlinks = 0.
    fs::hard_link(&victim, scene.at("shared/out")).unwrap();
    let failed = root().append(&scene.at("shared/out"), Access::Owner, true).unwrap_err();
    assert!(matches!(failed, OutputError::Linked), "{failed:?}");
    write(&root(), &scene.at("shared/out")).unwrap();
    assert_eq!(fs::read(&victim).unwrap(), b"precious");
    assert_eq!(fs::read(scene.at("shared/out")).unwrap(), b"secret");
}

#[test]
fn a_directory_that_is_swapped_meanwhile_leads_nowhere_else() {
    let scene = Scene::new();
    scene.other("mkdir place; chmod 777 place");
    let path = scene.at("shared/place/out");
    let mut file = root().create(&path, Access::Owner, Specials::Refused).unwrap();
    file.write_all(b"secret").unwrap();
    scene.other("mv place moved; ln -s ../private place");
    file.commit().unwrap();
    assert!(names(&scene.at("private")).is_empty());
    assert_eq!(names(&scene.at("shared/moved")), ["out"]);
    // And it is removed where it is, if it is not completed.
    let moved = scene.at("shared/moved/other");
    let file = root().create(&moved, Access::Owner, Specials::Refused).unwrap();
    scene.other("mv moved again");
    drop(file);
    assert_eq!(names(&scene.at("shared/again")), ["out"]);
}

#[test]
fn a_new_file_that_is_replaced_before_it_has_its_name_is_an_error() {
    let scene = Scene::new();
    let path = scene.at("shared/out");
    let file = root().create(&path, Access::Owner, Specials::Refused).unwrap();
    let part = file.path().file_name().unwrap().to_str().unwrap().to_owned();
    scene.other(&format!("rm -f {part}; echo forged > {part}"));
    assert!(matches!(file.commit(), Err(OutputError::Replaced)));
    assert!(!path.exists());
}

#[test]
fn an_earlier_file_is_kept_but_not_over_what_is_another_users() {
    let scene = Scene::new();
    let path = scene.at("shared/out");
    write(&root(), &path).unwrap();
    for planted in
        ["ln -s ../private/victim out.old", ": > out.old", "mkdir out.old", "mkfifo out.old"]
    {
        scene.other(planted);
        let mut file = root().create(&path, Access::Owner, Specials::Asked).unwrap();
        let failed = file.keep_earlier(".old").unwrap_err();
        assert!(matches!(failed, OutputError::Unkept { .. }), "{planted}: {failed:?}");
        drop(file);
        scene.other("rm -rf out.old");
    }
    // What is put there after it was looked at is not replaced either.
    let mut file = root().create(&path, Access::Owner, Specials::Asked).unwrap();
    file.keep_earlier(".old").unwrap();
    scene.other(": > out.old");
    assert!(file.publish().is_err());
    drop(file);
    assert_eq!(names(&scene.at("shared")), ["out", "out.old"]);
    assert_eq!(fs::read(&path).unwrap(), b"secret");
}

#[test]
fn links_of_root_lead_to_directories_but_are_not_written_through() {
    let scene = Scene::new();
    fs::create_dir(scene.at("private/real")).unwrap();
    symlink("private/./real", scene.at("to")).unwrap();
    symlink(scene.at("to"), scene.at("absolute")).unwrap();
    write(&root(), &scene.at("absolute/../real/out")).unwrap();
    assert_eq!(fs::read(scene.at("private/real/out")).unwrap(), b"secret");
    symlink("out", scene.at("private/real/link")).unwrap();
    let failed = write(&root(), &scene.at("to/link")).unwrap_err();
    assert!(matches!(failed, OutputError::Link { uid: 0 }), "{failed:?}");
    symlink("loop", scene.at("loop")).unwrap();
    assert!(write(&root(), &scene.at("loop/out")).is_err());
    let made = root().create_directory(&scene.at("to/a/b"), Access::Owner).unwrap();
    made.write("c", Access::Umask, b"x").unwrap();
    assert_eq!(fs::metadata(scene.at("private/real/a/b")).unwrap().mode() & 0o7777, 0o700);
    for wrong in ["", ".", "..", "a/b", "/a"] {
        assert!(made.write(wrong, Access::Umask, b"x").is_err(), "{wrong}");
    }
}

#[test]
fn devices_and_own_pipes_are_written_to_if_they_are_asked_for() {
    let scene = Scene::new();
    assert!(write(&root(), Path::new("/dev/null")).is_ok());
    let full = write(&root(), Path::new("/dev/full")).unwrap_err();
    assert!(
        matches!(&full, OutputError::Io(error) if error.raw_os_error() == Some(28)),
        "{full:?}"
    );
    let derived = root().create(Path::new("/dev/null"), Access::Owner, Specials::Refused);
    assert!(matches!(derived, Err(OutputError::NoFile(_))));
    let fifo = scene.at("shared/fifo");
    nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::read(fifo).unwrap())
    };
    write(&root(), &fifo).unwrap();
    assert_eq!(reader.join().unwrap(), b"secret");
    assert!(matches!(write(&root(), &fifo), Err(OutputError::Unread)));
    chown(&fifo, Some(OTHER), Some(OTHER)).unwrap();
    assert!(matches!(write(&root(), &fifo), Err(OutputError::Foreign { what: "FIFO", .. })));
}
