//! `proctrace export` in the formats of other viewers and tools: one file of one recording.

use std::fs;
use std::io::{BufWriter, Write, stdout};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Result, bail};
use proctrace_analysis::{Recording, timeline, timeline_items};
use proctrace_findings::TimelineParts;
use proctrace_report::number::{bytes, count};
use proctrace_viewers::{Format, Weight, Written};

use crate::args::{ExportArgs, StackValue, TablesFormat};
use crate::exit_code::Misuse;
use crate::query::{names, refuse_traces, without_repetitions};
use crate::waiting::during;
use crate::{incomplete, rules, say, whole};

/// The format; `None` for those of tables.
pub(super) fn format_of(args: &ExportArgs) -> Result<Option<Format>> {
    let weight = match args.value.unwrap_or_default() {
        StackValue::Cpu => Weight::Cpu,
        StackValue::Wall => Weight::Wall,
        StackValue::Processes => Weight::Processes,
    };
    let format = match args.format {
        TablesFormat::Perfetto => Some(Format::Perfetto),
        TablesFormat::Chrome => Some(Format::Chrome),
        TablesFormat::Folded => Some(Format::Folded(weight)),
        TablesFormat::Speedscope => Some(Format::Speedscope),
        TablesFormat::CompileCommands => Some(Format::CompileCommands),
        TablesFormat::Otlp => Some(Format::Otlp),
        _ => None,
    };
    if args.value.is_some() && !matches!(format, Some(Format::Folded(_))) {
        bail!(Misuse("--value is only for --format folded".to_owned()));
    }
    if args.waits && format != Some(Format::Perfetto) {
        bail!(Misuse("--waits is only for --format perfetto".to_owned()));
    }
    Ok(format)
}

pub(super) fn run(args: &ExportArgs, format: Format) -> Result<ExitCode> {
    let mut traces = args.traces.clone();
    without_repetitions(&mut traces);
    let [trace] = &traces[..] else {
        bail!(Misuse("this format contains one recording: name one trace".to_owned()));
    };
    let to_stdout = args.output == Path::new("-");
    let path = file_in(&args.output, format, &names(&traces)[0]);
    if !to_stdout {
        refuse_traces(&path)?;
    }
    // Never dropped, since the process ends with it.
    let recording = std::mem::ManuallyDrop::new(rules::load(trace, &args.rules)?);
    incomplete::warn(trace, &recording);
    let parts = TimelineParts { waits: args.waits, ..format.parts() };
    let written = if to_stdout {
        write(&recording, trace, (format, parts), BufWriter::new(stdout().lock()))?
    } else {
        let write = || whole::fill(&path, |out| write(&recording, trace, (format, parts), out));
        during("writing the timeline", write)?
    };
    let (one, several) = written.names;
    let what = if written.items == 1 { one } else { several };
    if to_stdout {
        say::note(&format!("{} {what} written", count(written.items)));
    } else {
        let size = fs::metadata(&path).map(|file| file.len()).unwrap_or_default();
        say::note(&format!(
            "{} {what} ({}) written to {}",
            count(written.items),
            bytes(size),
            path.display()
        ));
    }
    written.notes.iter().for_each(|note| say::note(note));
    Ok(ExitCode::SUCCESS)
}

/// The file; in a directory, under the name that readers look for, or that of the recording.
fn file_in(output: &Path, format: Format, recording: &str) -> PathBuf {
    if !output.is_dir() {
        return output.to_owned();
    }
    let stem = recording.rsplit('/').next().unwrap_or(recording);
    output.join(match format {
        Format::Perfetto => format!("{stem}.perfetto-trace"),
        Format::Chrome => format!("{stem}.trace.json"),
        Format::Folded(_) => format!("{stem}.folded"),
        Format::Speedscope => format!("{stem}.speedscope.json"),
        Format::CompileCommands => "compile_commands.json".to_owned(),
        Format::Otlp => format!("{stem}.otlp.jsonl"),
    })
}

fn write(
    recording: &Recording,
    trace: &Path,
    (format, parts): (Format, TimelineParts),
    out: impl Write,
) -> Result<Written> {
    let mut viewer = format.begin(&timeline(recording), out)?;
    timeline_items(recording, trace, parts, |item| Ok::<_, anyhow::Error>(viewer.take(&item)?))?;
    Ok(viewer.finish()?)
}
