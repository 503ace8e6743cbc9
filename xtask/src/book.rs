//! The book: docs/ and the pages that it links to, with the options of every command, as pages for a browser.

mod links;
mod options;
mod stage;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use clap::Args;
use xtask::run::{built, cargo, exists, root, run as execute, target_dir};
use xtask::setup;

/// Version of mdBook that is installed if there is none of its series.
const VERSION: &str = "0.5.4";
/// The series whose headings get the anchors that GitHub makes, as docs/ expects.
const SERIES: &str = "mdbook v0.5.";

/// Which binary is asked for its options.
#[derive(Args)]
pub(crate) struct BookArgs {
    /// Ask this binary for its options instead of building one.
    #[arg(long, value_name = "FILE")]
    proctrace: Option<PathBuf>,
}

/// Writes the book into target/book, and fails if one of its links leads nowhere.
pub(crate) fn run(args: &BookArgs) -> Result<()> {
    let proctrace = match &args.proctrace {
        Some(file) => file.canonicalize().with_context(|| format!("no {}", file.display()))?,
        None => {
            setup::run(setup::BUILD)?;
            built(&["proctrace"])?.join("proctrace")
        }
    };
    let target = target_dir()?;
    let (source, book) = (target.join("book-source"), target.join("book"));
    for directory in [&source, &book] {
        if directory.exists() {
            fs::remove_dir_all(directory).context("cannot remove the book of before")?;
        }
    }
    let pages = source.join("src");
    let commands = options::write(&proctrace, &source.join("man"), &pages.join("docs/options"))?;
    stage::write(&root(), &pages, &commands)?;
    for file in ["book.toml", "book.css"] {
        fs::copy(root().join("docs").join(file), source.join(file))
            .with_context(|| format!("cannot copy docs/{file}"))?;
    }
    execute(Command::new(mdbook(&target)?).arg("build").arg("--dest-dir").arg(&book).arg(&source))?;
    let faults = links::faults(&book)?;
    if !faults.is_empty() {
        bail!("links that lead nowhere:\n{}", faults.join("\n"));
    }
    println!("written to {}", book.join("index.html").display());
    Ok(())
}

/// The program: that on PATH if it is of the series, otherwise one in the target directory.
fn mdbook(target: &Path) -> Result<PathBuf> {
    let is_fit = |program: &Path| {
        let output = Command::new(program).arg("--version").stderr(Stdio::null()).output();
        output.is_ok_and(|it| String::from_utf8_lossy(&it.stdout).starts_with(SERIES))
    };
    if exists("mdbook") && is_fit(Path::new("mdbook")) {
        return Ok("mdbook".into());
    }
    let tools = target.join("tools");
    let program = tools.join("bin/mdbook");
    if !is_fit(&program) {
        println!("mdbook {VERSION} is compiled once, which takes minutes");
        // Without its server, which is most of what would be compiled.
        execute(
            cargo()
                .args(["install", "mdbook", "--locked", "--quiet", "--version", VERSION])
                .args(["--no-default-features", "--features", "search", "--root"])
                .arg(&tools),
        )?;
    }
    Ok(program)
}
