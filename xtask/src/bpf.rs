//! Compilation and inspection of the BPF programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use clap::Subcommand;
use xtask::run::{output, target_dir};
use xtask::{prebuilt, setup};

use crate::verifier;

/// What to print.
#[derive(Subcommand)]
pub(crate) enum BpfChore {
    /// Compile the programs for all architectures into bpf/prebuilt: after a change of bpf/, before its commit.
    Build,
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
        BpfChore::Build => prebuilt::renew()?,
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
    prebuilt::compile_here(source.trim_end_matches(".c"), &object)?;
    Ok(object)
}
