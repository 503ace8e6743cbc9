//! `proctrace gate`: fails a job that is worse than a budget or a baseline allows.

mod run;

use std::fs;
use std::io::{Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use proctrace_analysis::{AdviceRules, advise, places};
use proctrace_findings::{Advice, Advised};
use proctrace_gate::{
    Budget, Code, Inconclusive, Options, Report, RunMetrics, explain, gate, init, render,
};
use proctrace_outputs::Access;
use proctrace_trace::{Reader, is_trace};
use proctrace_wire::Outcome;

use crate::args::{Annotations, GateAction, GateArgs, GateOptions, RulesArgs};
use crate::{check, exit_code, invoker, rules, runs, say, whole};

/// The default budget file.
pub(crate) const DEFAULT_BUDGET: &str = "gate.toml";

/// The variable that names the file of a step, on GitHub Actions.
const STEP_SUMMARY: &str = "GITHUB_STEP_SUMMARY";

/// Advice that gains less is left out, as by `proctrace advise`.
const MIN_PERCENT: f64 = 1.0;

pub(crate) fn run(args: &GateArgs) -> Result<ExitCode> {
    match &args.action {
        None => {
            let Some(budget) = budget(&args.gate)? else { return Ok(exit_code::USAGE.into()) };
            let candidates = runs::of_files(&args.candidates, &args.gate.rules)?;
            let baselines = runs::of_files(&args.gate.baseline, &args.gate.rules)?;
            args.candidates.iter().for_each(|file| note_failure(file));
            judge(&args.gate, &budget, &baselines, &candidates, &args.candidates)
        }
        Some(GateAction::Init { files, rules }) => write_budget(files, rules),
        Some(GateAction::Explain { code }) => say_what(code),
        Some(GateAction::Run(args)) => run::run(args),
    }
}

/// The rules of the budget and of `--limit`. None, after reporting the reason, if they are invalid.
fn budget(args: &GateOptions) -> Result<Option<Budget>> {
    let wrong = |error: &dyn std::fmt::Display| {
        say::note(&error.to_string());
        Ok(None)
    };
    let file = match &args.budget {
        Some(file) => Some(file.as_path()),
        None if args.limit.is_empty() && Path::new(DEFAULT_BUDGET).exists() => {
            Some(Path::new(DEFAULT_BUDGET))
        }
        None => None,
    };
    let mut budget = match file {
        Some(file) => {
            let text = fs::read_to_string(file)
                .with_context(|| format!("cannot read the budget {}", file.display()))?;
            match Budget::parse(&file.display().to_string(), &text) {
                Ok(budget) => budget,
                Err(error) => return wrong(&error),
            }
        }
        None => Budget::default(),
    };
    for limit in &args.limit {
        if let Err(error) = budget.push_argument(limit) {
            return wrong(&error);
        }
    }
    if budget.rules.is_empty() {
        return wrong(
            &"no limits to check: give --budget or --limit; `proctrace gate init` writes a budget",
        );
    }
    if args.inconclusive_ok {
        for rule in &mut budget.rules {
            rule.inconclusive = Inconclusive::Warn;
        }
    }
    if args.baseline.is_empty()
        && let Some(rule) = budget.needs_baseline()
    {
        return wrong(&format!(
            "{} is limited only relative to a baseline: give --baseline, or a value after |",
            rule.selector
        ));
    }
    Ok(Some(budget))
}

/// Compares, reports, and converts the verdict to an exit status. `files` are those of the
/// candidates.
fn judge(
    args: &GateOptions,
    budget: &Budget,
    baselines: &[RunMetrics],
    candidates: &[RunMetrics],
    files: &[PathBuf],
) -> Result<ExitCode> {
    let options = Options { allow_doubts: args.allow_doubts };
    let mut report = gate(budget, baselines, candidates, options)?;
    if report.has_programs()
        && let Some(advised) = advice(files, &args.rules)?
    {
        report.advise(&advised);
    }
    write_reports(args, &report)?;
    let mut text = render::text(&report, args.top);
    let in_github = || std::env::var_os("GITHUB_ACTIONS").is_some_and(|value| value == "true");
    if match args.annotations {
        Annotations::Always => true,
        Annotations::Never => false,
        Annotations::Auto => in_github(),
    } {
        text.push_str(&render::annotations(&report));
    }
    say::verdict(&text)?;
    Ok(report.verdict.exit_code().into())
}

/// Says that the command of a trace failed: it may have done less than those that set the limits, and then keeps to them.
fn note_failure(file: &Path) {
    let Some(mut reader) = is_trace(file).then(|| Reader::open(file).ok()).flatten() else {
        return;
    };
    while reader.next_block_where(|_| false).is_some() {}
    let payload = reader.trailer().and_then(|trailer| trailer.payload.as_ref());
    if let Some(payload) = payload.filter(|payload| payload.outcome != Outcome::Code(0)) {
        say::note(&format!(
            "the command of {} ended with {}: what it did not do is within the limits",
            file.display(),
            payload.outcome.name()
        ));
    }
}

/// Advice of `proctrace advise` on the first candidate that is a trace. It takes the recording itself, so it is worked
/// out only for a report with findings about programs.
fn advice(files: &[PathBuf], rules: &RulesArgs) -> Result<Option<Advised>> {
    let Some(trace) = files.iter().find(|file| is_trace(file)) else { return Ok(None) };
    let recording = check::read(trace, &rules::chosen(rules)?)?;
    // Nothing is predicted without times; the verdict stands.
    if recording.why_no_times().is_some() {
        return Ok(None);
    }
    let mut advised = advise(&recording, &AdviceRules::built_in(), MIN_PERCENT);
    // A verdict names what surely gains something.
    advised.advice.retain(Advice::is_certain);
    // Scripts are not looked at: what a gate reads, its arguments name.
    places(&recording, trace, &mut advised, |_| None)?;
    Ok(Some(advised))
}

fn write_reports(args: &GateOptions, report: &Report) -> Result<()> {
    let write = |path: &Path, text: &str| whole::write(path, text.as_bytes());
    if let Some(path) = &args.junit {
        write(path, &render::junit(report)?)?;
    }
    if let Some(path) = &args.json {
        write(path, &report.to_json()?)?;
    }
    if let Some(path) = &args.markdown {
        // $GITHUB_STEP_SUMMARY is shared by all commands of a step, and is not root's in a container.
        let is_of_runner = std::env::var_os(STEP_SUMMARY).is_some_and(|it| it == **path);
        let context = || format!("cannot write {}", path.display());
        let file = invoker::outputs().append(path, Access::Umask, is_of_runner);
        let mut file = file.with_context(context)?;
        file.write_all(render::markdown(report).as_bytes()).with_context(context)?;
    }
    Ok(())
}

fn write_budget(files: &[PathBuf], rules: &RulesArgs) -> Result<ExitCode> {
    let runs = runs::of_files(files, rules)?;
    // Lost records would lower the limits of the budget, and each good run would exceed them.
    if let Some(run) = runs.iter().find(|run| !run.metrics.doubts.is_empty()) {
        bail!("{} cannot be trusted: {}; record it again", run.name, run.metrics.doubts.join("; "));
    }
    let (budget, finding) = init(&runs);
    stdout().lock().write_all(budget.as_bytes())?;
    if let Some(advice) = finding.advice() {
        say::note(&advice);
    }
    Ok(ExitCode::SUCCESS)
}

fn say_what(code: &str) -> Result<ExitCode> {
    let Some(code) = Code::named(code) else {
        let codes: Vec<&str> = Code::ALL.iter().map(|code| code.name()).collect();
        say::note(&format!("unknown code {code:?}; choose from {}", codes.join(", ")));
        return Ok(exit_code::USAGE.into());
    };
    stdout().lock().write_all(explain(code).as_bytes())?;
    Ok(ExitCode::SUCCESS)
}
