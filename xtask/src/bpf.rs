//! Inspection of the compiled BPF programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Subcommand;
use xtask::run::{output, root, target_dir};
use xtask::setup;

use crate::verifier;

/// What to print.
#[derive(Subcommand)]
pub(crate) enum BpfChore {
    /// Print the layout of every record, as compiled.
    Layout,
    /// Print the programs' instructions.
    Disassemble,
    /// Print how many instructions this kernel's verifier processes for each program (at most a
    /// million), and compare with the committed counts.
    Verifier {
        /// Save the current counts to bpf/verifier.txt.
        #[arg(long)]
        update: bool,
    },
}

pub(crate) fn run(chore: &BpfChore) -> Result<()> {
    setup::run(setup::EVERYTHING)?;
    match chore {
        BpfChore::Verifier { update } => verifier::run(*update)?,
        BpfChore::Layout => {
            let object = compile("layout.bpf.c")?;
            let text = output(
                Command::new("bpftool")
                    .env("PATH", "/usr/sbin:/sbin:/usr/bin:/bin")
                    .args(["btf", "dump", "file"])
                    .arg(&object),
            )?;
            print_lossy(&text);
        }
        BpfChore::Disassemble => {
            let object = compile("proctrace.bpf.c")?;
            let text = output(
                Command::new("llvm-objdump").args(["-d", "--no-show-raw-insn"]).arg(&object),
            )?;
            print_lossy(&text);
        }
    }
    Ok(())
}

fn print_lossy(text: &[u8]) {
    print!("{}", String::from_utf8_lossy(text));
}

fn compile(source: &str) -> Result<PathBuf> {
    let target = target_dir()?.join("bpf");
    std::fs::create_dir_all(&target).context("cannot create a directory")?;
    let object = target.join(Path::new(source).with_extension("o"));
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x86" };
    xtask::run::run(
        Command::new(std::env::var_os("CLANG").unwrap_or_else(|| "clang".into()))
            .args(["-g", "-O2", "-Wall", "-Werror", "-target", "bpf", "-mcpu=v3", "-c"])
            .arg(format!("-D__TARGET_ARCH_{arch}"))
            .arg(root().join("bpf").join(source))
            .arg("-o")
            .arg(&object),
    )?;
    Ok(object)
}
