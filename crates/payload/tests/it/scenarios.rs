//! Scenario files and plans: the numbers of the papers, scaling, and the handling of hostile files.

use std::fmt::Write as _;
use std::path::Path;

use proctrace_payload::{Declaration, PlanError, Request, Scenario, ScenarioError, catalog, stage};
use proptest::prelude::*;

fn scenario(name: &str) -> Scenario {
    Scenario::parse(name, catalog::text(name).unwrap()).unwrap()
}

fn request(scale: f64) -> Request {
    Request { scale, workers: 4, seed: 1, work: 1.0 }
}

fn declare(name: &str, scale: f64) -> Declaration {
    scenario(name).plan(request(scale)).unwrap().declare().unwrap()
}

/// Commands, O2 processes and threads, without the runner and the supervisor.
fn by_category(declared: &Declaration) -> [u64; 3] {
    let is_o2 = |name: &str| name.starts_with("o2-");
    let count = |o2: bool| -> u64 {
        let ours = declared.programs.iter().filter(|(name, _)| is_o2(name) == o2);
        ours.map(|(_, counts)| counts.processes).sum()
    };
    assert_eq!(declared.programs["o2_dpg_workflow_runner.py"].processes, 1);
    [count(false) - 2, count(true), declared.threads]
}

#[test]
fn the_o2_workflows_have_the_figures_of_the_paper() {
    let (before, after) = (declare("alice-o2-before", 1.0), declare("alice-o2-after", 1.0));
    let (b, a) = (by_category(&before), by_category(&after));
    assert_eq!(b.iter().sum::<u64>(), 72_500);
    assert_eq!(a.iter().sum::<u64>(), 38_300);
    let change = |b: u64, a: u64| ((a as f64 / b as f64 - 1.0) * 100.0).round();
    assert_eq!(change(72_500, 38_300), -47.0);
    assert_eq!([0, 1, 2].map(|i| change(b[i], a[i])), [-86.0, -23.0, -16.0]);
    assert_eq!(b, [31_800, 6_000, 34_700]);
    assert_eq!((before.detached, after.detached), (100, 0));
    // 30 libraries in the last of 48 directories: 47 failed opens for each by 58 execs.
    assert_eq!(before.failed_lookups.len(), 47);
    assert!(before.failed_lookups.iter().all(|misses| misses.count == 100 * 57 * 30));
    assert!(after.failed_lookups.is_empty());
}

#[test]
fn counts_are_in_proportion() {
    for name in ["alice-o2-before", "alice-o2-after"] {
        let whole = by_category(&declare(name, 1.0));
        for percent in [1, 7, 33, 250] {
            let part = by_category(&declare(name, f64::from(percent) / 100.0));
            assert_eq!(
                part.map(|count| count * 100),
                whole.map(|count| count * u64::from(percent as u32))
            );
        }
    }
}

#[test]
fn every_scenario_can_be_planned_at_its_own_size() {
    for name in catalog::names() {
        let scenario = scenario(name);
        assert_eq!(scenario.name, name);
        for line in [scenario.about.title(), scenario.about.paper(), scenario.about.look_for()] {
            assert!(line.len() > 5, "{name}");
        }
        let plan = scenario.plan(scenario.default_request()).unwrap();
        let declared = plan.declare().unwrap();
        assert!(declared.processes >= 2 && !declared.phases.is_empty(), "{name}");
        assert_eq!(declared.execs, declared.programs.values().map(|counts| counts.execs).sum());
    }
}

#[test]
fn the_readme_lists_every_scenario() {
    let readme = include_str!("../../../../fixtures/payloads/README.md");
    for name in catalog::names() {
        assert!(readme.contains(&format!("| `{name}` |")), "{name}");
    }
}

#[test]
fn the_catalogue_has_every_file() {
    let directory =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("../../fixtures/payloads");
    let files = std::fs::read_dir(directory).unwrap().flatten().map(|entry| entry.path());
    for path in files.filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        let name = path.file_stem().unwrap().to_str().unwrap();
        assert!(catalog::text(name).is_some(), "{name}");
    }
}

#[test]
fn a_plan_follows_from_its_seed() {
    for name in ["athena-mp", "cmssw-overlay"] {
        let plan = |seed| scenario(name).plan(Request { seed, ..request(0.1) }).unwrap();
        assert!(plan(5) == plan(5));
        assert!(plan(5) != plan(6));
        // The declarations differ only in the seed.
        let declared = |seed| Declaration { seed: 0, ..plan(seed).declare().unwrap() };
        assert_eq!(declared(5), declared(6));
    }
}

#[test]
fn events_are_dealt_out_completely() {
    for workers in [1, 3, 8, 500] {
        let request = Request { workers, ..request(0.1) };
        let declare = |name| scenario(name).plan(request).unwrap().declare().unwrap();
        let jobs = declare("athena-mj").events.unwrap();
        assert_eq!(jobs.per_worker.unwrap().iter().sum::<u64>(), jobs.total);
        let late = declare("athena-mp-late").events.unwrap();
        let each = late.per_worker.unwrap();
        assert_eq!(each.len(), workers as usize);
        // The first event is the mother process's.
        assert_eq!(each.iter().sum::<u64>(), late.total - 1);
        assert!(each.iter().max().unwrap() - each.iter().min().unwrap() <= 1);
        assert_eq!(declare("athena-mp").events.unwrap().per_worker, None);
    }
}

const STORM: &str = "[scenario]\ntitle = \"t\"\npaper = \"p\"\nlook_for = \"l\"\n\
                     default_scale = 1\ndefault_workers = 2\n\n[storm]\n";

fn refused(text: &str) -> ScenarioError {
    Scenario::parse("bad.toml", text).unwrap_err()
}

#[test]
fn an_error_names_file_line_column_and_field() {
    let alice = |from: &str, to: &str| {
        let text = catalog::text("alice-o2-before").unwrap();
        assert!(text.contains(from), "{from}");
        text.replacen(from, to, 1)
    };
    for (text, line, column, field, part) in [
        (format!("{STORM}of = {{ fork = {{}} }}\ncount = -1\n"), 10, 9, "storm.count", "from 1 to"),
        (
            format!("{STORM}of = {{ fork = {{}} }}\ncoutn = 1\n"),
            10,
            1,
            "storm.coutn",
            "unknown field",
        ),
        (
            format!("{STORM}of = {{ knife = {{}} }}\ncount = 1\n"),
            9,
            8,
            "storm.of.knife",
            "unknown variant",
        ),
        (format!("{STORM}count = 1\n"), 8, 1, "storm", "missing field `of`"),
        (STORM.replace("= 2", "= 0"), 6, 19, "scenario.default_workers", "from 1 to 1024"),
        (STORM.replace("= 1", "= nan"), 5, 17, "scenario.default_scale", "above 0"),
        (STORM.replace("\"t\"", "\"\\u0007\""), 2, 9, "scenario.title", "control"),
        (STORM.replace("title", "\u{e9} ="), 2, 5, "scenario", "extra `=`"),
        (STORM.replace("[storm]", ""), 9, 1, "scenario", "exactly one of"),
        (
            format!("{STORM}of = {{ compute = {{ work = -1 }} }}\ncount = 1\n"),
            9,
            27,
            "storm.of.compute.work",
            "from 0 to",
        ),
        (alice("ticks = 2\n", "ticks = 0\n"), 0, 9, "alice.task.ticks", "from 1 to"),
        (alice("ticks = 2\n", ""), 0, 1, "alice.task", "task sgnsim needs ticks"),
        (alice("\"poll\"", "\"follow\""), 0, 9, "alice.task.ticks", "no ticks"),
        (
            alice("threads = 7 }", "threads = 7777 }"),
            0,
            0,
            "alice.task.devices.threads",
            "from 0 to 512",
        ),
        (alice("\"o2-sim\"", "\"grep\""), 0, 11, "alice.task.program", "begins with o2-"),
        (alice("-n 50", "-n 50; rm"), 0, 0, "alice.task.arguments", "letters, digits"),
        (alice("name = \"sgnsim\"", "name = \"../x\""), 0, 8, "alice.task.name", "with a dot"),
    ] {
        let error = refused(&text);
        let told = error.to_string();
        assert_eq!(error.field, field, "{told}");
        assert!(error.message.contains(part), "{told}");
        assert!(told.starts_with(&format!("bad.toml:{}:{}: ", error.line, error.column)), "{told}");
        for (expected, is) in [(line, error.line), (column, error.column)] {
            assert!(expected == 0 || expected == is, "{told}");
        }
    }
}

#[test]
fn sizes_are_bounded_before_anything_is_made() {
    for (name, scale) in [("alice-o2-before", 100.0), ("storm-fork", 100.0), ("storm-fork", 1e300)]
    {
        let planned = scenario(name).plan(request(scale));
        let declared = planned.and_then(|plan| plan.declare().map(|_| ()));
        // 100 times the ALICE job is 7 million tasks, and the plan itself is still small.
        assert!(
            declared.is_ok()
                || matches!(declared, Err(PlanError::TooMany { .. } | PlanError::Outside { .. }))
        );
    }
    for request in [
        request(0.0),
        request(-1.0),
        request(f64::NAN),
        request(f64::INFINITY),
        request(101.0),
        Request { workers: 0, ..request(1.0) },
        Request { workers: 1025, ..request(1.0) },
        Request { work: f64::NAN, ..request(1.0) },
        Request { work: -1.0, ..request(1.0) },
    ] {
        let error = scenario("athena-mp").plan(request).unwrap_err();
        assert!(matches!(error, PlanError::Outside { .. }), "{request:?}");
    }
    // Each field is within its bounds, but together they are too much.
    let text = catalog::text("alice-o2-before").unwrap();
    let many = text
        .replace("timeframes = 100", "timeframes = 10000")
        .replace("ticks = 1\n", "ticks = 10000\n");
    let plan = Scenario::parse("many", &many).unwrap().plan(request(1.0));
    assert!(matches!(plan.and_then(|plan| plan.declare()), Err(PlanError::TooMany { .. })));
    let mut wide = String::from("libraries = [");
    for n in 0..20_000 {
        write!(wide, "\"L{n}\",").unwrap();
    }
    let wide = text.replace("libraries = [", &wide);
    let mut devices = String::from("devices = [");
    for n in 0..10_000 {
        write!(devices, "{{ id = \"d{n}\", threads = 1 }},").unwrap();
    }
    let wide = wide.replacen("devices = [", &devices, 1);
    let plan = Scenario::parse("wide", &wide).unwrap().plan(request(1.0));
    assert!(matches!(plan, Err(PlanError::TooMany { .. })));
}

#[test]
fn a_plan_is_put_into_a_directory_as_it_says() {
    let place = tempfile::tempdir().unwrap();
    let work = place.path().canonicalize().unwrap();
    let plan = scenario("alice-o2-after").plan(request(0.01)).unwrap();
    let path = std::env::var_os("PATH").unwrap();
    let staged = stage(&plan, &work, &path).unwrap();
    assert_eq!(staged.path, work.join("bin/o2_dpg_workflow_runner.py"));
    assert!(work.join("bin/o2-sim-device-runner").is_file());
    assert_eq!(std::fs::read_dir(work.join("lib/all")).unwrap().count(), 30);
    assert_eq!(std::fs::read_dir(work.join("lib/47")).unwrap().count(), 30);
    let search = staged.environment.iter().find(|(name, _)| name == "LD_LIBRARY_PATH").unwrap();
    assert_eq!(search.1, work.join("lib/all").into_os_string());
    let nodes = std::fs::read_dir(work.join("plan")).unwrap().flatten();
    for node in nodes {
        assert!(!std::fs::read_to_string(node.path()).unwrap().contains("@work@"));
    }
    // A missing program of the machine is reported before anything runs.
    let other = tempfile::tempdir().unwrap();
    let error = stage(&plan, other.path(), "/nowhere".as_ref()).unwrap_err();
    assert!(error.to_string().contains("in PATH"), "{error}");
    let odd = place.path().join("a b");
    assert!(stage(&plan, &odd, &path).is_err());
}

proptest! {
    #[test]
    fn any_text_is_an_error_or_a_scenario(text in any::<String>()) {
        let _ = Scenario::parse("any.toml", &text);
    }

    #[test]
    fn a_broken_file_is_an_error_with_a_place(
        which in 0..16_usize,
        at in any::<prop::sample::Index>(),
        length in 0..40_usize,
        with in "[\\[\\]{}=\"#\n.a-z0-9é-]{0,12}",
    ) {
        let text = catalog::text(catalog::names().nth(which).unwrap()).unwrap();
        let start = at.index(text.len());
        let start = (0..=start).rev().find(|at| text.is_char_boundary(*at)).unwrap();
        let end = (start + length..=text.len()).find(|at| text.is_char_boundary(*at));
        let broken = format!("{}{with}{}", &text[..start], &text[end.unwrap_or(text.len())..]);
        match Scenario::parse("broken.toml", &broken) {
            Ok(scenario) => {
                // Whatever it has become, it is either planned or rejected.
                let planned = scenario.plan(request(0.01));
                let _ = planned.and_then(|plan| plan.declare().map(|_| ()));
            }
            Err(error) => {
                let lines = broken.split('\n').count();
                prop_assert!((1..=lines).contains(&error.line), "{error}");
                let line = broken.split('\n').nth(error.line - 1).unwrap();
                prop_assert!(error.column <= line.chars().count() + 1, "{error}");
                prop_assert!(!error.message.is_empty());
            }
        }
    }

    #[test]
    fn larger_is_never_less(which in 0..16_usize, small in 0.01..1.0_f64, more in 1.0..3.0_f64) {
        let name = catalog::names().nth(which).unwrap();
        let (less, more) = (declare(name, small), declare(name, small * more));
        prop_assert!(less.processes <= more.processes);
        prop_assert!(less.threads <= more.threads);
        prop_assert!(less.execs <= more.execs);
        let misses = |declared: &Declaration| -> u64 {
            declared.failed_lookups.iter().map(|misses| misses.count).sum()
        };
        prop_assert!(misses(&less) <= misses(&more));
    }
}
