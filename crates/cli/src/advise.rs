//! `proctrace advise`: what to change, and what that gains.

use std::fs::File;
use std::io::Read as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use proctrace_analysis::{AdviceRules, Recording, advise, explain, observed, places};
use proctrace_findings::counted;
use proctrace_report::{advice_text, explained_text, observed_text};
use proctrace_trace::Header;
use rustix::fs::{Mode, OFlags, open};

use crate::args::AdviseArgs;
use crate::waiting::during;
use crate::{incomplete, print, rules};

/// Processes that are shown as the reason of a piece of advice.
const ROWS: usize = 20;
/// Maximum size of a script.
const SCRIPT_MAX_BYTES: u64 = 1 << 20;

/// The text of a script of the recorded job, if it is one of the caller's or root's, and has not changed since. The path is from
/// the trace, which may be anybody's: nothing else is read ([0068](../../../docs/decisions/0068-lines-of-scripts.md)).
#[expect(clippy::disallowed_methods, reason = "it only reads; File::open would wait at a pipe")]
fn as_recorded(script: &Path, header: &Header) -> Option<String> {
    let here = rustix::system::uname();
    if here.nodename().to_bytes() != header.host.as_bytes() {
        return None;
    }
    // Whoever opens a pipe waits for its other end.
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC | OFlags::NOCTTY;
    let file = File::from(open(script, flags, Mode::empty()).ok()?);
    let about = file.metadata().ok()?;
    let is_known = |owner: u32| owner == 0 || owner == rustix::process::geteuid().as_raw();
    let changed = (about.mtime(), about.mtime_nsec()).max((about.ctime(), about.ctime_nsec()));
    let changed_ns = i128::from(changed.0) * 1_000_000_000 + i128::from(changed.1);
    // Files of /proc have no length.
    let is_script = about.is_file() && about.len() > 0 && about.len() <= SCRIPT_MAX_BYTES;
    let is_older = changed_ns <= i128::from(header.started_unix_ns);
    if !is_script || !is_older || !is_known(about.uid()) {
        return None;
    }
    let mut text = String::new();
    file.take(SCRIPT_MAX_BYTES).read_to_string(&mut text).ok()?;
    let is_named = script.extension().is_some_and(|it| it == "sh" || it == "bash");
    (is_named || text.starts_with("#!")).then_some(text)
}

/// Amount of advice, in words.
fn pieces(all: usize) -> String {
    match all {
        0 => "none".to_owned(),
        all => counted(all as u64, "piece of advice", "pieces of advice"),
    }
}

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
            recording.header_mut().cpus = cores;
        }
        incomplete::warn(trace, &recording);
        Ok(recording)
    };
    let recording = read(&args.trace)?;
    let style = print::style(None);
    if let Some(before) = &args.against {
        let before = read(before)?;
        let observed = during("comparing with the predictions", || {
            observed(&before, &recording, &advice_rules, args.min)
        });
        return print::answer(args.json, &observed, || observed_text(&observed, style));
    }
    let mut advised = during("predicting gains", || advise(&recording, &advice_rules, args.min));
    let header = recording.header();
    places(&recording, &args.trace, &mut advised, |script| as_recorded(script, header))?;
    let Some(number) = args.explain else {
        return print::answer(args.json, &advised, || advice_text(&advised, style));
    };
    let rows = if args.json { usize::MAX } else { ROWS };
    let explained = explain(&recording, &advised, number, rows).with_context(|| {
        let all = advised.advice.iter().filter(|one| one.part_of.is_none()).count();
        format!("there is no advice {number}: {} has {}", args.trace.display(), pieces(all))
    })?;
    print::answer(args.json, &explained, || explained_text(&explained, number, &args.trace, style))
}
