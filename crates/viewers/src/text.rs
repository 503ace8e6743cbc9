//! Names and arguments as text for viewers.

use std::borrow::Cow;

use proctrace_findings::TimelineRun;
use proctrace_report::escape;
use proctrace_wire::escape::to_text;

/// Longest list of arguments, in bytes: those of a link editor can be megabytes.
const ARGUMENTS_BYTES_MAX: usize = 8 << 10;

/// A string of the payload. Bytes that are not UTF-8 become `\xHH`.
pub(crate) fn bytes(bytes: &[u8]) -> Cow<'_, str> {
    to_text(bytes)
}

/// The same, or nothing if it is not known.
pub(crate) fn known(path: &[u8]) -> Option<Cow<'_, str>> {
    (!path.is_empty()).then(|| to_text(path))
}

/// Text for formats without escapes of their own: control characters and invisible ones become
/// visible.
pub(crate) fn visible(text: &str) -> Cow<'_, str> {
    escape::terminal(text)
}

/// The name of a program, or of one that is not known.
pub(crate) fn program(name: Option<&str>) -> &str {
    name.unwrap_or("unknown program")
}

/// The arguments, up to a limit; a last one says how many are left out.
pub(crate) fn arguments(run: &TimelineRun<'_>) -> Option<Vec<String>> {
    let arguments = run.arguments?;
    let (mut shown, mut length) = (Vec::new(), 0_usize);
    for argument in arguments {
        length = length.saturating_add(argument.len());
        if length > ARGUMENTS_BYTES_MAX {
            break;
        }
        shown.push(bytes(argument).into_owned());
    }
    let left_out = arguments.len() - shown.len();
    if left_out > 0 {
        shown.push(format!("… {left_out} more"));
    } else if run.arguments_cut {
        shown.push("…".to_owned());
    }
    Some(shown)
}
