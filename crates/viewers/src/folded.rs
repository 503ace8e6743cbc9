//! Folded stacks: one chain of programs per line, as flame graph programs read them.

use std::io::{self, Write};

use proctrace_findings::TimelineItem;

use crate::stacks::Stacks;
use crate::{Viewer, Weight, Written, text};

/// The values are in microseconds.
const UNIT_NS: u64 = 1_000;

pub(crate) struct Folded<W> {
    out: W,
    weight: Weight,
    stacks: Stacks,
}

impl<W: Write> Folded<W> {
    pub(crate) fn begin(weight: Weight, out: W) -> Self {
        Self { out, weight, stacks: Stacks::default() }
    }
}

impl<W: Write> Viewer for Folded<W> {
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()> {
        if let TimelineItem::Stack(stack) = item {
            self.stacks.add(stack);
        }
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        let names: Vec<String> = self.stacks.names.iter().map(|name| frame(name)).collect();
        let mut written = Written { names: ("stack", "stacks"), ..Written::default() };
        if !self.stacks.knows(self.weight) {
            written.notes.push("the recording does not contain CPU time".to_owned());
            return Ok(written);
        }
        for stack in self.stacks.weighed(self.weight, UNIT_NS) {
            let frames = stack.frames.iter().filter_map(|frame| names.get(*frame as usize));
            let frames: Vec<&str> = frames.map(String::as_str).collect();
            writeln!(self.out, "{} {}", frames.join(";"), stack.value)?;
            written.items += 1;
        }
        self.out.flush()?;
        Ok(written)
    }
}

/// A name without what separates frames and lines. Readers take what follows the last space as the
/// number, and a name may contain spaces; but some cut comments at a `#` in front.
fn frame(name: &str) -> String {
    let name = text::visible(name).replace(';', ",");
    match name.strip_prefix('#') {
        Some(rest) => format!("\\#{rest}"),
        None if name.trim().is_empty() => "\\x20".to_owned(),
        None => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Format;
    use proctrace_findings::{Timeline, TimelineStack};

    fn folded(weight: Weight, stacks: &[TimelineStack<'_>]) -> String {
        let mut out = Vec::new();
        let mut viewer = Format::Folded(weight).begin(&Timeline::default(), &mut out).unwrap();
        for stack in stacks {
            viewer.take(&TimelineItem::Stack(stack.clone())).unwrap();
        }
        viewer.finish().unwrap();
        String::from_utf8(out).unwrap()
    }

    fn stack(parent: Option<u32>, program: &str, cpu_ns: u64) -> TimelineStack<'_> {
        TimelineStack { parent, program, processes: 2, cpu_ns: Some(cpu_ns), wall_ns: 5_000 }
    }

    #[test]
    fn nothing_is_lost_by_rounding() {
        let stacks =
            [stack(None, "a", 1_500), stack(Some(0), "b;\nc", 700), stack(Some(1), "d", 0)];
        assert_eq!(folded(Weight::Cpu, &stacks), "a 1\na;b,\\nc 1\n");
        assert_eq!(folded(Weight::Wall, &stacks), "a 5\na;b,\\nc 5\na;b,\\nc;d 5\n");
        assert_eq!(folded(Weight::Processes, &stacks[..1]), "a 2\n");
    }

    #[test]
    fn what_is_not_known_is_not_written() {
        let unknown = TimelineStack { cpu_ns: None, ..stack(None, "a", 0) };
        assert_eq!(folded(Weight::Cpu, std::slice::from_ref(&unknown)), "");
        assert_eq!(folded(Weight::Processes, &[unknown]), "a 2\n");
    }
}
