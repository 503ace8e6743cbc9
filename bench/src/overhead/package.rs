//! A real package as a build payload: GNU hello, from the distribution's source package.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail, ensure};
use xtask::run::{exists, is_root, output, run as execute};

/// Its unpacked source below `scratch`; fetched once and then kept.
pub(super) fn hello(scratch: &Path) -> Result<PathBuf> {
    let directory = scratch.join("hello");
    fs::create_dir_all(&directory).context("cannot make a directory")?;
    if archive(&directory)?.is_none() {
        ensure!(exists("apt-get"), "fetching the source of GNU hello requires apt-get");
        fetch(&directory)?;
    }
    let (archive, sha256) = archive(&directory)?.context("apt-get fetched no source")?;
    let found = output(Command::new("sha256sum").arg(&archive))?;
    ensure!(
        found.starts_with(sha256.as_bytes()),
        "the checksum of {} does not match its .dsc; remove it",
        archive.display()
    );
    let unpacked = directory.join("source");
    if !unpacked.join("configure").exists() {
        fs::create_dir_all(&unpacked).context("cannot make a directory")?;
        let mut tar = Command::new("tar");
        tar.arg("-xf").arg(&archive).arg("-C").arg(&unpacked).arg("--strip-components=1");
        output(&mut tar)?;
    }
    Ok(unpacked)
}

/// The archive of the original source and its checksum, if both it and its .dsc exist.
fn archive(directory: &Path) -> Result<Option<(PathBuf, String)>> {
    for entry in fs::read_dir(directory).context("cannot read a directory")? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "dsc") {
            let text = fs::read_to_string(&path).context("cannot read a .dsc")?;
            let (name, sha256) = original(&text).context("a .dsc lists no original source")?;
            let archive = directory.join(name);
            return Ok(archive.exists().then_some((archive, sha256)));
        }
    }
    Ok(None)
}

/// Name and SHA-256 of the original source in a .dsc.
fn original(dsc: &str) -> Option<(String, String)> {
    let sums = dsc.lines().skip_while(|line| *line != "Checksums-Sha256:").skip(1);
    sums.take_while(|line| line.starts_with(' ')).find_map(|line| {
        let mut words = line.split_whitespace();
        let (sha256, name) = (words.next()?, words.nth(1)?);
        name.contains(".orig.tar.").then(|| (name.to_owned(), sha256.to_owned()))
    })
}

/// `apt-get source` with separate package lists, so that the system's are unchanged.
fn fetch(directory: &Path) -> Result<()> {
    let apt = directory.join("apt");
    for part in ["lists/partial", "cache/archives/partial", "sources.list.d"] {
        fs::create_dir_all(apt.join(part)).context("cannot make a directory")?;
    }
    let origin = origin()?;
    let mut wanted = 0;
    for file in system_sources()? {
        let text = fs::read_to_string(&file).unwrap_or_default();
        let deb822 = file.extension().is_some_and(|extension| extension == "sources");
        let text = if deb822 { stanzas(&text, &origin) } else { lines(&text, &origin) };
        if !text.is_empty() {
            let name = file.file_name().context("a file has no name")?;
            fs::write(apt.join("sources.list.d").join(name), text)?;
            wanted += 1;
        }
    }
    ensure!(wanted > 0, "no apt source lists {origin}");
    let mut options = vec![
        format!("Dir::Etc::SourceParts={}", apt.join("sources.list.d").display()),
        "Dir::Etc::SourceList=/dev/null".to_owned(),
        format!("Dir::State::lists={}", apt.join("lists").display()),
        format!("Dir::Cache={}", apt.join("cache").display()),
    ];
    if is_root() {
        // apt's sandbox user may have no access here.
        options.push("APT::Sandbox::User=root".to_owned());
    }
    let apt_get = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.current_dir(directory).args(arguments);
        for option in &options {
            command.arg("-o").arg(option);
        }
        execute(command.stdout(Stdio::null()))
    };
    apt_get(&["update", "-qq"])?;
    apt_get(&["source", "-qq", "--download-only", "hello"])
}

/// The repository from which the system would install the binary package.
fn origin() -> Result<String> {
    let policy = output(Command::new("apt-cache").args(["madison", "hello"]))?;
    let policy = String::from_utf8_lossy(&policy).into_owned();
    let Some(origin) = policy.lines().next().and_then(|line| line.split('|').nth(2)) else {
        bail!("apt has no package hello; run apt-get update");
    };
    Ok(origin
        .split_whitespace()
        .next()
        .context("apt-cache lists no origin of the package")?
        .to_owned())
}

fn system_sources() -> Result<Vec<PathBuf>> {
    let mut files = vec![PathBuf::from("/etc/apt/sources.list")];
    if let Ok(entries) = fs::read_dir("/etc/apt/sources.list.d") {
        for entry in entries {
            files.push(entry?.path());
        }
    }
    Ok(files)
}

/// The stanzas of a .sources file for this origin, changed from binary to source packages.
fn stanzas(text: &str, origin: &str) -> String {
    let of_origin = |stanza: &&str| stanza.contains(origin.trim_end_matches('/'));
    let stanzas = text.split("\n\n").filter(of_origin).map(|stanza| {
        let lines = stanza.lines().map(|line| match line.strip_prefix("Types:") {
            Some(_) => "Types: deb-src",
            None => line,
        });
        lines.collect::<Vec<_>>().join("\n") + "\n\n"
    });
    stanzas.collect()
}

/// The same for the older one-line format.
fn lines(text: &str, origin: &str) -> String {
    let lines = text.lines().filter(|line| line.contains(origin.trim_end_matches('/')));
    let lines = lines.filter_map(|line| Some(format!("deb-src {}\n", line.strip_prefix("deb ")?)));
    lines.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_original_source_is_found_in_the_dsc() {
        let dsc = "Format: 3.0 (quilt)\nChecksums-Sha1:\n f00 725946 hello_2.10.orig.tar.gz\n\
            Checksums-Sha256:\n 31e0 725946 hello_2.10.orig.tar.gz\n 77 1 hello_2.10-3.debian.tar.xz\n\
            Files:\n 6c 725946 hello_2.10.orig.tar.gz\n";
        let expected = ("hello_2.10.orig.tar.gz".to_owned(), "31e0".to_owned());
        assert_eq!(original(dsc), Some(expected));
        assert_eq!(original("Checksums-Sha256:\nFiles:\n 6c 7 hello.orig.tar.gz\n"), None);
    }

    #[test]
    fn only_the_origin_is_asked_for_sources() {
        let text = "Types: deb\nURIs: http://a.example/debian\nSuites: x\n\nTypes: deb\nURIs: http://b.example\n";
        let expected = "Types: deb-src\nURIs: http://a.example/debian\nSuites: x\n\n";
        assert_eq!(stanzas(text, "http://a.example/debian/"), expected);
        let text = "# deb http://a.example x main\ndeb [k=v] http://a.example x main\ndeb http://b.example x main\n";
        assert_eq!(lines(text, "http://a.example"), "deb-src [k=v] http://a.example x main\n");
    }
}
