//! Flame graphs of weighted stacks: ancestry, and fraction of the total.
//!
//! Every frame is as wide as the total weight of the stacks that share its prefix, and is drawn on
//! top of its parent frame (B. Gregg, "The Flame Graph", CACM 59(6), 2016).

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use proctrace_findings::{Chart, Flame};

use super::backend::{Drawn, Size, Surface};
use super::elements::Pen;
use super::look::{self, AXIS, Colour, FAINT_INK, LABEL, LIGHT, LINE, MARGIN, TICK};
use super::page::Page;
use crate::number::{count, percent, time};

const WIDTH: f64 = 1200.0;
const FRAME: f64 = 18.0;
const ROOT: Colour = look::rgb(0xdddddd);
/// Minimum visible frame width; the number of narrower frames is reported.
const WIDTH_MIN: f64 = 0.3;
/// Maximum depth of a stack; higher ones are truncated, and this is reported: a chain of ten thousand forks cannot be
/// displayed.
const DEPTH_MAX: usize = 80;

/// A frame with all stacks that share its prefix.
struct Frame<'a> {
    name: &'a str,
    weight: u64,
    children: Vec<usize>,
}

pub(super) fn draw<S: Surface>(
    canvas: &Rc<RefCell<S>>,
    chart: &Chart,
    flame: &Flame,
) -> Drawn<Size> {
    let (frames, cut) = tree(&flame.folded);
    let total = frames[0].weight;
    let mut page = Page::new(canvas, WIDTH, &chart.title)?;
    let unit = (WIDTH - 2.0 * MARGIN) / total.max(1) as f64;
    // Converts microseconds to seconds.
    let (of_time, weighs) = match flame.weighs.strip_prefix("µs of ") {
        Some(what) => (true, what),
        None => (false, &*flame.weighs),
    };
    let said = |weight: u64| match of_time {
        true => format!("{} of {weighs}", time(weight.saturating_mul(1_000))),
        false => format!("{} {weighs}", count(weight)),
    };

    // The position of each frame: depth first without recursion, the heaviest first.
    let mut placed: Vec<(usize, usize, f64)> = Vec::new();
    let mut narrow = 0_u64;
    let mut to_do = vec![(0, 0, MARGIN)];
    let mut colours = vec![ROOT; frames.len()];
    while let Some((at, depth, x)) = to_do.pop() {
        placed.push((at, depth, x));
        let mut children = frames[at].children.clone();
        children.sort_by(|a, b| {
            frames[*b].weight.cmp(&frames[*a].weight).then(frames[*a].name.cmp(frames[*b].name))
        });
        let mut x = x;
        let mut left = colours[at];
        for child in children {
            let width = frames[child].weight as f64 * unit;
            if width >= WIDTH_MIN {
                left = colour(frames[child].name, [colours[at], left]);
                colours[child] = left;
                to_do.push((child, depth + 1, x));
            } else {
                narrow += 1;
            }
            x += width;
        }
    }
    let depth = placed.iter().map(|(_, depth, _)| depth + 1).max().unwrap_or(1);
    let top = page.take(depth as f64 * FRAME + 4.0);
    let bottom = top + depth as f64 * FRAME;
    for (at, depth, x) in placed {
        let frame = &frames[at];
        let (width, y) = (frame.weight as f64 * unit, bottom - (depth + 1) as f64 * FRAME);
        let weight = format!("{}, {}", said(frame.weight), percent(frame.weight, total));
        let shape = (x, y + 0.5, (width - 0.5).max(WIDTH_MIN), FRAME - 1.0);
        page.told_rect(shape, colours[at], &format!("{}: {weight}", frame.name))?;
        let text = if at == 0 { format!("all: {weight}") } else { frame.name.to_owned() };
        let room = width - 6.0;
        // Two letters of a name are not informative.
        if room > 24.0 {
            page.text(x + 3.0, y + FRAME / 2.0, &TICK.fit_name(&text, room), TICK)?;
        }
    }
    page.line((MARGIN, bottom), (WIDTH - MARGIN, bottom), Pen::of(AXIS, 1.0))?;
    let weighs = format!("width: {weighs}; each frame was started by the one below it");
    let y = page.take(LINE + 4.0) + LINE / 2.0 + 2.0;
    page.text(MARGIN, y, &LABEL.fit(&weighs, page.inner()), LABEL.colour(FAINT_INK))?;
    let mut notes = chart.notes.clone();
    if narrow > 0 {
        notes.push(format!(
            "{} frames are too narrow to draw; they and the frames above them are omitted.",
            count(narrow)
        ));
    }
    if cut > 0 {
        notes.push(format!("{} stacks are truncated at {DEPTH_MAX} frames.", count(cut)));
    }
    page.finish(&notes)
}

/// Builds the tree of frames, root first; also returns the number of truncated stacks.
fn tree(folded: &[String]) -> (Vec<Frame<'_>>, u64) {
    let mut frames = vec![Frame { name: "all", weight: 0, children: Vec::new() }];
    let mut known: HashMap<(usize, &str), usize> = HashMap::new();
    let mut cut = 0;
    for line in folded {
        let Some((stack, weight)) = line.rsplit_once(' ') else { continue };
        let Ok(weight) = weight.parse::<u64>() else { continue };
        frames[0].weight = frames[0].weight.saturating_add(weight);
        let mut at = 0;
        for (depth, name) in stack.split(';').enumerate() {
            if depth + 1 >= DEPTH_MAX {
                cut += 1;
                break;
            }
            let next = frames.len();
            let child = *known.entry((at, name)).or_insert(next);
            if child == next {
                frames.push(Frame { name, weight: 0, children: Vec::new() });
                frames[at].children.push(child);
            }
            frames[child].weight = frames[child].weight.saturating_add(weight);
            at = child;
        }
    }
    (frames, cut)
}

/// The colour of a name, the same in every figure; the next one if the frame below or to the left
/// already has it.
fn colour(name: &str, neighbours: [Colour; 2]) -> Colour {
    let first = look::hash(name);
    (0..LIGHT.len())
        .map(|next| LIGHT[(first + next) % LIGHT.len()])
        .find(|colour| !neighbours.contains(colour))
        .unwrap_or(ROOT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_that_begin_alike_share_their_frames() {
        let folded = ["a;b 3", "a;c 2", "a 1", "d;b 4", "nonsense", "x y"].map(String::from);
        let (frames, cut) = tree(&folded);
        let found: Vec<_> = frames.iter().map(|frame| (frame.name, frame.weight)).collect();
        assert_eq!(found, [("all", 10), ("a", 6), ("b", 3), ("c", 2), ("d", 4), ("b", 4)]);
        assert_eq!(cut, 0);
    }

    #[test]
    fn neighbours_have_colours_of_their_own() {
        let own = colour("sh", [ROOT, ROOT]);
        let next = colour("sh", [own, ROOT]);
        assert_ne!(own, next);
        assert!(![own, next].contains(&colour("sh", [own, next])));
    }

    #[test]
    fn a_long_chain_is_cut() {
        let deep = format!("{} 5", ["fork"; 10_000].join(";"));
        let (frames, cut) = tree(std::slice::from_ref(&deep));
        assert_eq!((frames.len(), cut), (DEPTH_MAX, 1));
    }
}
