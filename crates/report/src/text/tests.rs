//! Contents of the summary, and that it fits one screen.

use super::*;
use crate::costs::rows;
use crate::head::parts_in_lines;
use crate::screen::screen;
use proctrace_findings::{
    Category, Class, Correlations, DirectoryMisses, Health, Knowledge, Known, Law, Loss,
    MarkedPhase, Outcome, Run, Spawner, Summary, Unit,
};

fn shown(findings: &Findings, style: Style) -> String {
    screen(findings, "job.ptrace", style)
}

/// Findings in which every number has the maximum number of digits.
fn extreme() -> Findings {
    findings(u64::MAX / 2)
}

/// Findings in which every number is about `n`.
fn findings(n: u64) -> Findings {
    let name = "a\u{1b}[31mname-".repeat(20);
    let category = Category {
        class: Class::Command,
        group: "compiler".into(),
        name: name.clone(),
        processes: Some(n),
        there_before: None,
        forked: Some(n),
        threads: Some(n),
        execs: Some(n),
        cpu_ns: Some(n),
        user_ns: Some(n / 2),
        system_ns: Some(n / 2),
        system_percent: Some(99.0),
        system_low_percent: Some(98.0),
        system_high_percent: Some(100.0),
        ticks: Some(1e9),
        lookups_failed: Some(n),
        median_life_ns: Some(n),
        maxrss_bytes: Some(n),
        main_spawner: name.clone(),
        main_spawner_processes: Some(n - 1),
    };
    Findings {
        run: Run {
            command: vec![name.clone(); 5],
            scope: "command".into(),
            cgroup: None,
            cwd: "/".into(),
            host: name.clone(),
            kernel: name.clone(),
            started_unix_ns: 1_795_257_927_350_632_731,
            outcome: Some(Outcome::Signal(11)),
            cores: u32::MAX,
            wall_ns: Some(n / 2),
            recorded_ns: Some(n),
            after: None,
        },
        health: Health {
            complete: true,
            recording_now: false,
            lost: 0,
            losses: Vec::new(),
            damage: Vec::new(),
            laws: Vec::new(),
        },
        known: Vec::new(),
        advice: None,
        summary: Summary {
            cpu_ns: Some(n),
            user_ns: Some(n / 2),
            system_ns: Some(n / 2),
            ticks: Some(1e9),
            system_low_percent: Some(49.0),
            system_high_percent: Some(51.0),
            waited_system_ns: Some(n / 6),
            efficiency_percent: Some(1e9),
            others_percent: Some(1e9),
            waited_cpu_ns: Some(n / 3),
            unwaited_cpu_ns: Some(n / 3),
            detached_processes: Some(n),
            detached_cpu_ns: Some(n),
            processes: Some(n),
            threads: Some(n),
            execs: Some(n),
            execs_failed: Some(n),
            execs_searched: Some(n),
            peak_tasks: Some(n),
            peak_processes: Some(n),
            peak_running: Some(n),
            median_life_ns: Some(n),
            lookups_failed: Some(n),
            lookups_of_no_link: Some(0),
            lookups_in_vain: Some(n),
            lookups_in_vain_ns: Some(n),
            lookups_failed_by_family: [("open".to_owned(), n)].into(),
            opens: Some(n),
            switches_voluntary: Some(n),
            switches_involuntary: Some(n),
            faults_minor: Some(n),
            faults_major: Some(n),
            read_bytes: Some(n),
            write_bytes: Some(n),
            run_delay_ns: Some(n),
            maxrss_bytes: Some(n),
            maxrss_program: Some(name.clone()),
            alive_processes: Some(n),
        },
        categories: vec![category; 12],
        spawners: vec![
            Spawner {
                parent: name.clone(),
                child: name.clone(),
                processes: n,
                cpu_ns: Some(n),
                per_second: Some(1e6),
            };
            12
        ],
        lookups: vec![
            DirectoryMisses {
                directory: name.clone(),
                family: "readlink".into(),
                errno: "ENAMETOOLONG".into(),
                count: n,
                processes: n,
            };
            12
        ],
        ends: Some(crate::ends::tests::extreme(&name, n).into()),
        critical_path: Some(crate::path::tests::extreme(&name, n)),
        phases: Some(vec![
            MarkedPhase {
                name: name.clone(),
                mark: None,
                begin_ns: 0,
                end_ns: n,
                processes: Some(n),
                threads: Some(n),
                execs: Some(n),
                processes_ended: Some(n),
                failed_lookups: Some(n),
                cpu_ns: Some(n),
                user_ns: Some(n / 2),
                system_ns: Some(n / 2),
                cores_in_use: Some(1e9),
                peak_pss_bytes: Some(n),
            };
            12
        ]),
        detached: Vec::new(),
        memory: None,
        blind_spots: Vec::new(),
        correlations: Correlations {
            series: vec!["system CPU".into(), "user CPU".into()],
            r: vec![vec![Some(1.0), Some(-1.0)], vec![Some(-1.0), None]],
            n: 9,
            bin_ns: n,
            ..Correlations::default()
        },
    }
}

#[test]
fn a_summary_fits_a_screen_whatever_it_says() {
    for n in [1, 1_000_000, 99_000_000_000] {
        let text = shown(&findings(n), Style::default());
        assert!(text.lines().count() <= 23, "{text}");
        assert!(text.contains("\n  More     proctrace "), "{text}");
    }
}

/// Lines hold what can be typed, if they have room for it; else what is understood.
#[test]
fn commands_fit_whatever_a_recording_is_called() {
    let long = "d/".repeat(40);
    for (name, says) in [
        ("runs/job 1.ptrace".to_owned(), " 'runs/job 1.ptrace'"),
        (format!("{long}job 1.ptrace"), " …/'job 1.ptrace'"),
        (format!("{long}{}", "x".repeat(100)), " FILE"),
        ("proctrace.ptrace".to_owned(), "  More     proctrace "),
    ] {
        let text = screen(&findings(1), &name, Style::default());
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.lines().count() <= 23 && text.contains(says), "{text}");
    }
}

#[test]
fn no_figure_is_cut_whatever_it_is() {
    let text = shown(&extreme(), Style::default());
    assert!(!text.contains('\u{1b}'));
    let end = text.lines().position(str::is_empty).unwrap();
    for line in text.lines().take(end) {
        assert!(line.chars().count() <= 80, "{line}");
    }
    assert!(text.contains("\n           9,223,372,036,854,775,807 threads\n"), "{text}");
    assert_eq!(parts_in_lines("a 1 · b 2 · c 3", 9), ["a 1 · b 2", "c 3"]);
}

#[test]
fn what_is_wrong_is_said_first() {
    let mut findings = extreme();
    findings.health.complete = false;
    findings.health.losses =
        vec![Loss { kind: "fork".into(), reason: "ring_full".into(), count: 12 }];
    findings.health.damage = vec!["a block is corrupt at byte 7".into(); 9];
    findings.health.laws = vec![Law {
        name: "births",
        says: "every task that was made has exited or is still there",
        holds: Some(false),
        not_checked: None,
        expected: Some(3.0),
        found: Some(2.0),
        unit: "tasks",
    }];
    let text = full(&findings, &[], Style { colour: true, ..Style::default() });
    let lines: Vec<&str> = text.lines().collect();
    let at = |word: &str| lines.iter().position(|line| line.contains(word)).unwrap();
    let first = at("INCOMPLETE");
    assert!(first <= 4 && lines[first].starts_with("\u{1b}[1;31m"), "{text}");
    assert_eq!(at("LOST: 12 records of kind fork (ring_full)"), first + 1);
    assert_eq!(at("and in 6 more places"), first + 5);
    assert_eq!(at("CHECK FAILED"), first + 6);
    assert!(!text.contains("no records lost"), "{text}");
}

#[test]
fn counts_say_of_what_and_agree_with_their_nouns() {
    let mut findings = extreme();
    let s = &mut findings.summary;
    (s.peak_tasks, s.detached_processes) = (Some(119), Some(1));
    (s.cpu_ns, s.unwaited_cpu_ns, s.detached_cpu_ns) = (Some(10), Some(5), Some(5));
    (s.lookups_failed, s.lookups_of_no_link) = (Some(9_000), Some(2_000));
    s.lookups_in_vain = Some(7_000);
    let text = shown(&findings, Style { width: 200, lines: 60, ..Style::default() });
    assert!(text.contains("up to 119 tasks alive"), "{text}");
    assert!(text.contains("1 process outlived its parent"), "{text}");
    assert!(text.contains("7,000 failed look-ups"), "{text}");
}

#[test]
fn what_is_not_known_is_no_zero() {
    let mut findings = extreme();
    let s = &mut findings.summary;
    (s.lookups_in_vain, s.read_bytes, s.execs, s.opens) = (None, None, None, None);
    s.lookups_in_vain_ns = None;
    s.lookups_failed_by_family.clear();
    (s.user_ns, s.system_ns) = (None, None);
    findings.known = vec![Known {
        quantity: "split",
        state: Knowledge::Absent,
        why: Some("3 scheduler ticks hit the recording, and 30 are the least".into()),
    }];
    findings.health.laws = vec![Law {
        name: "lookups",
        says: "every failed look-up that a task counted has a record",
        holds: None,
        not_checked: Some("left out by --misses".into()),
        expected: None,
        found: None,
        unit: "look-ups",
    }];
    let text = full(&findings, &[], Style { width: 200, ..Style::default() });
    for line in [
        "Wasted   failed look-ups not known\n",
        "Storage  not known\n",
        " · execs not known (",
        "user and system not known (3 scheduler ticks hit the recording)",
        "No records lost; 0 of 1 consistency checks passed (not checked: lookups;",
    ] {
        assert!(text.contains(line), "{line} is not in\n{text}");
    }
}

#[test]
fn a_share_of_opens_is_not_one_of_all_look_ups() {
    let mut findings = findings(1_000);
    let s = &mut findings.summary;
    (s.lookups_in_vain, s.opens, s.execs) = (Some(24_139), Some(13_546), Some(501));
    s.lookups_failed_by_family = [("open".to_owned(), 12_004), ("stat".to_owned(), 12_135)].into();
    s.lookups_in_vain_ns = Some(12_300_000);
    let wasted = |findings: &Findings| {
        let rows = rows(findings, 69);
        let at = rows.iter().position(|row| row.label == "Wasted").unwrap();
        format!("{} | {}", rows[at].text, rows[at + 1].text)
    };
    let says = "24,139 failed look-ups, 48.2 per exec, about 12.3 ms | 47 % of opens failed";
    assert_eq!(wasted(&findings), says);
    // Failed stats alone have no percentage: successful ones are not counted.
    findings.summary.lookups_failed_by_family = [("stat".to_owned(), 24_139)].into();
    assert!(wasted(&findings).ends_with(" | 0 % of opens failed"));
}

#[test]
fn programs_come_by_cpu_time_and_the_numerous_are_named_below() {
    let mut findings = findings(1_000);
    let usual = findings.categories[0].clone();
    let program = |name: &str, processes: u64, cpu_ms: u64| Category {
        name: name.to_owned(),
        processes: Some(processes),
        there_before: None,
        cpu_ns: Some(cpu_ms * 1_000_000),
        user_ns: Some(cpu_ms * 1_000_000),
        system_ns: Some(0),
        system_percent: Some(0.0),
        main_spawner: "make".to_owned(),
        main_spawner_processes: Some(processes),
        ..usual.clone()
    };
    (findings.critical_path, findings.phases) = (None, None);
    findings.categories = vec![
        program("tr", 900, 1),
        program("sed", 800, 2),
        program("sh", 10, 3),
        program("gcc", 9, 4),
        program("make", 8, 5),
        program("ar", 7, 6),
        program("ld", 6, 79),
        program("cc1", 5, 900),
    ];
    let style = Style { width: 200, ..Style::default() };
    let text = shown(&findings, style);
    let table = text.split("\n  Programs ").nth(1).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    let cells: Vec<&str> = lines[1].split_whitespace().collect();
    assert_eq!(cells[..7], ["cc1", "900", "ms", "90", "%", "0", "%"], "{text}");
    assert!(lines[2].trim_start().starts_with("ld "), "{text}");
    let named = lines.iter().position(|line| line.starts_with("  and ")).unwrap();
    let says = format!("  and {} more, most processes first: 900 tr, 800 sed", 9 - named);
    assert!(named >= 6 && lines[named].starts_with(&says), "{text}");
    assert_eq!(lines[named + 1], "");
    findings.categories.truncate(3);
    assert!(!shown(&findings, style).contains("more, most processes"));
    // All processes that ran it ran another program afterwards; and what started only some of them.
    findings.categories[0] = Category {
        main_spawner: "-".to_owned(),
        main_spawner_processes: None,
        ..program("env", 0, 0)
    };
    findings.categories[1].main_spawner_processes = Some(200);
    let text = shown(&findings, style);
    let ends = |name: &str| {
        let line = text.lines().find(|line| line.trim_start().starts_with(name)).unwrap();
        line.split_whitespace().skip(9).collect::<Vec<_>>().join(" ")
    };
    assert_eq!((ends("env "), ends("sed ")), ("-".to_owned(), "make (25 %)".to_owned()));
}

/// Programs of two classes, only one of which has categories.
fn programs() -> Table {
    let classes = [["command"; 12].as_slice(), &["program"; 2]].concat();
    let categories = [["text"; 12].as_slice(), &["other"; 2]].concat();
    Table::new("programs", "Processes and threads by program")
        .text("class", "class", classes)
        .detail()
        .text("category", "category", categories)
        .text("program", "program", (0..14).map(|n| format!("p{n}")))
        .whole("processes", "processes", Unit::Count, (0..14).map(|n| Some(n * 1_000)))
        .note("Not known: it was not asked for.")
        .note("What it means.")
        .note("What else it means.")
}

#[test]
fn rows_are_as_many_as_asked_for() {
    let tables = [programs()];
    let text = full(&extreme(), &tables, Style { rows: 3, ..Style::default() });
    let commands = text.split("System commands\n").nth(1).unwrap();
    let lines: Vec<&str> = commands.lines().collect();
    assert_eq!(lines[3].split_whitespace().collect::<Vec<_>>(), ["text", "p2", "2,000"], "{text}");
    assert_eq!(lines[4], "  … 9 more rows: --all, or --top N");
    assert!(commands.lines().all(|line| line.chars().count() <= 80), "{text}");
    let text = full(&extreme(), &tables, Style { rows: usize::MAX, ..Style::default() });
    assert!(!text.contains("more rows"));
}

#[test]
fn programs_are_told_apart_by_class_and_notes_are_few() {
    let text = full(&findings(1_000), &[programs()], Style::default());
    assert!(!text.contains("The experiment's software"), "{text}");
    let (commands, others) =
        text.split("System commands\n").nth(1).unwrap().split_once("Other programs\n").unwrap();
    assert!(commands.contains("  category  program") && !commands.contains("Not known"), "{text}");
    // No rule matches any of them, and a column that only repeats this would be uninformative.
    assert!(others.starts_with("  program  processes\n"), "{text}");
    assert!(others.contains("  Not known: it was not asked for.\n  What it means.\n\n"), "{text}");
}
