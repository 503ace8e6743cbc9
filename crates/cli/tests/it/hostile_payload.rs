//! A payload whose programs, arguments, paths, names and environment attack any viewer, recorded
//! with real eBPF: all output is inert.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::browser::Browser;
use crate::common::{Events, Recorded, Recorder, fixture, proctrace};
use proctrace_fixtures::hostile;
use proctrace_report::escape;
use proctrace_trace::{Reader, Writer};
use proctrace_wire::escape::to_bytes;
use serde_json::Value;

/// Creates directories and programs with hostile names, and the list of them; each string occurs
/// once.
fn prepare(directory: &Path) -> (PathBuf, PathBuf) {
    let (place, list) = (directory.join("place"), directory.join("list"));
    fs::create_dir(&place).unwrap();
    let program = place.join("program");
    fs::copy(fixture("hostile"), &program).unwrap();
    for name in hostile::file_names() {
        let name = OsStr::from_bytes(&name);
        fs::create_dir(place.join(name)).unwrap();
        fs::hard_link(&program, place.join(name).join(name)).unwrap();
    }
    let mut strings: Vec<Vec<u8>> = hostile::ATTACKS.iter().map(|attack| attack.to_vec()).collect();
    strings.push(hostile::path_max());
    fs::write(&list, [strings.join(&0), vec![0]].concat()).unwrap();
    (place, list)
}

fn record() -> Recorded {
    let recorder =
        Recorder::new().option(["--env", "HOSTILE", "--memory=100ms", "--ring-size=16MiB"]);
    let (place, list) = prepare(recorder.directory.path());
    let program = fixture("hostile");
    recorder.run([program.as_os_str(), place.as_os_str(), list.as_os_str()])
}

/// The recording with hostile names for host, kernel, command and directory as well.
fn with_hostile_header(trace: &Path, name: &str, new: &Path) {
    let mut reader = Reader::open(trace).unwrap();
    let mut blocks = Vec::new();
    while let Some(block) = reader.next_block() {
        blocks.push(block);
    }
    let mut header = reader.header().clone();
    header.command = vec![name.to_owned(); 3];
    header.cgroup = Some(name.to_owned());
    for text in [&mut header.host, &mut header.kernel, &mut header.machine, &mut header.cwd] {
        *text = name.to_owned();
    }
    header.recorder = name.to_owned();
    header.env_names.push(name.to_owned());
    let mut writer = Writer::new(fs::File::create(new).unwrap(), &header).unwrap();
    for block in blocks {
        let info = block.info;
        writer
            .append(info.stream, info.records, info.first_ns, info.last_ns, &block.bytes)
            .unwrap();
    }
    writer.finish(reader.trailer().unwrap()).unwrap();
}

fn run(arguments: &[&OsStr], codes: &[i32]) -> Output {
    let output = proctrace().args(arguments).output().unwrap();
    let stderr = text(&output.stderr);
    let code = output.status.code().unwrap();
    assert!(codes.contains(&code), "{arguments:?} exits with {code}: {stderr}");
    hostile::terminal(&format!("stderr of {arguments:?}"), &stderr);
    output
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The output of a command, checked to be inert on a terminal.
fn printed(arguments: &[&str], trace: &Path) -> String {
    let arguments: Vec<&OsStr> =
        arguments.iter().map(OsStr::new).chain([trace.as_os_str()]).collect();
    let stdout = text(&run(&arguments, &[0, 3]).stdout);
    hostile::terminal(&format!("{arguments:?}"), &stdout);
    stdout
}

/// Parses every file of `report --out` with a reader of its format.
fn check_directory(directory: &Path) {
    let mut files = 0;
    for folder in ["", "tables", "figures"] {
        for entry in fs::read_dir(directory.join(folder)).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                continue;
            }
            files += 1;
            let (what, text) = (path.display().to_string(), fs::read_to_string(&path).unwrap());
            match path.extension().and_then(OsStr::to_str) {
                Some("txt") => hostile::terminal(&what, &text),
                Some("json") => drop(hostile::json(&what, &text)),
                Some("csv") => drop(hostile::csv(&what, &text)),
                Some("svg") => drop(hostile::svg(&what, &text)),
                Some("md") => {
                    let ours =
                        ["tables/", "figures/", "report.txt", "report.html", "findings.json"];
                    drop(hostile::markdown(&what, &text, &ours));
                }
                Some("html") => check_source(&text),
                other => panic!("{other:?} is written by no one"),
            }
        }
    }
    assert!(files > 50, "only {files} files");
}

/// Opens the page of `report --html` in a browser, with everything that can be opened in it: all names are text,
/// nothing runs, and nothing is loaded.
fn check_page(trace: &Path, scratch: &Path) {
    let page = scratch.join("page.html");
    printed(&["report", "--html", page.to_str().unwrap()], trace);
    check_source(&fs::read_to_string(&page).unwrap());
    let browser = Browser::start(1280, 900);
    browser.open(&page);
    let wrong = browser.js_later(OPEN_EVERYTHING);
    assert_eq!(wrong, Value::Array(Vec::new()));
    assert_eq!(browser.console(), Vec::<String>::new());
    fs::remove_file(&page).unwrap();
}

/// The source of a page has one script, one style, two blocks of data and no character that is not seen.
fn check_source(source: &str) {
    let lower = source.to_lowercase();
    for (tag, times) in [
        ("<script>", 1),
        ("<script type=", 2),
        ("</script", 3),
        ("<style", 1),
        ("</title", 1),
        ("</pre", 1),
    ] {
        assert_eq!(lower.matches(tag).count(), times, "{tag}");
    }
    let policy = "content=\"default-src 'none'; script-src 'sha256-";
    assert!(lower.contains(policy) && !lower.contains("unsafe-"));
    let (head, rest) = source.split_once("<style>").unwrap();
    let (text, _) = rest.split_once("</noscript>").unwrap();
    let (_, text) = text.split_once("<noscript>").unwrap();
    let lines = head.lines().chain(text.lines());
    lines.for_each(|line| assert!(!line.contains(escape::is_unseen), "{line:?}"));
    assert!(!text.contains("<script") && !text.contains("<img"), "{text}");
}

/// Opens every part of a page; returns what is not as it should be.
const OPEN_EVERYTHING: &str = "
    const done = arguments[arguments.length - 1];
    const wrong = new Set();
    const known = new Set(('HTML HEAD META TITLE LINK STYLE BODY DIV NOSCRIPT SCRIPT A HEADER H1 H2 H3 LABEL SELECT OPTION P MAIN '
        + 'SECTION OL UL LI STRONG SPAN DETAILS SUMMARY DL DT DD INPUT BUTTON CANVAS TABLE THEAD TBODY TR TH TD FOOTER ASIDE SMALL CODE '
        + 'FIGURE FIGCAPTION IMG DIALOG KBD').split(' '));
    const unseen = /[\\p{Cc}\\p{Cf}\\p{Zl}\\p{Zp}\\p{Default_Ignorable_Code_Point}]/u;
    const check = () => {
        for (const e of document.querySelectorAll('*')) {
            if (!known.has(e.tagName)) wrong.add('element ' + e.tagName);
            for (const a of e.attributes) {
                if (/^on/i.test(a.name) || a.name === 'srcdoc') wrong.add('attribute ' + a.name);
                if (/^(src|href|action|poster|data)$/.test(a.name) && !/^(data:image\\/svg|data:,|#)/.test(a.value)) wrong.add(a.name + '=' + a.value);
                if (a.name !== 'style' && e.tagName !== 'META' && unseen.test(a.value)) wrong.add('unseen in ' + a.name + ' ' + JSON.stringify(a.value));
            }
            for (const n of e.childNodes) if (n.nodeType === 3 && !/^(STYLE|SCRIPT|NOSCRIPT)$/.test(e.tagName) && unseen.test(n.data.replaceAll('\\n', ''))) {
                wrong.add('unseen in text ' + JSON.stringify(n.data.slice(0, 80)));
            }
        }
        if (document.scripts.length !== 1) wrong.add(document.scripts.length + ' scripts');
        if (performance.getEntriesByType('resource').some((one) => !one.name.startsWith('data:'))) wrong.add('loaded something');
    };
    const pause = () => new Promise((resolve) => setTimeout(resolve, 1));
    (async () => {
        window.alert = () => wrong.add('alert');
        document.querySelectorAll('#app details').forEach((one) => { one.open = true; });
        for (const tab of document.querySelectorAll('[role=tab]')) { tab.click(); await pause(); check(); }
        document.querySelector('#tab-programs').click();
        const processes = Number(document.querySelector('.chart canvas').getAttribute('aria-label').match(/\\d+/)[0]);
        for (let at = 0; at < processes; at++) {
            location.hash = 'process-' + at;
            await new Promise((resolve) => addEventListener('hashchange', resolve, { once: true }));
            if (at % 10 === 0 || at + 1 === processes) check();
        }
        const search = document.querySelector('#search');
        for (const text of ['<script>', '\\\\u{', 'onload=', '\"']) { search.value = text; search.dispatchEvent(new KeyboardEvent('keydown', { key: 'Enter' })); await pause(); }
        check();
        done([...wrong]);
    })().catch((error) => done([String(error)]));";

/// Parses every file of `export` in lines of JSON.
fn check_export(trace: &Path, scratch: &Path) {
    let out = scratch.join("tables");
    printed(&["export", "--format", "ndjson", out.to_str().unwrap()], trace);
    let mut rows = 0;
    for entry in fs::read_dir(&out).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        rows += hostile::json_lines(&path.display().to_string(), &text).len();
    }
    assert!(rows > 50, "only {rows} rows");
    fs::remove_dir_all(&out).unwrap();
    for format in ["chrome", "speedscope", "compile-commands"] {
        hostile::json(format, &printed(&["export", "--format", format, "-"], trace));
    }
    let spans = printed(&["export", "--format", "otlp", "-"], trace);
    assert!(!hostile::json_lines("otlp", &spans).is_empty());
    assert!(printed(&["export", "--format", "folded", "-"], trace).lines().count() > 5);
}

/// Runs everything that reads a trace.
fn check_reports(trace: &Path, scratch: &Path) {
    for arguments in [
        &["report"][..],
        &["report", "--all"],
        &["report", "--summary"],
        &["classify"],
        &["check"],
        &["libs", "--all"],
    ] {
        printed(arguments, trace);
    }
    hostile::json("report --json", &printed(&["report", "--json"], trace));
    hostile::json("dump --header", &printed(&["dump", "--header"], trace));
    hostile::json("libs --json", &printed(&["libs", "--json"], trace));
    hostile::json_lines("dump", &printed(&["dump"], trace));
    let sections = text(&run(&["report", "--section", "list"].map(OsStr::new), &[0]).stdout);
    for section in sections.lines().filter_map(|line| line.split_whitespace().next()) {
        printed(&["report", "--section", section, "--all"], trace);
        hostile::csv(
            section,
            &printed(&["report", "--section", section, "--format", "csv"], trace),
        );
        hostile::json(
            section,
            &printed(&["report", "--section", section, "--format", "json"], trace),
        );
    }
    let out = scratch.join("out");
    printed(&["report", "--out", out.to_str().unwrap()], trace);
    check_directory(&out);
    fs::remove_dir_all(&out).unwrap();
    for order in ["time", "tree", "category"] {
        let svg = scratch.join("gantt.svg");
        let svg_name = svg.to_str().unwrap();
        printed(&["report", "--gantt", svg_name, "--gantt-threads", "--gantt-order", order], trace);
        hostile::svg(order, &fs::read_to_string(&svg).unwrap());
    }
    check_page(trace, scratch);
    check_processes(trace);
    printed(&["metrics"], trace);
    hostile::json("metrics", &printed(&["metrics", "--format", "json"], trace));
    hostile::openmetrics("metrics", &printed(&["metrics", "--format", "openmetrics"], trace));
    printed(&["gate", "init"], trace);
    printed(&["series"], trace);
    check_export(trace, scratch);
}

/// Asks about processes and programs.
fn check_processes(trace: &Path) {
    printed(&["tree", "--min=0", "--all"], trace);
    printed(&["ps", "--from=0s", "--to=1ms", "--all"], trace);
    let tree = hostile::json("tree", &printed(&["tree", "--format=json"], trace));
    hostile::json("ps", &printed(&["ps", "--at=1ms", "--format=json"], trace));
    let rows = tree["rows"].as_array().unwrap().iter();
    for serial in rows.filter_map(|row| row["serial"].as_u64()).take(30) {
        let serial = format!("--serial={serial}");
        printed(&["show", "--all", &serial], trace);
        hostile::json("show", &printed(&["show", "--format=json", &serial], trace));
    }
}

/// Compares it with a recording of another command.
fn check_comparisons(trace: &Path, scratch: &Path) {
    let tour = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces/tour-3.ptrace");
    let tour_name = tour.to_str().unwrap();
    let svg = scratch.join("waterfall.svg");
    printed(&["diff", "--all", "--waterfall", svg.to_str().unwrap(), tour_name], trace);
    hostile::svg("waterfall", &fs::read_to_string(&svg).unwrap());
    let diff = |format: &str| printed(&["diff", "--all", "--format", format, tour_name], trace);
    hostile::json("diff", &diff("json"));
    hostile::csv("diff", &diff("csv"));
    hostile::markdown("diff", &diff("markdown"), &[]);

    let [junit, markdown, json] =
        ["gate.xml", "gate.md", "gate.json"].map(|name| scratch.join(name));
    let limits = ["execs", "spawns", "directory_failed_lookups", "command_processes"];
    let mut arguments =
        vec!["gate".to_owned(), "--annotations=always".into(), "--allow-doubts".into()];
    arguments.extend(["--top".into(), "1000".into(), "--baseline".into(), tour_name.into()]);
    for limit in limits {
        arguments.extend(["--limit".into(), format!("{limit}=0%|0")]);
    }
    for (option, path) in [("--junit", &junit), ("--markdown", &markdown), ("--json", &json)] {
        arguments.extend([option.to_owned(), path.to_str().unwrap().to_owned()]);
    }
    let mut all: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    all.push(trace.as_os_str());
    let stdout = text(&run(&all, &[3]).stdout);
    let (commands, report): (Vec<&str>, Vec<&str>) = stdout
        .lines()
        .partition(|line| line.starts_with("::error ") || line.starts_with("::warning "));
    hostile::terminal("gate", &report.join("\n"));
    assert!(!hostile::annotations("annotations", &commands.join("\n")).is_empty());
    let read = |path: &Path| fs::read_to_string(path).unwrap();
    hostile::junit("JUnit", &read(&junit));
    hostile::markdown("gate", &read(&markdown), &[]);
    hostile::json("gate", &read(&json));
    for path in [&svg, &junit, &markdown, &json] {
        fs::remove_file(path).unwrap();
    }
}

/// The recording matches the payload byte for byte.
fn check_fidelity(events: &Events) {
    let bytes = |value: &Value| to_bytes(value.as_str().unwrap());
    let strings: Vec<Vec<u8>> = hostile::ATTACKS
        .iter()
        .map(|attack| attack.to_vec())
        .chain([hostile::path_max()])
        .collect();
    let mut left: BTreeSet<&[u8]> = strings.iter().map(Vec::as_slice).collect();
    for exec in events.kind("exec").filter(|exec| exec["argv"][2] == "end") {
        let argument = bytes(&exec["argv"][1]);
        assert_eq!(bytes(&exec["env"]["HOSTILE"]), argument);
        left.remove(&argument[..]);
    }
    assert!(left.is_empty(), "never executed: {left:?}");
    let renamed: BTreeSet<Vec<u8>> =
        events.kind("rename").map(|event| bytes(&event["comm"])).collect();
    let cut = |text: &[u8]| text[..text.len().min(15)].to_vec();
    for string in &strings {
        assert!(renamed.contains(&cut(string)), "no task was ever called {string:?}");
    }
    let programs: BTreeSet<Vec<u8>> =
        events.kind("exec").map(|exec| bytes(&exec["path"])).collect();
    for name in hostile::file_names() {
        let end = [b"/", &name[..], b"/", &name[..]].concat();
        assert!(programs.iter().any(|path| path.ends_with(&end)), "never executed: {name:?}");
    }
}

#[test]
fn errors_name_hostile_files_and_do_nothing_else() {
    for name in hostile::ATTACKS.iter().filter(|name| !name.is_empty()) {
        let name = OsStr::from_bytes(name);
        for arguments in [
            &["report"][..],
            &["dump"],
            &["diff", "nothing"],
            &["metrics"],
            &["classify", "--rules"],
            &["report", "--section"],
            &["report", "--nonsense"],
            &["report", "--top"],
            &["gate", "--budget"],
            &["gate", "explain"],
            &["nonsense"],
            &["record", "--"],
            &["startup", "--"],
        ] {
            let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).chain([name]).collect();
            let output = run(&arguments, &[1, 2, 125, 126, 127]);
            assert!(!output.stderr.is_empty(), "{arguments:?} says nothing");
        }
    }
}

mod browser {
    use super::*;

    #[test]
    fn nothing_in_a_header_acts_either() {
        let tour = Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../fixtures/traces/tour-3.ptrace");
        let scratch = tempfile::tempdir().unwrap();
        let names = [hostile::texts().concat(), "\u{1b}]0;x\u{7}".into(), "::error::x".into()];
        for name in &names {
            // The file itself has a hostile name as well.
            let file: String = name.chars().filter(|c| !['/', '\0'].contains(c)).take(50).collect();
            let trace = scratch.path().join(format!("{file}.ptrace"));
            with_hostile_header(&tour, name, &trace);
            check_reports(&trace, scratch.path());
            check_comparisons(&trace, scratch.path());
            fs::remove_file(&trace).unwrap();
        }
    }

    #[test]
    fn nothing_of_a_payload_acts_on_those_who_look_at_it() {
        let recorded = record();
        hostile::terminal("stderr of record", &recorded.stderr());
        check_fidelity(&recorded.sound(0));
        let scratch = tempfile::tempdir().unwrap();
        check_reports(&recorded.trace(), scratch.path());
        check_comparisons(&recorded.trace(), scratch.path());
    }
}
