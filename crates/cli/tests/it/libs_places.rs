//! Searches where paths lead elsewhere: other roots, mount namespaces and file systems, set-user-ID programs,
//! another C library. Each is a real start, and its declared look-ups are the reference.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::{Events, Recorder, fixture, proctrace, text, u64_of};
use proctrace_fixtures::libraries::{DIRECTORIES, LIBRARIES, Libraries, PLAIN_MISSES};
use serde_json::Value;

fn ran(command: &mut Command) -> String {
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn libs(trace: &Path) -> Value {
    serde_json::from_str(&ran(proctrace().args(["libs", "--json"]).arg(trace))).unwrap()
}

/// Every start is modelled, every predicted look-up recorded, and none unexplained; returns their number.
fn explained(found: &Value) -> u64 {
    assert_eq!(found["predicted_library_misses"], found["confirmed_library_misses"], "{found:#}");
    assert_eq!(found["unexplained_library_misses"], 0, "{found:#}");
    assert_eq!(found["starts_not_modelled"], 0, "{found:#}");
    u64_of(&found["confirmed_library_misses"])
}

fn misses_of_kind(found: &Value, kind: &str) -> u64 {
    let causes = found["causes"].as_array().unwrap().iter();
    causes.filter(|cause| cause["kind"] == kind).map(|cause| u64_of(&cause["misses"])).sum()
}

/// Copies a file to the same path below a root.
fn take_along(root: &Path, file: &str) {
    let to = root.join(file.trim_start_matches('/'));
    fs::create_dir_all(to.parent().unwrap()).unwrap();
    fs::copy(file, to).unwrap();
}

/// The files that ldd(1) names: libraries and the dynamic linker.
fn needed(program: &Path) -> Vec<String> {
    let words = ran(Command::new("ldd").arg(program).env_remove("LD_LIBRARY_PATH"));
    words.split_whitespace().filter(|word| word.starts_with('/')).map(str::to_owned).collect()
}

/// Question of a site: a directory that is a link into another file system.
#[test]
fn symbolic_links_lead_to_the_file_system_behind_them() {
    let place = tempfile::tempdir().unwrap();
    let link = place.path().join("link");
    std::os::unix::fs::symlink("/proc/self", &link).unwrap();
    let paths: Vec<PathBuf> = (0..3).map(|n| link.join(format!("none{n}"))).collect();
    let recorded = Recorder::new()
        .run(["cat".as_ref()].into_iter().chain(paths.iter().map(|path| path.as_os_str())));
    recorded.sound(1);
    let found = libs(&recorded.trace());
    let systems = found["file_systems"].as_array().unwrap();
    let is_open = |system: &&Value| system["fs_type"] == "proc" && system["call"] == "open";
    assert_eq!(systems.iter().find(is_open).unwrap()["misses"], 3, "{found:#}");
}

mod root {
    use super::*;

    #[test]
    fn a_program_below_another_root_is_modelled_with_its_files() {
        let root = tempfile::tempdir().unwrap();
        let inside = root.path().join("job");
        fs::create_dir(&inside).unwrap();
        let made = Libraries::make(&inside, &[]);
        for file in needed(Path::new("/bin/true")) {
            take_along(root.path(), &file);
        }
        let recorded = Recorder::new()
            .env("LD_LIBRARY_PATH", &Libraries::list(Path::new("/job")))
            .run(["chroot".as_ref(), root.path().as_os_str(), "/job/program".as_ref()]);
        recorded.sound(0);
        let places: Vec<String> = Events::of(&recorded.trace())
            .kind("place")
            .map(|place| text(&place["root"]).to_owned())
            .collect();
        assert_eq!(places, ["/".to_owned(), root.path().display().to_string()]);
        let found = libs(&recorded.trace());
        let misses = explained(&found);
        assert!(misses > (PLAIN_MISSES + DIRECTORIES) as u64, "{found:#}");
        assert_eq!(u64_of(&found["starts"]), 2);
        assert!(made.library(LIBRARIES - 1).exists());
    }

    /// The program of the fixture, which finds its libraries in directories that exist only in the mount
    /// namespace in which it ran.
    #[test]
    fn a_bind_mount_of_a_namespace_that_has_gone_is_followed() {
        let place = tempfile::tempdir().unwrap();
        let made = place.path().join("made");
        let mounted = place.path().join("mounted");
        fs::create_dir(&made).unwrap();
        fs::create_dir(&mounted).unwrap();
        let made_program = Libraries::make(&made, &[]).program();
        let script = "mount --bind \"$1\" \"$2\" && export LD_LIBRARY_PATH=\"$3\" && \"$2/program\" && \
                      exec sleep 0.5";
        // The table of mounts is read while the namespace is there.
        let recorded = Recorder::new().option(["--interval", "20ms"]).run([
            "unshare".as_ref(),
            "--mount".as_ref(),
            "sh".as_ref(),
            "-c".as_ref(),
            script.as_ref(),
            "sh".as_ref(),
            made.as_os_str(),
            mounted.as_os_str(),
            Libraries::list(&mounted).as_ref(),
        ]);
        recorded.sound(0);
        let found = libs(&recorded.trace());
        assert!(explained(&found) > (PLAIN_MISSES + DIRECTORIES) as u64, "{found:#}");
        let in_namespace = mounted.join("program").display().to_string();
        let programs = found["programs"].as_array().unwrap();
        let program =
            programs.iter().find(|program| text(&program["exe"]) == in_namespace).unwrap();
        // The same start in our own namespace, with the real directories.
        let plain =
            Recorder::new().env("LD_LIBRARY_PATH", &Libraries::list(&made)).run([made_program]);
        assert_eq!(u64_of(&program["misses"]), explained(&libs(&plain.trace())));
        let systems = found["file_systems"].as_array().unwrap();
        let point = mounted.display().to_string();
        assert!(systems.iter().any(|system| system["mount_point"] == point), "{found:#}");
    }

    /// A file system whose look-ups take two milliseconds each: the time is measured, and belongs to it.
    #[test]
    fn a_slow_file_system_is_named_with_what_it_costs() {
        const LOOKUPS: u64 = 400;
        const MS: u64 = 2;
        let place = tempfile::tempdir().unwrap();
        let script =
            "i=0; while [ $i -lt \"$2\" ]; do [ -e \"$1/x$i\" ]; i=$((i + 1)); done; exit 0";
        let directory = place.path().display().to_string();
        let recorded = Recorder::new().run([
            fixture("slow_fs").as_os_str(),
            directory.as_ref(),
            MS.to_string().as_ref(),
            "sh".as_ref(),
            "-c".as_ref(),
            script.as_ref(),
            "sh".as_ref(),
            directory.as_ref(),
            LOOKUPS.to_string().as_ref(),
        ]);
        assert_eq!(recorded.code(), 0, "{}", recorded.stderr());
        let found = libs(&recorded.trace());
        let systems = found["file_systems"].as_array().unwrap();
        let slow = systems.iter().find(|system| system["fs_type"] == "fuse.slow").unwrap();
        assert_eq!((&slow["source"], text(&slow["mount_point"])), (&"slow".into(), &*directory));
        assert_eq!(
            (&slow["misses"], &slow["processes"]),
            (&LOOKUPS.into(), &1.into()),
            "{found:#}"
        );
        assert!(["stat", "access"].contains(&text(&slow["call"])), "{slow:#}");
        // None can have taken less than the file system sleeps.
        assert!(u64_of(&slow["cost"]["total_ns"]) >= LOOKUPS * MS * 1_000_000, "{found:#}");
        assert!(u64_of(&slow["cost"]["timed"]) < LOOKUPS / 4, "{found:#}");
    }

    #[test]
    fn a_set_user_id_program_pays_for_no_list() {
        let place = tempfile::tempdir().unwrap();
        // A directory for temporary files may be mounted nosuid.
        let (program, status) =
            (place.path().join("true"), "chown nobody \"$1\" && chmod u+s \"$1\"");
        fs::copy("/bin/true", &program).unwrap();
        ran(Command::new("chmod").arg("755").arg(place.path()));
        ran(Command::new("sh").args(["-c", status, "sh"]).arg(&program));
        let misses = |program: &Path| {
            let recorded =
                Recorder::new().env("LD_LIBRARY_PATH", "/no/such/directory").run([program]);
            let events = recorded.sound(0);
            let secure = events.kind("exec").any(|exec| exec["secure"] == true);
            let found = libs(&recorded.trace());
            (secure, explained(&found), misses_of_kind(&found, "LD_LIBRARY_PATH"))
        };
        assert_eq!(misses(&program), (true, 0, 0));
        let (secure, all, of_list) = misses(Path::new("/bin/true"));
        assert!(!secure && all == of_list && all > 0, "{secure} {all} {of_list}");
    }

    /// musl searches without sub-directories and without asking for directories.
    #[test]
    fn another_c_library_is_searched_as_it_does_itself() {
        let root = tempfile::tempdir().unwrap();
        let at = |path: &str| root.path().join(path);
        fs::create_dir_all(at("a")).unwrap();
        fs::create_dir_all(at("b")).unwrap();
        fs::write(at("one.c"), "int one(void) { return 0; }\n").unwrap();
        fs::write(at("main.c"), "int one(void); int main(void) { return one(); }\n").unwrap();
        let musl = |arguments: &[&str]| {
            ran(Command::new("musl-gcc").args(arguments).current_dir(root.path()));
        };
        musl(&["-shared", "-fPIC", "-Wl,-soname,libone.so", "one.c", "-o", "b/libone.so"]);
        musl(&["main.c", "b/libone.so", "-o", "program"]);
        let linker = ran(Command::new("sh").args(["-c", "echo /lib/ld-musl-*.so.1"]));
        let linker = linker.trim();
        fs::create_dir_all(at("lib")).unwrap();
        fs::copy(fs::canonicalize(linker).unwrap(), at(linker.trim_start_matches('/'))).unwrap();
        let recorded = Recorder::new().env("LD_LIBRARY_PATH", "/none:/a:/b").run([
            "chroot".as_ref(),
            root.path().as_os_str(),
            "/program".as_ref(),
        ]);
        recorded.sound(0);
        let found = libs(&recorded.trace());
        explained(&found);
        let programs = found["programs"].as_array().unwrap();
        let program = programs.iter().find(|program| program["exe"] == "/program").unwrap();
        assert_eq!((&program["starts"], &program["misses"]), (&1.into(), &2.into()), "{found:#}");
    }
}
