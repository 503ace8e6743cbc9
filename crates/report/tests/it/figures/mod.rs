//! Every kind of figure from synthetic data: well-formed, complete and without overlaps. The
//! pictures are left in CARGO_TARGET_TMPDIR/figures for inspection.

mod bitmap;
mod samples;
mod structure;

use std::path::PathBuf;

use proctrace_findings::{
    Axis, Bars, Chart, ChartBody, Estimate, Flame, HeatMap, Histogram, IntervalGroup, Intervals,
    Lines, Mark, Point, Scatter, Series, Step, Unit, Waterfall,
};
use proctrace_report::{PictureFormat, chart_svg};

use self::bitmap::Bitmap;
use self::structure::Picture;

fn directory() -> PathBuf {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("figures");
    std::fs::create_dir_all(&directory).expect("a directory of its own");
    directory
}

/// Draws a figure, saves it, and checks the general invariants.
fn picture(name: &str, chart: &Chart) -> Picture {
    let svg = chart_svg(chart);
    std::fs::write(directory().join(format!("{name}.svg")), &svg).expect("a file in it");
    let picture = Picture::parse(&svg);
    picture.nothing_sticks_out(name);
    picture.nothing_overlaps(name);
    picture
}

#[test]
fn each_kind_shows_everything_it_was_given() {
    for (name, chart, texts) in samples::all() {
        let picture = picture(name, &chart);
        for text in texts {
            assert!(picture.says(&text), "{name} does not say {text:?}:\n{:?}", picture.texts());
        }
        for note in &chart.notes {
            assert!(picture.says_in_lines(note), "{name} does not say {note:?}");
        }
    }
}

#[test]
fn each_kind_is_a_bitmap_with_the_same_contents() {
    for (name, chart, _) in samples::all() {
        let bytes = PictureFormat::Png.chart(&chart).expect("a bitmap");
        std::fs::write(directory().join(format!("{name}.png")), &bytes).expect("a file in it");
        Bitmap::decode(&bytes).shows(name, &Picture::parse(&chart_svg(&chart)));
    }
}

#[test]
fn hostile_names_are_bitmaps_too() {
    let name = format!("漢字\u{202e}\u{1b}[31m</text>{}", "very-long-name".repeat(4000));
    for (kind, chart) in samples::named(&name) {
        let bytes = PictureFormat::Png.chart(&chart).expect("a bitmap");
        Bitmap::decode(&bytes).shows(kind, &Picture::parse(&chart_svg(&chart)));
    }
}

#[test]
fn a_bitmap_that_would_be_too_large_is_refused() {
    let names: Vec<String> = (0..400).map(|n| format!("name {n}")).collect();
    let map = HeatMap { values: vec![vec![Some(0.5); names.len()]; names.len()], names };
    let error = PictureFormat::Png.chart(&Chart::new("large", "Large", ChartBody::HeatMap(map)));
    let error = error.expect_err("more than the memory for it").to_string();
    assert!(error.starts_with("the figure is too large for PNG: 12969 × "), "{error}");
}

#[test]
fn names_from_outside_are_only_text() {
    for (what, name) in [
        ("markup", "</text><script>alert(1)</script>\"'&amp;<!--".to_owned()),
        ("control", "a\u{1b}[31m\u{0}\u{202e}b\u{fffe}\r\n".to_owned()),
        ("long", "very-long-name".repeat(4000)),
        ("wide", "漢字WWWWWWWWWWWWWWWWWWWW@@@@".repeat(9)),
        ("empty", String::new()),
    ] {
        for (kind, chart) in samples::named(&name) {
            let picture = picture(&format!("{kind}-{what}"), &chart);
            assert!(picture.elements.iter().all(|element| element != "script"), "{kind} {what}");
        }
    }
}

#[test]
fn hostile_names_are_no_markup() {
    for name in proctrace_fixtures::hostile::texts() {
        for (kind, chart) in samples::named(&name) {
            proctrace_fixtures::hostile::svg(&format!("{kind} {name:?}"), &chart_svg(&chart));
        }
    }
}

#[test]
fn no_data_is_a_picture_too() {
    let odd = [None, Some(f64::NAN), Some(f64::INFINITY), Some(-1e300), Some(0.0)];
    for logarithmic in [false, true] {
        let axis = Axis { title: "nothing".into(), unit: Unit::Bytes, logarithmic };
        for (case, values) in [Vec::new(), odd.to_vec()].into_iter().enumerate() {
            let many = values.len();
            let series = vec![Series { name: "none".into(), values: values.clone() }; many.min(2)];
            let plain: Vec<f64> = values.iter().flatten().copied().collect();
            let bodies = [
                ChartBody::Bars(Bars {
                    rows: vec!["row".into(); many],
                    axis: axis.clone(),
                    series: series.clone(),
                    stacked: false,
                }),
                ChartBody::Lines(Lines {
                    x_axis: axis.clone(),
                    y_axis: axis.clone(),
                    x: plain.clone(),
                    series: series.clone(),
                    stacked: false,
                    points: true,
                    marks: plain.iter().map(|at| Mark { at: *at, name: "m".into() }).collect(),
                    moments: plain.iter().map(|at| Mark { at: *at, name: "m".into() }).collect(),
                }),
                ChartBody::Histogram(Histogram {
                    axis: axis.clone(),
                    count_axis: axis.clone(),
                    edges: plain.clone(),
                    series,
                    marks: plain.iter().map(|at| Mark { at: *at, name: "m".into() }).collect(),
                }),
                ChartBody::HeatMap(HeatMap {
                    names: vec!["a".into(); many],
                    values: vec![values.clone(); many.saturating_sub(1)],
                }),
                ChartBody::Scatter(Scatter {
                    x_axis: axis.clone(),
                    y_axis: axis.clone(),
                    points: plain
                        .iter()
                        .map(|at| Point { x: *at, y: *at, weight: *at, name: "p".into() })
                        .collect(),
                }),
                ChartBody::Flame(Flame {
                    weighs: "processes".into(),
                    folded: vec![String::new(), ";;; 0".into(), "x".into(), " 1".into()],
                }),
                ChartBody::Intervals(Intervals {
                    axis: axis.clone(),
                    reference: plain.first().copied(),
                    groups: vec![IntervalGroup {
                        name: "group".into(),
                        noise: plain.first().map(|at| (*at, f64::NAN)),
                        estimates: plain
                            .iter()
                            .map(|at| Estimate {
                                name: "e".into(),
                                value: *at,
                                low: f64::NAN,
                                high: -*at,
                                comparable: false,
                            })
                            .collect(),
                    }],
                }),
                ChartBody::Waterfall(Waterfall {
                    axis: axis.clone(),
                    start: Mark { at: plain.first().copied().unwrap_or(0.0), name: "from".into() },
                    steps: plain
                        .iter()
                        .map(|change| Step { name: "step".into(), change: *change })
                        .collect(),
                    end: Mark { at: 0.0, name: "to".into() },
                }),
            ];
            for (at, body) in bodies.into_iter().enumerate() {
                picture(&format!("odd-{logarithmic}-{case}-{at}"), &Chart::new("odd", "Odd", body));
            }
        }
    }
}

#[test]
fn a_gantt_chart_of_nonsense_is_a_picture() {
    for (name, mut chart, _) in samples::all() {
        let ChartBody::Gantt(gantt) = &mut chart.body else { continue };
        for (at, bar) in gantt.bars.iter_mut().enumerate() {
            match at % 5 {
                0 => (bar.begin_ns, bar.end_ns) = (u64::MAX, 0),
                1 => (bar.begin_ns, bar.end_ns) = (0, u64::MAX),
                2 => (bar.lane, bar.name) = (u32::MAX, u32::MAX),
                3 => (bar.parent, bar.depth) = (Some(u32::MAX), u32::MAX),
                _ => bar.pid = i32::MIN,
            }
        }
        for strip in &mut gantt.strips {
            strip.series.iter_mut().for_each(|series| series.values.truncate(7));
            strip.series[0].values[1] = Some(f64::NAN);
            strip.series[0].values[2] = Some(f64::INFINITY);
            strip.series[0].values[3] = Some(-1e300);
        }
        picture(&format!("nonsense-{name}"), &chart);
        Bitmap::decode(&PictureFormat::Png.chart(&chart).expect("a bitmap"));
        let ChartBody::Gantt(gantt) = &mut chart.body else { continue };
        (gantt.from_ns, gantt.until_ns) = (0, u64::MAX);
        gantt.edges_ns = vec![u64::MAX, 0];
        picture(&format!("nonsense-{name}-for-ever"), &chart);
        let ChartBody::Gantt(gantt) = &mut chart.body else { continue };
        (gantt.from_ns, gantt.until_ns) = (u64::MAX, 0);
        (gantt.edges_ns, gantt.lanes) = (Vec::new(), Vec::new());
        picture(&format!("nonsense-{name}-at-no-time"), &chart);
    }
}
