//! `proctrace libs`: failed look-ups by cause, what would avoid them, and what carries that out.

mod attempt;

use std::process::ExitCode;

use anyhow::Result;
use proctrace_analysis::Rules;
use proctrace_remedies::{
    FarmError, causes, environment, farm_tables, found_here, make_farm, patchelf,
};
use proctrace_wire::Family;

use crate::args::{LibsAction, LibsArgs};
use crate::exit_code::Misuse;
use crate::waiting::during;
use crate::{check, exit_code, incomplete, invoker, print};

pub(crate) fn run(args: &LibsArgs) -> Result<ExitCode> {
    if let Some(LibsAction::Try(args)) = &args.action {
        return attempt::run(args);
    }
    let recording = check::read(&args.trace, &Rules::generic())?;
    incomplete::warn(&args.trace, &recording);
    for family in [Family::Open, Family::Stat] {
        anyhow::ensure!(
            recording.header().misses.iter().any(|recorded| recorded == family.name()),
            "{} was recorded without failed {} calls, so their causes are not known; record with \
             --misses open,stat or without --misses",
            args.trace.display(),
            family.name()
        );
    }
    let (mut found, fixes) = during("modelling searches", || found_here(recording, &args.trace))?;
    if args.env {
        return print::raw(&environment(&found, &fixes, print::width()));
    }
    if args.patchelf {
        return print::raw(&patchelf(&found, &fixes, print::width()));
    }
    if let Some(directory) = &args.farm {
        let (remedy, plan) = match (args.merge, args.with_system) {
            (true, _) => ("merge", &fixes.merge),
            (false, true) => ("farm-system", &fixes.farm_system),
            (false, false) => ("farm", &fixes.farm),
        };
        let farm = make_farm(&invoker::outputs(), directory, remedy, plan);
        found.farm = Some(farm.map_err(|error| match error {
            FarmError::Separator { .. } => Misuse(error.to_string()).into(),
            error => anyhow::Error::from(error),
        })?);
    }
    if args.json {
        return print::answer(true, &found, String::new);
    }
    let tables = match &found.farm {
        Some(farm) => farm_tables(farm, &found),
        None => causes(&found),
    };
    let style = print::style((!args.all).then_some(args.top));
    print::table_answer(&tables, (args.format, &args.csv), style)
}

/// The exit code of a failure of our own: a script must be able to tell it from the status of a command
/// that is run.
pub(crate) fn own_failure(args: &LibsArgs) -> u8 {
    match args.action {
        Some(LibsAction::Try(_)) => exit_code::RECORDING_FAILED,
        None => exit_code::FAILED,
    }
}
