//! `proctrace classify`: which rule matched which program.

use std::process::ExitCode;

use anyhow::Result;
use proctrace_analysis::classification;

use crate::args::ClassifyArgs;
use crate::waiting::during;
use crate::{incomplete, print, rules};

pub(crate) fn run(args: &ClassifyArgs) -> Result<ExitCode> {
    let recording = rules::load_any(&args.trace, &args.rules)?;
    incomplete::warn(&args.trace, &recording);
    let style = print::style((!args.all).then_some(args.top));
    let tables = [during("classifying", || classification(&recording))];
    print::table_answer(&tables, (args.format, &args.csv), style)
}
