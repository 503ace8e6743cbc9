//! `proctrace tree`: the process tree, with equal siblings as one line.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::{Chosen, TreeSort, TreeView, choose, health, tree};
use proctrace_findings::Health;
use proctrace_record::nanoseconds;
use proctrace_report::tree_text;

use crate::args::{InspectFormat, TreeArgs, TreeBy, TreeOrder};
use crate::print;
use crate::show::{choose_one, load_lives, wanted};

/// Percentage below which lines are left out of a text.
const MIN_PERCENT: f64 = 1.0;

pub(crate) fn run(args: &TreeArgs) -> Result<ExitCode> {
    let root = args.pid.as_deref().map(wanted).transpose()?;
    let recording = load_lives(&args.trace, &args.rules)?;
    let is_text = args.format == InspectFormat::Text;
    let style = print::style((!args.all).then_some(args.top));
    let root = match root.map(|root| choose(&recording, &root)).transpose()? {
        None => args.serial,
        Some(Chosen::One(serial)) => Some(serial),
        Some(Chosen::Of(candidates)) => return choose_one(&candidates, args.format, style),
    };
    let view = TreeView {
        at_ns: args.at.map(nanoseconds),
        root,
        depth: args.depth,
        min_percent: args.min.unwrap_or(if is_text { MIN_PERCENT } else { 0.0 }),
        rows: (is_text && !args.all).then_some(args.top),
        sort: match args.sort {
            TreeOrder::Cpu => TreeSort::Cpu,
            TreeOrder::Processes => TreeSort::Processes,
            TreeOrder::Birth => TreeSort::Birth,
        },
        steps: args.by == TreeBy::Step,
    };
    let tree = tree(&recording, &view)?;
    if view.steps && recording.steps().all.is_empty() {
        bail!("the recording has no steps (docs/steps.md)");
    }
    // At a given time, nothing may be alive; a recording has at least the command.
    if tree.processes == 0 && view.at_ns.is_none() {
        bail!("{}", without_processes(&args.trace, &health(&recording)));
    }
    print::answer(!is_text, &tree, || tree_text(&tree, style))
}

/// Reason why there is no tree.
fn without_processes(trace: &Path, health: &Health) -> String {
    let why = if health.recording_now {
        "it is being recorded right now, and the first block has not been written yet"
    } else if !health.complete {
        "it is not complete, because the recorder was killed or the file was cut off, and what is \
         left has none"
    } else if !health.is_good() {
        "see `proctrace check`"
    } else {
        "nothing was alive in its scope"
    };
    format!("{} has no processes: {why}", trace.display())
}
