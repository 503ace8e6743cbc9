//! `proctrace ps`: the processes that were alive at some time.

use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::{AliveSort, AliveView, alive};
use proctrace_record::nanoseconds;
use proctrace_report::alive_text;

use crate::args::{InspectFormat, PsArgs, PsOrder};
use crate::exit_code::Misuse;
use crate::print;
use crate::show::load_lives;

pub(crate) fn run(args: &PsArgs) -> Result<ExitCode> {
    let Some(from) = args.at.or(args.from) else {
        bail!(Misuse("at which time? use --at TIME, or --from TIME --to TIME".to_owned()))
    };
    if args.to.is_some_and(|to| to < from) {
        bail!(Misuse("--to is before --from".to_owned()));
    }
    let recording = load_lives(&args.trace, &args.rules)?;
    let view = AliveView {
        from_ns: nanoseconds(from),
        to_ns: args.to.map(nanoseconds),
        sort: match args.sort {
            PsOrder::Cpu => AliveSort::Cpu,
            PsOrder::Age => AliveSort::Age,
            PsOrder::Rss => AliveSort::Rss,
            PsOrder::Pid => AliveSort::Pid,
        },
    };
    let alive = alive(&recording, &args.trace, &view)?;
    let style = print::style((!args.all).then_some(args.top));
    print::answer(args.format == InspectFormat::Json, &alive, || alive_text(&alive, style))
}
