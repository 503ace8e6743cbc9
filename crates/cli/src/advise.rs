//! `proctrace advise`: what to change, and what that gains.

use std::io::{Write, stdout};
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use proctrace_analysis::{AdviceRules, Recording, advise, observed};
use proctrace_report::{advice_text, observed_text};

use crate::args::AdviseArgs;
use crate::waiting::during;
use crate::{check, print, rules};

pub(crate) fn run(args: &AdviseArgs) -> Result<ExitCode> {
    let mut advice_rules = AdviceRules::built_in();
    for path in &args.cures {
        let toml = std::fs::read_to_string(path)
            .with_context(|| format!("cannot read {}", path.display()))?;
        advice_rules = advice_rules.with(&path.display().to_string(), &toml)?;
    }
    let read = |trace: &Path| -> Result<Recording> {
        let mut recording = rules::load(trace, &args.rules)?;
        if let Some(cores) = args.cores {
            recording.header.cpus = cores;
        }
        check::warn(trace, &recording);
        Ok(recording)
    };
    let recording = read(&args.trace)?;
    let mut out = stdout().lock();
    if let Some(before) = &args.against {
        let before = read(before)?;
        let observed = during("comparing with the predictions", || {
            observed(&before, &recording, &advice_rules, args.min)
        });
        if args.json {
            print::json(&mut out, &observed)?;
        } else {
            out.write_all(observed_text(&observed, print::style(None)).as_bytes())?;
        }
    } else {
        let advised = during("predicting gains", || advise(&recording, &advice_rules, args.min));
        if args.json {
            print::json(&mut out, &advised)?;
        } else {
            out.write_all(advice_text(&advised, print::style(None)).as_bytes())?;
        }
    }
    out.flush()?;
    Ok(ExitCode::SUCCESS)
}
