//! `proctrace report --html` in a real browser: it loads, finds, zooms, filters and explains, without network
//! and without an error in the console.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::browser::Browser;
use crate::common::proctrace;
use proctrace_analysis::{Recording, Rules, analyse};
use proctrace_findings::{Lane, PackedColumn, PackedTable, PageData};
use proctrace_web::{Page, render};
use serde_json::Value;
use tempfile::TempDir;

/// WebDriver's code of the Enter key.
const ENTER: &str = "\u{e007}";

fn trace(name: &str) -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces")
        .join(name)
}

/// The page of a recording.
fn page(trace: &Path) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("report.html");
    let output = proctrace().arg("report").arg(trace).arg("--html").arg(&page).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (directory, page)
}

/// The first row of an SQL query.
fn query(trace: &Path, sql: &str) -> Vec<u64> {
    let output = proctrace().args(["query", "--format", "json", sql]).arg(trace).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let rows: Value = serde_json::from_str(&text).unwrap();
    let first = rows.as_array().or_else(|| rows["rows"].as_array()).unwrap()[0].clone();
    match first {
        Value::Object(row) => row.values().map(|value| value.as_u64().unwrap()).collect(),
        Value::Array(row) => row.iter().map(|value| value.as_u64().unwrap()).collect(),
        other => panic!("{other}"),
    }
}

fn rows(browser: &Browser) -> u64 {
    let rows = browser.js(
        "return document.querySelector('#tables table.grid').getAttribute('aria-rowcount') - 1",
    );
    rows.as_u64().unwrap()
}

/// The two times in a data attribute of the chart.
fn times(browser: &Browser, name: &str) -> Option<(f64, f64)> {
    let text =
        browser.js(&format!("return document.querySelector('.chart canvas').dataset.{name}"));
    let (from, to) = text.as_str()?.split_once(' ')?;
    Some((from.parse().unwrap(), to.parse().unwrap()))
}

#[test]
fn a_page_has_what_the_recording_has() {
    let trace = trace("alice-o2-before.ptrace");
    let (_directory, page) = page(&trace);
    assert_eq!(fs::metadata(&page).unwrap().permissions().mode() & 0o777, 0o600);
    let browser = Browser::start(1400, 1000);
    browser.open(&page);

    let processes = query(&trace, "SELECT count(*) FROM processes")[0];
    let label = browser.computed(&browser.element(".chart canvas"), "computedlabel");
    assert!(label.contains(&format!("Timeline of {processes} processes")), "{label}");
    assert!(browser.text(".trust").contains("No records lost"));
    let programs = query(
        &trace,
        "SELECT count(*) FROM (SELECT DISTINCT program, category, class FROM processes)",
    )[0];
    assert_eq!(rows(&browser), programs);
    browser.click("#tab-processes");
    assert_eq!(rows(&browser), processes);
    // This recording has no waits: that is said, and not shown as none.
    browser.click("#tab-waits");
    assert!(
        browser.text("#tables-panel").starts_with("Not known: "),
        "{}",
        browser.text("#tables-panel")
    );
    assert!(browser.text(".figures").contains("critical path not known"));

    // Programs, by CPU time; then by number of processes.
    browser.click("#tab-programs");
    assert_eq!(browser.js("return document.querySelector('th[aria-sort]').textContent"), "CPU");
    browser.js("[...document.querySelectorAll('th button')].find((b) => b.textContent === 'processes').click()");
    let largest = "SELECT count(*) AS n FROM processes GROUP BY program, category, class ORDER BY n DESC LIMIT 1";
    let first = browser.text("#tables tbody tr:not(.filler) td:nth-child(4)");
    assert_eq!(first, query(&trace, largest)[0].to_string());
    assert_eq!(
        browser.js("return document.querySelector('th[aria-sort]').getAttribute('aria-sort')"),
        "descending"
    );

    // A table of its own filters and copies.
    browser.keys("#tables input[type=search]", "grep");
    let like = "SELECT count(*) FROM (SELECT DISTINCT program, category, class FROM processes WHERE program LIKE '%grep%' OR category LIKE '%grep%')";
    assert_eq!(rows(&browser), query(&trace, like)[0]);
    browser.js("navigator.clipboard.writeText = (text) => { window.copied = text; return Promise.resolve(); };
        [...document.querySelectorAll('#tables .bar button')].find((b) => b.textContent === 'Copy').click()");
    let copied = browser.js("return window.copied");
    assert!(
        copied.as_str().unwrap().starts_with("program\tcategory\tclass\tprocesses\t"),
        "{copied}"
    );

    // Every tab and every section shows something.
    for tab in ["commands", "pairs", "misses", "ends", "path"] {
        browser.click(&format!("#tab-{tab}"));
        assert!(!browser.text("#tables-panel").is_empty(), "{tab}");
    }
    let sections = browser.js("const all = [...document.querySelectorAll('#sections > details')];
        all.forEach((one) => { one.open = true; }); return all.length");
    assert!(sections.as_u64().unwrap() > 12, "{sections}");
    browser.wait("return [...document.querySelectorAll('#sections .content')].every((one) => one.childElementCount > 0)");
    browser.wait("document.querySelectorAll('#sections img').forEach((i) => { i.loading = 'eager'; });
        return [...document.querySelectorAll('#sections img')].every((i) => i.complete && i.naturalWidth > 100)");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn people_find_zoom_and_select() {
    let trace = trace("alice-o2-before.ptrace");
    let (_directory, page) = page(&trace);
    let browser = Browser::start(1400, 1000);
    browser.open(&page);

    // By argument: the chart shows the first, the tables only these.
    browser.keys("#search", "pid,ppid");
    let found = query(
        &trace,
        "SELECT count(DISTINCT process_id) FROM execs WHERE command_line LIKE '%pid,ppid%'",
    )[0];
    assert!(found > 3);
    browser.wait(&format!(
        "return document.querySelector('#timeline .status').textContent === '{found} found'"
    ));
    browser.wait("return document.querySelector('.scope').textContent.includes('found by')");
    browser.click("#tab-processes");
    assert_eq!(rows(&browser), found);
    browser.keys("#search", ENTER);
    assert_eq!(browser.text("#timeline .status"), format!("1 of {found}"));
    // By pid.
    let pid = query(&trace, "SELECT pid FROM processes ORDER BY process_id LIMIT 1 OFFSET 7")[0];
    browser.js("document.querySelector('#search').value = ''");
    browser.keys("#search", &format!("{pid}{ENTER}"));
    browser.wait("return /^1 of/.test(document.querySelector('#timeline .status').textContent)");
    browser.js("const s = document.querySelector('#search'); s.value = ''; s.dispatchEvent(new Event('input'))");
    browser.wait("return document.querySelector('#timeline .status').textContent === ''");

    // Keys zoom, move and show everything again.
    browser.keys(".chart canvas", "f");
    browser.wait("return document.querySelector('.chart canvas').dataset.window.startsWith('0 ')");
    let (_, length) = times(&browser, "window").unwrap();
    browser.keys(".chart canvas", "++");
    let span = format!(
        "const [a, b] = document.querySelector('.chart canvas').dataset.window.split(' '); return b - a < {}",
        length / 2.0
    );
    browser.wait(&span);
    let (from, to) = times(&browser, "window").unwrap();
    assert!(from > 0.0 && (to - from - length / 2.25).abs() < 2.0, "{from} {to} of {length}");
    // The mouse moves it.
    browser.drag(".chart canvas", (0.6, 0.5), (0.8, 0.5));
    browser.wait(&format!(
        "return +document.querySelector('.chart canvas').dataset.window.split(' ')[0] < {from}"
    ));
    let moved = times(&browser, "window").unwrap();
    assert!(moved.0 < from && (moved.1 - moved.0 - (to - from)).abs() < 2.0, "{moved:?}");
    browser.keys(".chart canvas", "f");

    // A selection in a strip filters the tables.
    browser.drag(".strip .u-over", (0.25, 0.5), (0.5, 0.5));
    browser.wait("return document.querySelector('.scope').textContent.includes('alive between')");
    let (from, to) = times(&browser, "selection").unwrap();
    assert!((from / length - 0.25).abs() < 0.01 && (to / length - 0.5).abs() < 0.01, "{from} {to}");
    let alive = format!(
        "SELECT count(*) FROM processes WHERE start_ns <= {to} AND (end_ns >= {from} OR end_ns IS NULL)"
    );
    assert_eq!(rows(&browser), query(&trace, &alive)[0]);
    browser.keys(".chart canvas", "z");
    browser.wait(&span);
    browser.keys(".chart canvas", "\u{e00c}");
    browser.wait("return document.querySelector('.scope').textContent.startsWith('All ')");

    // A process by keyboard: the command has everything below it.
    browser.keys(".chart canvas", &format!("f\u{e011}{ENTER}"));
    browser.wait("return !document.querySelector('#process').hidden");
    assert_eq!(browser.js("return location.hash"), "#process-0");
    let command = browser.text("#process .command");
    assert!(command.contains("proctrace-payload run alice-o2-before"), "{command}");
    let text = browser.text("#process");
    for part in [
        "Executed",
        "Relatives",
        "Accounting",
        "Waits",
        "Failed look-ups",
        "Environment",
        "directory",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Its first child, then back.
    browser.js("document.querySelector('#process ul.chain a').click()");
    browser.wait("return location.hash !== '#process-0' && document.querySelector('#process ol.chain a') !== null");
    browser.js("history.back()");
    browser.wait("return location.hash === '#process-0'");
    browser.keys("#process", "\u{e00c}");
    browser.wait("return document.querySelector('#process').hidden");
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn rows_are_folded_unfolded_and_left_out() {
    let trace = trace("alice-o2-before.ptrace");
    let (_directory, page) = page(&trace);
    let browser = Browser::start(1400, 1000);
    browser.open(&page);
    let rows_become = |sql: &str| {
        let rows = query(&trace, sql)[0];
        browser.wait(&format!(
            "return document.querySelector('.chart canvas').dataset.rows === '{rows}'"
        ));
    };
    let choose = |name: &str, value: &str| {
        browser.js(&format!(
            "const s = document.querySelector('select[aria-label=\"{name}\"]');
            s.value = '{value}'; s.dispatchEvent(new Event('change'))"
        ));
    };
    let tick = |text: &str| {
        browser.js(&format!(
            "[...document.querySelectorAll('label.check')]
            .find((one) => one.textContent.startsWith('{text}')).querySelector('input').click()"
        ));
    };
    choose("Order of rows", "tree");
    rows_become("SELECT count(*) FROM processes");
    choose("Fold the tree", "2");
    rows_become("SELECT count(*) FROM processes WHERE depth <= 2");
    choose("Fold the tree", "none");
    rows_become("SELECT count(*) FROM processes");
    tick("Threads");
    rows_become("SELECT count(*) FROM threads");
    tick("Threads");
    // The command is folded by the keyboard.
    browser.keys(".chart canvas", "f\u{e011} ");
    rows_become("SELECT count(*) FROM processes WHERE depth = 0");
    browser.keys(".chart canvas", " ");
    choose("Order of rows", "time");
    browser.keys("#search", "sleep");
    browser
        .wait("return document.querySelector('#timeline .status').textContent.endsWith(' found')");
    tick("only matches");
    rows_become(
        "SELECT count(DISTINCT processes.process_id) FROM processes LEFT JOIN execs USING (process_id) \
        WHERE processes.program LIKE '%sleep%' OR execs.command_line LIKE '%sleep%' OR execs.exe LIKE '%sleep%'",
    );
    tick("only matches");
    tick("Colour by end");
    assert!(browser.text(".lanes").contains("killed by a signal"));
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn marks_are_lines_with_names() {
    let trace = trace("tour-6.ptrace");
    let (_directory, page) = page(&trace);
    let browser = Browser::start(1400, 1000);
    browser.open(&page);
    let drawn = "return document.querySelector('.chart canvas').dataset.marks";
    assert_eq!(browser.js(drawn), "2");
    // From the first mark on, it is still there; before it, there is none.
    let (from, to) = times(&browser, "window").unwrap();
    let first = query(&trace, "SELECT time_ns FROM marks ORDER BY mark")[0] as f64;
    assert!(from <= first && first < to);
    browser.keys(".chart canvas", "+");
    browser.wait("return document.querySelector('.chart canvas').dataset.marks !== undefined");
    let sections = "return [...document.querySelectorAll('#sections > details')]
        .map((one) => { one.open = true; return one.textContent; }).join(' ')";
    browser.wait(&format!("{sections}.includes('second moment')"));
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn everyone_can_use_it() {
    let (_directory, page) = page(&trace("tour-5.ptrace"));
    let browser = Browser::start(1280, 900);
    browser.open(&page);
    browser.js("document.querySelectorAll('#app details').forEach((one) => { one.open = true; })");
    let usable = ["button", "input", "select", "summary", ".chart canvas", "a[href]", ".scroller"];
    let usable: Vec<String> = usable.iter().map(|one| format!("{one}:not([hidden])")).collect();
    for element in browser.elements(&usable.join(",")) {
        let label = browser.computed(&element, "computedlabel");
        let role = browser.computed(&element, "computedrole");
        // What is in a closed dialog has no role.
        assert!(!label.trim().is_empty() || role == "none", "{role} has no name");
    }
    // Text has a contrast of at least 4.5 (WCAG 2.2, 1.4.3) in both themes.
    for theme in ["light", "dark"] {
        browser.js(&format!("document.documentElement.dataset.theme = '{theme}'"));
        let low = browser.js(crate::browser::CONTRAST);
        assert_eq!(low, serde_json::json!([]), "{theme}");
    }
    // Narrow windows do not scroll sideways.
    for width in [1280, 420] {
        let narrow = Browser::start(width, 800);
        narrow.open(&page);
        let wide = narrow.js(
            "return document.documentElement.scrollWidth - document.documentElement.clientWidth",
        );
        assert!(wide.as_i64().unwrap() <= 0, "{width}: {wide}");
        assert_eq!(narrow.console(), Vec::<String>::new());
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn what_is_missing_is_said() {
    // The end of the file is gone, and with it the trailer.
    let whole = fs::read(trace("tour-5.ptrace")).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let cut = directory.path().join("cut.ptrace");
    fs::write(&cut, &whole[..whole.len() * 2 / 3]).unwrap();
    let (_directory, page) = page(&cut);
    let browser = Browser::start(1280, 900);
    browser.open(&page);
    assert!(
        browser.text(".trust [role=alert]").contains("Incomplete: the recorder did not finish")
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

const LIFE_NS: u64 = 16_000_000;

/// Processes of a job that starts this many, sixteen at a time.
fn many(processes: u64) -> PageData {
    let life_ns = |at: u64| if at == 0 { processes * 1_000_000 } else { LIFE_NS };
    // Chains of a hundred below the first.
    let parent = |at: u64| match at {
        0 => None,
        at if at % 100 == 1 => Some(at),
        _ => Some(1),
    };
    let lives = (0..processes).map(|at| (at * 1_000_000, life_ns(at), parent(at)));
    of_lives(lives.collect(), processes * 1_000_000 + LIFE_NS)
}

/// A recording of processes of which start, length of life and distance to the parent are given.
fn of_lives(lives: Vec<(u64, u64, Option<u64>)>, length_ns: u64) -> PageData {
    let processes = lives.len() as u64;
    let all = || 0..processes;
    let mut table = PackedTable::new("processes", usize::try_from(processes).unwrap());
    table.columns = vec![
        PackedColumn::ascending("start_ns", lives.iter().map(|life| Some(life.0))),
        PackedColumn::of("life_ns", lives.iter().map(|life| Some(life.1))),
        PackedColumn::of("program", all().map(|at| Some(at % 5))),
        PackedColumn::of("parent", lives.iter().map(|life| life.2)),
        PackedColumn::ascending("pid", all().map(|at| Some(at + 1))),
    ];
    let mut programs = PackedTable::new("programs", 5);
    programs.columns = vec![
        PackedColumn::of("name", (0..5).map(Some)),
        PackedColumn::of("category", (0..5).map(Some)),
        PackedColumn::of("class", (0..5).map(Some)),
        PackedColumn::of("lane", (0..5).map(Some)),
    ];
    let lane = |at: u64| Lane { name: format!("lane {at}"), processes, threads: 0, is_rest: false };
    let empty = ["threads", "path", "execs", "variables", "misses", "waits", "signals"];
    let mut tables = vec![table, programs];
    tables.extend(empty.map(|name| PackedTable::new(name, 0)));
    PageData {
        length_ns,
        strings: (0..5).map(|at| format!("program {at}")).collect(),
        lanes: (0..5).map(lane).collect(),
        tables,
        edges_ns: vec![0, length_ns],
        ..PageData::default()
    }
}

/// Moves the chart for 60 frames; returns the largest number of things drawn and the median time between frames.
const PAN: &str = "
    const done = arguments[arguments.length - 1];
    const canvas = document.querySelector('.chart canvas');
    const times = [];
    let drawn = 0;
    let last = performance.now();
    const step = () => {
        const now = performance.now();
        times.push(now - last);
        last = now;
        drawn = Math.max(drawn, Number(canvas.dataset.drawn));
        canvas.dispatchEvent(new WheelEvent('wheel', { deltaX: times.length < 30 ? 9 : -9, cancelable: true }));
        if (times.length < 60) requestAnimationFrame(step);
        else done([drawn, times.sort((a, b) => a - b)[30]]);
    };
    requestAnimationFrame(step);";

/// A page with these processes, and the findings of another recording.
fn page_of(data: &PageData, path: &Path) {
    let recording = Recording::load(trace("tour-5.ptrace"), &Rules::built_in()).unwrap();
    let findings = analyse(&recording);
    let page = Page { findings: &findings, advised: None, data, sections: &[], text: "" };
    render(&page, &mut fs::File::create(path).unwrap()).unwrap();
}

/// The share of pixels that have the most frequent colour, in the middle of the rows.
const EVEN: &str = "
    const canvas = document.querySelector('.chart canvas');
    const [left, top] = [canvas.width * 0.3, canvas.height * 0.3].map(Math.round);
    const [width, height] = [canvas.width * 0.6, canvas.height * 0.5].map(Math.round);
    const pixels = new Uint32Array(canvas.getContext('2d').getImageData(left, top, width, height).data.buffer);
    const counts = new Map();
    for (const pixel of pixels) counts.set(pixel, (counts.get(pixel) ?? 0) + 1);
    return Math.max(...counts.values()) / pixels.length;";

#[test]
fn what_is_even_in_rows_and_time_is_drawn_evenly() {
    const LENGTH_NS: u64 = 1_000_000_000;
    // Every fifth lives all the time, the others hardly.
    let lives = (0..100_000).map(|at| (0, if at % 5 == 0 { LENGTH_NS } else { 1 }, None));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("even.html");
    page_of(&of_lives(lives.collect(), LENGTH_NS), &path);
    // Cells of as many, fewer and more columns than the overview has.
    for width in [1100, 1500, 2600] {
        let browser = Browser::start_unpaced(width, 1000);
        browser.open(&path);
        for order in ["tree", "time"] {
            browser.js(&format!(
                "const s = document.querySelector('select[aria-label=\"Order of rows\"]');
                s.value = '{order}'; s.dispatchEvent(new Event('change'))"
            ));
            browser.keys(".chart canvas", "f");
            browser.js_later("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(0)))");
            // The rest are the lines of the grid.
            let even = browser.js(EVEN).as_f64().unwrap();
            assert!(even > 0.97, "{width} {order}: {even}");
        }
    }
}

#[test]
fn a_frame_costs_as_much_as_its_pixels() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("many.html");
    page_of(&many(500_000), &path);
    let browser = Browser::start_unpaced(1400, 1000);
    browser.open(&path);
    println!(
        "first picture after {} ms",
        browser.js("return performance.getEntriesByName('first-picture')[0].startTime")
    );
    for order in ["category", "tree", "time"] {
        browser.js(&format!(
            "const s = document.querySelector('select[aria-label=\"Order of rows\"]');
            s.value = '{order}'; s.dispatchEvent(new Event('change'))"
        ));
        browser.keys(".chart canvas", "f");
        browser.js_later("const done = arguments[0]; requestAnimationFrame(() => requestAnimationFrame(() => done(0)))");
        let whole = browser.js("const c = document.querySelector('.chart canvas'); return [Number(c.dataset.drawn), c.width * c.height]");
        let (drawn, pixels) = (whole[0].as_u64().unwrap(), whole[1].as_u64().unwrap());
        assert!((1..pixels / 20).contains(&drawn), "{order}: {drawn} of {pixels} pixels");
        // A hundredth of the time.
        browser.keys(".chart canvas", "++++++++++++");
        let panned = browser.js_later(PAN);
        println!(
            "{order}: whole {drawn}, a part {} things drawn, {} ms between frames",
            panned[0], panned[1]
        );
        assert!((1..20_000).contains(&panned[0].as_u64().unwrap()), "{order}: {panned}");
    }
    assert_eq!(browser.console(), Vec::<String>::new());
}
