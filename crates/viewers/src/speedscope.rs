//! The file format of speedscope: the critical path and the phases in order of time, and chains of programs
//! by CPU time, lifetime and number.

use std::io::{self, Write};

use proctrace_findings::{Timeline, TimelineItem, TimelinePhase, TimelineStep};
use serde_json::{Value, json};

use crate::stacks::{Stacks, Weighed};
use crate::{Viewer, Weight, Written, json, text};

const SCHEMA: &str = "https://www.speedscope.app/file-format-schema.json";
/// The profiles by chain, their units and what they count.
const PROFILES: [(&str, &str, Weight); 3] = [
    ("CPU time by chain of programs", "nanoseconds", Weight::Cpu),
    ("lifetimes by chain of programs", "nanoseconds", Weight::Wall),
    ("processes by chain of programs", "none", Weight::Processes),
];

pub(crate) struct Speedscope<W> {
    out: W,
    name: String,
    exporter: String,
    stacks: Stacks,
    profiles: json::Lines,
    /// The events of the critical path, of which the profile is open, and when they end.
    path: Option<(json::Lines, u64)>,
    /// The events of the phases, and when they end.
    phases: (Vec<Value>, u64),
}

impl<W: Write> Speedscope<W> {
    pub(crate) fn begin(timeline: &Timeline, mut out: W) -> io::Result<Self> {
        out.write_all(b"{\"$schema\":")?;
        json::write(&mut out, &SCHEMA)?;
        out.write_all(b",\"profiles\":[")?;
        Ok(Self {
            out,
            name: timeline.command.join(" "),
            exporter: format!("proctrace {}", timeline.recorder),
            stacks: Stacks::default(),
            profiles: json::Lines::default(),
            path: None,
            phases: (Vec::new(), 0),
        })
    }

    /// A frame of the program, and in it one of what it did.
    fn step(&mut self, step: &TimelineStep<'_>) -> io::Result<()> {
        let program = self.stacks.number_of(text::program(step.program));
        let doing = self.stacks.number_of(step.doing);
        let (events, end_ns) = match &mut self.path {
            Some(path) => path,
            none => {
                self.out.write_all(
                    b"\n{\"type\":\"evented\",\"name\":\"critical path\",\
                      \"unit\":\"nanoseconds\",\"startValue\":0,\"events\":[",
                )?;
                self.profiles.written += 1;
                none.insert((json::Lines::default(), 0))
            }
        };
        let begin_ns = step.begin_ns.max(*end_ns);
        *end_ns = step.end_ns.max(begin_ns);
        for (kind, frame, at) in [
            ("O", program, begin_ns),
            ("O", doing, begin_ns),
            ("C", doing, *end_ns),
            ("C", program, *end_ns),
        ] {
            events.push(&mut self.out, &json!({"type": kind, "frame": frame, "at": at}))?;
        }
        Ok(())
    }

    fn phase(&mut self, phase: &TimelinePhase<'_>) {
        let (events, end_ns) = &mut self.phases;
        let frame = self.stacks.number_of(phase.name);
        let begin_ns = phase.begin_ns.max(*end_ns);
        *end_ns = phase.end_ns.max(begin_ns);
        events.push(json!({"type": "O", "frame": frame, "at": begin_ns}));
        events.push(json!({"type": "C", "frame": frame, "at": *end_ns}));
    }

    fn end_path(&mut self) -> io::Result<()> {
        match self.path.take() {
            Some((_, end_ns)) => write!(self.out, "],\"endValue\":{end_ns}}}"),
            None => Ok(()),
        }
    }
}

fn sampled(name: &str, unit: &str, stacks: &[Weighed]) -> Value {
    let total = stacks.iter().fold(0, |sum: u64, stack| sum.saturating_add(stack.value));
    json!({
        "type": "sampled",
        "name": name,
        "unit": unit,
        "startValue": 0,
        "endValue": total,
        "samples": stacks.iter().map(|stack| &stack.frames).collect::<Vec<_>>(),
        "weights": stacks.iter().map(|stack| stack.value).collect::<Vec<_>>(),
    })
}

impl<W: Write> Viewer for Speedscope<W> {
    fn take(&mut self, item: &TimelineItem<'_>) -> io::Result<()> {
        match item {
            TimelineItem::Step(step) => self.step(step),
            TimelineItem::Phase(phase) => {
                self.phase(phase);
                Ok(())
            }
            TimelineItem::Stack(stack) => {
                self.stacks.add(stack);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn finish(mut self: Box<Self>) -> io::Result<Written> {
        self.end_path()?;
        let (events, end_ns) = std::mem::take(&mut self.phases);
        if !events.is_empty() {
            let profile = json!({
                "type": "evented", "name": "phases", "unit": "nanoseconds",
                "startValue": 0, "endValue": end_ns, "events": events,
            });
            self.profiles.push(&mut self.out, &profile)?;
        }
        let first = self.profiles.written;
        for (name, unit, weight) in PROFILES {
            if self.stacks.knows(weight) {
                let profile = sampled(name, unit, &self.stacks.weighed(weight, 1));
                self.profiles.push(&mut self.out, &profile)?;
            }
        }
        let names = &self.stacks.names;
        let frames: Vec<Value> = names.iter().map(|name| json!({ "name": name })).collect();
        self.out.write_all(b"\n],\"shared\":")?;
        json::write(&mut self.out, &json!({ "frames": frames }))?;
        let active = first.min(self.profiles.written.saturating_sub(1));
        write!(self.out, ",\"activeProfileIndex\":{active},\"name\":")?;
        json::write(&mut self.out, &self.name)?;
        self.out.write_all(b",\"exporter\":")?;
        json::write(&mut self.out, &self.exporter)?;
        self.out.write_all(b"}\n")?;
        self.out.flush()?;
        let names = ("profile", "profiles");
        Ok(Written { items: self.profiles.written, names, notes: Vec::new() })
    }
}
