//! The figures of one process, or of several together, as lines of text: one for each topic.

use proctrace_findings::{Figure, Figures, Topic, Unit, bytes, count, time};

use crate::number::percent;

/// Lines of the figures: each topic, and its figures in words. `unknown` stands for those that are not known, which
/// are left out without it, and so are topics of which nothing is known.
pub fn usage(used: &Figures, unknown: Option<&str>) -> Vec<(Topic, String)> {
    let line = |topic: Topic| {
        let parts: Vec<String> = Figure::ALL
            .into_iter()
            .filter(|figure| figure.topic() == topic && !figure.is_raw())
            .filter_map(|figure| part(figure, used, unknown))
            .collect();
        (!parts.is_empty()).then(|| (topic, parts.join(" · ")))
    };
    Topic::ALL.into_iter().filter_map(line).collect()
}

/// "major faults 3", the name first: so it serves one and many.
fn part(figure: Figure, used: &Figures, unknown: Option<&str>) -> Option<String> {
    let value = used[figure];
    let text =
        value.map_or_else(|| unknown.map(str::to_owned), |value| Some(number(figure, value)))?;
    Some(match figure {
        // The label of its line says it.
        Figure::CpuNs => text,
        // Estimates, and what is rarely known or rarely anything.
        Figure::UserNs => format!("user about {}", time(value?)),
        Figure::SystemNs => {
            let whole_ns = used[Figure::UserNs]?.saturating_add(value?);
            format!("system {} ({})", time(value?), percent(value?, whole_ns))
        }
        Figure::ChildrenWaitedCpuNs if value.is_none_or(|ns| ns == 0) => return None,
        Figure::FileRssBytes if value.is_none() => return None,
        _ => format!("{} {text}", figure.label()),
    })
}

/// A figure with its unit.
fn number(figure: Figure, value: u64) -> String {
    match figure.unit() {
        Unit::Nanoseconds => time(value),
        Unit::Bytes => bytes(value),
        _ => count(value),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_figure_that_is_known_stands_in_one_line() {
        for figure in Figure::ALL {
            let mut used = Figures::default();
            used[figure] = Some(7_000_000);
            if figure == Figure::SystemNs {
                used[Figure::UserNs] = Some(0);
            }
            let lines = usage(&used, None);
            assert_eq!(lines.len(), usize::from(!figure.is_raw()), "{}: {lines:?}", figure.name());
            assert!(lines.iter().all(|(_, words)| words.contains('7')), "{lines:?}");
        }
    }

    #[test]
    fn what_is_not_known_is_left_out_or_marked() {
        let used = Figures::of(|figure| (figure == Figure::Opens).then_some(3));
        assert_eq!(usage(&used, None), [(Topic::Files, "successful opens 3".to_owned())]);
        let marked = usage(&used, Some("?"));
        assert_eq!(marked[0], (Topic::Cpu, "? · waited for a CPU ?".to_owned()));
        assert_eq!(marked[4], (Topic::Files, "successful opens 3 · failed look-ups ?".to_owned()));
    }
}
