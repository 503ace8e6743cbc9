//! Packages of a release, made of a small program: installed, run, and the same bytes at each time.

#![expect(clippy::unwrap_used, reason = "a test")]

use std::fs;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use xtask::contents::{licences, sbom};
use xtask::statement::{self, Build};

const VERSION: &str = "1.2.3";

/// A folder like target/dist/package, whose programs print their name.
fn package(folder: &Path) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    for directory in ["bin", "man/man1", "completions", "lib/systemd/system"] {
        fs::create_dir_all(folder.join(directory)).unwrap();
    }
    for program in ["proctrace", "proctrace-recorder", "proctrace-broker"] {
        let path = folder.join("bin").join(program);
        fs::write(&path, format!("#!/bin/sh\necho {program}: \"$@\"\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    fs::write(folder.join("man/man1/proctrace.1"), ".TH proctrace 1\n").unwrap();
    for name in ["proctrace", "proctrace-recorder"] {
        for file in [format!("{name}.bash"), format!("_{name}"), format!("{name}.fish")] {
            fs::write(folder.join("completions").join(file), "# nothing\n").unwrap();
        }
    }
    for unit in fs::read_dir(root.join("crates/broker/systemd")).unwrap() {
        let unit = unit.unwrap();
        fs::copy(unit.path(), folder.join("lib/systemd/system").join(unit.file_name())).unwrap();
    }
    for text in
        ["README.md", "CHANGELOG.md", "LICENSE-APACHE", "LICENSE-MIT", "bpf/LICENSE-GPL-2.0"]
    {
        let name = Path::new(text).file_name().unwrap();
        fs::copy(root.join(text), folder.join(name)).unwrap();
    }
    fs::write(folder.join(licences::FILE), "Terms of a part:\n").unwrap();
    fs::write(folder.join(sbom::FILE), "{}\n").unwrap();
}

/// What a command prints; it must succeed.
fn said(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {told}");
    String::from_utf8(output.stdout).unwrap()
}

/// Makes the package twice, by a script of packaging/; returns its path.
fn built(script: &str, folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let build = |out: &str| {
        let mut command = Command::new(root.join("packaging").join(script));
        command.env("SOURCE_DATE_EPOCH", "1700000000");
        let path = said(command.arg(folder.join("package")).arg(VERSION).arg(folder.join(out)));
        PathBuf::from(path.trim_end())
    };
    let (one, other) = (build("one"), build("other"));
    assert!(fs::read(&one).unwrap() == fs::read(&other).unwrap(), "{script} gives other bytes");
    one
}

#[test]
fn a_debian_package_has_all_that_it_should() {
    if !xtask::run::exists("dpkg-deb") {
        // Other systems make packages of their own.
        assert!(!Path::new("/etc/debian_version").exists(), "dpkg-deb is missing");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    package(&folder.path().join("package"));
    let deb = built("deb/build", folder.path());
    let root = folder.path().join("root");
    said(Command::new("dpkg-deb").arg("--extract").arg(&deb).arg(&root));
    let at = |path: &str| root.join(path);
    let program = said(Command::new(at("usr/bin/proctrace")).arg("report"));
    assert_eq!(program, "proctrace: report\n");
    for path in [
        "usr/bin/proctrace-recorder",
        "usr/lib/systemd/system/proctrace-broker.socket",
        "usr/lib/sysusers.d/proctrace.conf",
        "usr/share/man/man1/proctrace.1.gz",
        "usr/share/bash-completion/completions/proctrace",
        "usr/share/doc/proctrace/copyright",
        "usr/share/doc/proctrace/proctrace.cdx.json",
        "usr/share/doc/proctrace/THIRD-PARTY-LICENSES.txt.gz",
        "usr/share/proctrace/proctrace-ci",
    ] {
        assert!(at(path).is_file(), "{path} is missing");
    }
    // The units name the program where it is.
    let unit = fs::read_to_string(at("usr/lib/systemd/system/proctrace-broker.service")).unwrap();
    assert!(unit.contains("ExecStart=/usr/bin/proctrace broker\n"), "{unit}");
    let fields = said(Command::new("dpkg-deb").arg("--field").arg(&deb));
    assert!(fields.contains("Package: proctrace\n"), "{fields}");
    assert!(fields.contains(&format!("Version: {VERSION}\n")), "{fields}");
    let owners = said(Command::new("dpkg-deb").arg("--contents").arg(&deb));
    assert!(owners.lines().all(|line| line.contains(" root/root ")), "{owners}");
}

#[test]
fn an_rpm_has_all_that_it_should() {
    if !xtask::run::exists("rpmbuild") {
        // `cargo xtask test` installs it; without root nothing is. Shown by nextest, past the capture of tests:
        let _ = writeln!(std::io::stderr(), "packaging/rpm was not tested: there is no rpmbuild");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    package(&folder.path().join("package"));
    let rpm = built("rpm/build", folder.path());
    let asked = |question: &str| {
        said(Command::new("rpm").args(["--query", "--package", question]).arg(&rpm))
    };
    let files = asked("--list");
    for path in [
        "/usr/bin/proctrace-recorder",
        "/usr/lib/systemd/system/proctrace-broker.socket",
        "/usr/lib/sysusers.d/proctrace.conf",
        "/usr/share/man/man1/proctrace.1.gz",
        "/usr/share/bash-completion/completions/proctrace",
        "/usr/share/doc/proctrace/proctrace.cdx.json",
        "/usr/share/licenses/proctrace/THIRD-PARTY-LICENSES.txt",
        "/usr/share/proctrace/proctrace-ci",
    ] {
        assert!(files.lines().any(|file| file == path), "{path} is missing: {files}");
    }
    let about = asked("--info");
    assert!(about.contains(&format!("Version     : {VERSION}\n")), "{about}");
    let scripts = asked("--scripts");
    assert!(!scripts.contains("systemctl enable") && !scripts.contains("setcap"), "{scripts}");
    let owners = said(Command::new("rpm").args(["--query", "--package", "--dump"]).arg(&rpm));
    assert!(owners.lines().all(|line| line.contains(" root root ")), "{owners}");
}

/// On whatever machine they are made.
#[test]
fn packages_are_of_the_architecture_that_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let package_folder = folder.path().join("package");
    package(&package_folder);
    let made = |script: &str, architecture: &str| {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut command = Command::new(root.join("packaging").join(script));
        command.env("SOURCE_DATE_EPOCH", "1700000000").arg(&package_folder).arg(VERSION);
        PathBuf::from(said(command.arg(folder.path()).arg(architecture)).trim_end())
    };
    for (architecture, of_debian) in [("x86_64", "amd64"), ("aarch64", "arm64")] {
        let wheel = made("wheel/build.py", architecture);
        assert!(wheel.to_str().unwrap().ends_with(&format!("_{architecture}.whl")), "{wheel:?}");
        if xtask::run::exists("dpkg-deb") {
            let deb = made("deb/build", architecture);
            let field = said(Command::new("dpkg-deb").arg("--field").arg(&deb).arg("Architecture"));
            assert_eq!(field.trim_end(), of_debian);
            assert!(deb.to_str().unwrap().ends_with(&format!("_{of_debian}.deb")), "{deb:?}");
        }
        if xtask::run::exists("rpmbuild") {
            let rpm = made("rpm/build", architecture);
            let query = ["--query", "--package", "--queryformat", "%{ARCH} %{OS}"];
            let says = said(Command::new("rpm").args(query).arg(&rpm));
            assert_eq!(says, format!("{architecture} linux"));
        }
    }
}

#[test]
fn what_a_release_states_are_the_digests_of_its_files() {
    let folder = tempfile::tempdir().unwrap();
    let release = folder.path();
    fs::write(release.join("proctrace_1.2.3_amd64.deb"), "a package").unwrap();
    fs::write(release.join("proctrace-ci"), "a script").unwrap();
    let build = Build {
        repository: "https://git.example/proctrace",
        commit: "0123456789012345678901234567890123456789",
        builder: "urn:example:builder",
        compiler: "rustc 1.0",
        targets: &["x86_64-unknown-linux-musl".to_owned()],
        time: 1_700_000_000,
        locks: &[("Cargo.lock", "00".repeat(32))],
    };
    let written = || {
        statement::write(release, &build).unwrap();
        [statement::PROVENANCE, statement::CHECKSUMS]
            .map(|file| fs::read_to_string(release.join(file)).unwrap())
    };
    let texts = written();
    assert_eq!(texts, written(), "what it wrote itself is among what it is about");
    let stated: serde_json::Value = serde_json::from_str(&texts[0]).unwrap();
    let subjects = stated["subject"].as_array().unwrap();
    assert_eq!(subjects.len(), 2);
    for subject in subjects {
        let file = release.join(subject["name"].as_str().unwrap());
        let sum = said(Command::new("sha256sum").arg(file));
        assert_eq!(subject["digest"]["sha256"], sum.split(' ').next().unwrap());
    }
    let asked = &stated["predicate"]["buildDefinition"]["internalParameters"];
    assert_eq!(asked["targets"][0], build.targets[0]);
    let materials = &stated["predicate"]["buildDefinition"]["resolvedDependencies"];
    assert_eq!(materials[0]["digest"]["gitCommit"], build.commit);
    assert_eq!(materials[1]["name"], "Cargo.lock");
    said(
        Command::new("sha256sum")
            .args(["--check", "--strict", statement::CHECKSUMS])
            .current_dir(release),
    );
    fs::write(release.join("proctrace-ci"), "another script").unwrap();
    let checked = Command::new("sha256sum")
        .args(["--check", "--quiet", statement::CHECKSUMS])
        .current_dir(release)
        .output();
    assert!(!checked.unwrap().status.success());
}

#[test]
fn a_wheel_can_be_installed_and_removed() {
    let folder = tempfile::tempdir().unwrap();
    package(&folder.path().join("package"));
    let wheel = built("wheel/build.py", folder.path());
    let venv = folder.path().join("venv");
    said(Command::new("python3").args(["-m", "venv"]).arg(&venv));
    let pip = || {
        let mut pip = Command::new(venv.join("bin/pip"));
        pip.args(["--disable-pip-version-check", "--quiet"]);
        pip
    };
    said(pip().args(["install", "--no-index"]).arg(&wheel));
    let program = venv.join("bin/proctrace");
    assert_eq!(said(Command::new(&program).arg("doctor")), "proctrace: doctor\n");
    let about = said(Command::new(venv.join("bin/pip")).args(["show", "--files", "proctrace"]));
    assert!(about.contains(&format!("Version: {VERSION}\n")), "{about}");
    for path in
        ["licenses/LICENSE-MIT", "licenses/THIRD-PARTY-LICENSES.txt", "sboms/proctrace.cdx.json"]
    {
        assert!(about.contains(path), "{path} is missing: {about}");
    }
    said(pip().args(["uninstall", "--yes", "proctrace"]));
    assert!(!program.exists() && !venv.join("share/man/man1/proctrace.1").exists());
}
