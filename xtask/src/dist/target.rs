//! Targets that the programs are built for: one for each architecture, linked statically with musl, or this system's.

use std::env::consts::ARCH;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};
use xtask::contents;
use xtask::run::{cargo, exists, output, run as execute, target_dir};

/// The profiles of cargo's that programs are built with: what analyses, and what only records.
const PROFILES: [&str; 2] = ["dist", "dist-recorder"];

/// The program that analyses; the others only record.
const ANALYSES: &str = "proctrace";

/// What of zstd is left out of programs that only record: they compress at its fastest level, 1, and read any. First the
/// searches of the levels above 2 (lib/README.md of zstd, which replaces a search that is not there by the next faster one),
/// then what decompresses faster at twice the size.
const ZSTD_WITHOUT: [&str; 9] = [
    "ZSTD_EXCLUDE_DFAST_BLOCK_COMPRESSOR",
    "ZSTD_EXCLUDE_GREEDY_BLOCK_COMPRESSOR",
    "ZSTD_EXCLUDE_LAZY_BLOCK_COMPRESSOR",
    "ZSTD_EXCLUDE_LAZY2_BLOCK_COMPRESSOR",
    "ZSTD_EXCLUDE_BTLAZY2_BLOCK_COMPRESSOR",
    "ZSTD_EXCLUDE_BTOPT_BLOCK_COMPRESSOR",
    "ZSTD_EXCLUDE_BTULTRA_BLOCK_COMPRESSOR",
    "HUF_FORCE_DECOMPRESS_X1",
    "ZSTD_FORCE_DECOMPRESS_SEQUENCES_SHORT",
];

/// Minor version of Rust 1 whose musl reads packed addresses: 1.2.5 instead of 1.2.3, which lacks them as all before 1.2.4.
const RUST_WITH_PACKED_ADDRESSES: u32 = 93;

/// Architectures, each with the C compiler that builds and links for it on a machine of another one.
const ARCHITECTURES: [(&str, &str); 2] =
    [("x86_64", "x86_64-linux-gnu-gcc"), ("aarch64", "aarch64-linux-gnu-gcc")];

/// A target.
pub(crate) struct Target {
    /// Its architecture, as `uname -m` says it.
    pub(crate) architecture: String,
    /// Its name.
    pub(crate) triple: String,
    /// The C compiler, if it is not that of this machine.
    compiler: Option<&'static str>,
}

impl Target {
    /// This system's, with its C library.
    pub(crate) fn of_this_system() -> Result<Self> {
        Ok(Self { architecture: ARCH.to_owned(), triple: contents::host()?, compiler: None })
    }

    /// Statically linked programs for this machine.
    pub(crate) fn native() -> Self {
        Self::of(ARCH, None)
    }

    fn of(architecture: &str, compiler: Option<&'static str>) -> Self {
        let triple = format!("{architecture}-unknown-linux-musl");
        Self { architecture: architecture.to_owned(), triple, compiler }
    }

    /// All that are statically linked, that of this machine first.
    pub(crate) fn known() -> Vec<Self> {
        let others = ARCHITECTURES.into_iter().filter(|(name, _)| *name != ARCH);
        let others = others.map(|(architecture, compiler)| Self::of(architecture, Some(compiler)));
        std::iter::once(Self::native()).chain(others).collect()
    }

    /// Those of them that there are compilers for, or only that of this machine; says which are left out.
    ///
    /// # Errors
    /// If what this machine needs is missing.
    pub(crate) fn all(native: bool) -> Result<Vec<Self>> {
        let mut targets = Vec::new();
        let known = Self::known().into_iter();
        for target in known.take(if native { 1 } else { usize::MAX }) {
            match target.lacking()? {
                None => targets.push(target),
                Some(what) => {
                    ensure!(
                        !targets.is_empty(),
                        "{what} is missing or incomplete; --dynamic links with this system's C library"
                    );
                    println!(
                        "left out: {}, as {what} is missing or incomplete",
                        target.architecture
                    );
                }
            }
        }
        Ok(targets)
    }

    /// True if its programs need no C library of the system.
    pub(crate) fn is_static(&self) -> bool {
        self.triple.ends_with("-musl")
    }

    /// Runs a program of another architecture, where qemu can.
    ///
    /// # Errors
    /// If it fails.
    pub(crate) fn runs(&self, program: &Path) -> Result<()> {
        let emulator = format!("qemu-{}-static", self.architecture);
        match self.compiler {
            Some(_) if exists(&emulator) => {
                output(Command::new(emulator).arg(program).arg("--version")).map(drop)
            }
            _ => Ok(()),
        }
    }

    /// Name of the folder of its programs.
    pub(crate) fn package(&self) -> String {
        match self.compiler {
            Some(_) => format!("package-{}", self.architecture),
            None => "package".to_owned(),
        }
    }

    /// What is missing to build for it.
    fn lacking(&self) -> Result<Option<String>> {
        let compiler = self.compiler.unwrap_or("musl-gcc");
        if !(exists(compiler) && has_headers(compiler)) {
            return Ok(Some(compiler.to_owned()));
        }
        if !has_library(&self.triple) && exists("rustup") {
            // Whether it could is seen below. Where Rust is a package of the distribution, so is its library for a target.
            let _ = execute(Command::new("rustup").args(["target", "add", &self.triple]));
        }
        Ok((!has_library(&self.triple)).then(|| format!("Rust's library for {}", self.triple)))
    }

    /// Compiles packages.
    pub(crate) fn build(&self, packages: &[&str]) -> Result<Built> {
        let (whole, small): (Vec<&str>, Vec<&str>) =
            packages.iter().partition(|package| **package == ANALYSES);
        let target = target_dir()?.join(&self.triple);
        for (packages, profile) in [whole, small].into_iter().zip(PROFILES) {
            if !packages.is_empty() {
                self.build_with(&packages, profile)?;
            }
        }
        Ok(Built { folders: PROFILES.map(|profile| target.join(profile)) })
    }

    fn build_with(&self, packages: &[&str], profile: &str) -> Result<()> {
        let mut build = cargo();
        build.args(["build", "--profile", profile, "--target", &self.triple]);
        build.args(packages.iter().flat_map(|package| ["--package", *package]));
        // Otherwise they ask for what the data frames need of the same dependencies.
        build.arg("--no-default-features");
        let name = self.triple.replace('-', "_");
        if self.is_static() && contents::rustc_minor()? >= RUST_WITH_PACKED_ADDRESSES {
            // Addresses that are relative to the program, of which there are 150,000, take a bit instead of 24 bytes. A linker
            // that cannot write them says so, and writes what it can.
            let pack = "-C link-arg=-Wl,-z,pack-relative-relocs";
            build.env(format!("CARGO_TARGET_{}_RUSTFLAGS", name.to_uppercase()), pack);
        }
        let mut flags = Vec::new();
        if let Some(compiler) = self.compiler {
            // Where the compiler's default is to check lengths, it calls functions that only glibc has.
            // The same of functions of C23, if that is the default.
            flags.extend(["-U_FORTIFY_SOURCE", "-std=gnu11"].map(str::to_owned));
            build.env(format!("CC_{name}"), compiler);
            build.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), compiler);
        }
        if profile != PROFILES[0] {
            flags.extend(ZSTD_WITHOUT.map(|part| format!("-D{part}")));
        }
        if !flags.is_empty() {
            // After those of the user, which they would replace.
            let variable = format!("CFLAGS_{name}");
            let own = std::env::var(&variable).or_else(|_| std::env::var("CFLAGS"));
            flags.splice(0..0, own);
            build.env(variable, flags.join(" "));
        }
        execute(&mut build)
    }
}

/// Programs that have been built.
#[derive(Debug, Clone)]
pub(crate) struct Built {
    /// Folders of the programs, one for each of [`PROFILES`].
    folders: [PathBuf; 2],
}

impl Built {
    /// Path of a program.
    pub(crate) fn program(&self, name: &str) -> PathBuf {
        self.folders[usize::from(name != ANALYSES)].join(name)
    }
}

/// True if a C compiler finds the headers of a C library: those of other architectures may come without.
fn has_headers(compiler: &str) -> bool {
    let reads = ["-include", "string.h", "-E", "-x", "c", "/dev/null"];
    output(Command::new(compiler).args(reads)).is_ok()
}

/// True if the compiler of Rust has its own library for a target.
fn has_library(triple: &str) -> bool {
    let place =
        output(Command::new("rustc").args(["--print", "target-libdir", "--target", triple]));
    place.is_ok_and(|place| Path::new(String::from_utf8_lossy(&place).trim()).exists())
}
