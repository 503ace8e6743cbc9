//! The page of `report --html` as people meet it: what is visible first, by keyboard alone, in both themes,
//! of a job that fails.

use std::path::{Path, PathBuf};

use crate::browser::Browser;
use crate::common::proctrace;
use tempfile::TempDir;

/// Keys, as WebDriver names them.
const TAB: &str = "\u{e004}";
const ENTER: &str = "\u{e007}";
const ESCAPE: &str = "\u{e00c}";
const RIGHT: &str = "\u{e014}";
const DOWN: &str = "\u{e015}";

const SIZES: [(u32, u32); 2] = [(1280, 800), (800, 600)];

/// A job whose third program fails, and which leaves a process behind: for three seconds after its end,
/// however long it takes itself.
const FAILING: &str = "(tail --pid=$$ -s 0.1 -f /dev/null; exec sleep 3) & for i in 1 2 3; do sort /etc/passwd > /dev/null; done; \
    cat /proctrace-missing/settings.conf || exit 3";

struct Job {
    directory: TempDir,
}

impl Job {
    fn record(script: &str) -> Self {
        let job = Self { directory: tempfile::tempdir().unwrap() };
        let output = proctrace()
            .args(["record", "-q", "--output"])
            .arg(job.trace())
            .args(["--", "sh", "-c", script])
            .output()
            .unwrap();
        // However it ends, it was recorded.
        assert!(job.trace().is_file(), "{output:?}");
        job
    }

    fn trace(&self) -> PathBuf {
        self.directory.path().join("job.ptrace")
    }

    fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.report(&["--json"])).unwrap()
    }

    fn report(&self, options: &[&str]) -> Vec<u8> {
        let output = proctrace().arg("report").args(options).arg(self.trace()).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        output.stdout
    }

    fn page(&self) -> PathBuf {
        let page = self.directory.path().join("job.html");
        write(&self.trace(), &page);
        page
    }
}

fn committed(name: &str) -> PathBuf {
    Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
        .join("../../fixtures/traces")
        .join(name)
}

fn write(trace: &Path, page: &Path) {
    let output = proctrace().arg("report").arg(trace).arg("--html").arg(page).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

/// Element that the keyboard acts on: its id, class or text.
fn focused(browser: &Browser) -> String {
    let script = "const e = document.activeElement; return e.tagName.toLowerCase() + ' ' +
        (e.id || e.getAttribute('aria-label') || e.textContent.trim().slice(0, 30));";
    browser.js(script).as_str().unwrap().to_owned()
}

/// Goes on by Tab until something has the focus; returns everything that had it before.
fn tab_to(browser: &Browser, wanted: &str) -> Vec<String> {
    let mut passed = Vec::new();
    for _ in 0..60 {
        browser.press(TAB);
        let now = focused(browser);
        if now.contains(wanted) {
            return passed;
        }
        passed.push(now);
    }
    panic!("{wanted} is not reached: {passed:?}");
}

#[test]
fn the_page_of_a_failed_job_begins_with_its_cause() {
    let job = Job::record(FAILING);
    let page = job.page();
    let browser = Browser::start(1280, 900);
    browser.open(&page);
    let cause = browser.text("#failure");
    for part in
        ["Failed: exit 3", "cat", "exit 1", "open /proctrace-missing/settings.conf", "ENOENT"]
    {
        assert!(cause.contains(part), "{part}: {cause}");
    }
    let order = browser.js(
        "return [...document.querySelectorAll('main > section')].map((one) => one.id || one.className)",
    );
    let expected = ["failure", "figures", "advice", "timeline", "tables"];
    assert_eq!(order, serde_json::json!(expected));
    // The first that failed opens.
    browser.click("#failure button");
    browser.wait("return !document.querySelector('#process').hidden");
    let process = browser.text("#process");
    assert!(process.contains("cat /proctrace-missing/settings.conf"), "{process}");

    // What went on after its end is not on the axis, until it is asked for.
    let run = job.json()["run"].clone();
    let (wall_ns, all_ns) =
        (run["wall_ns"].as_f64().unwrap(), run["recorded_ns"].as_f64().unwrap());
    assert!(all_ns > 1.04 * wall_ns, "{run}");
    let window_ns = || {
        let text = browser.js("return document.querySelector('.chart canvas').dataset.window");
        let (_, to) = text.as_str().unwrap().split_once(' ').unwrap();
        to.parse::<f64>().unwrap()
    };
    let is = |shown_ns: f64, expected_ns: f64| (shown_ns / expected_ns - 1.0).abs() < 0.001;
    let expected_ns = 1.04 * wall_ns;
    assert!(is(window_ns(), expected_ns), "{}: {run}", window_ns());
    let pid = &run["after"]["last"]["pid"];
    let after = browser.text(".after");
    assert!(
        after.starts_with("After the end of the command, the recording went on for "),
        "{after}"
    );
    assert!(after.contains(&format!(", until sleep 3 (pid {pid}) ended.")), "{after}");
    browser.press(ESCAPE);
    browser.click(".after button");
    let shows = |to_ns: f64| {
        browser.wait(&format!(
            "return Math.abs(document.querySelector('.chart canvas').dataset.window.split(' ')[1] / {to_ns} - 1) < 0.001"
        ));
    };
    shows(all_ns);
    browser.keys(".chart canvas", "f");
    shows(expected_ns);
    assert_eq!(browser.console(), Vec::<String>::new());

    // One that succeeded has no such part.
    browser.open(&Job::record("true").page());
    assert_eq!(browser.js("return document.querySelector('#failure')"), serde_json::Value::Null);
    assert!(browser.text(".facts").starts_with("exit 0 · "), "{}", browser.text(".facts"));
}

#[test]
fn the_page_says_why_as_the_report_does() {
    let browser = Browser::start(1280, 900);
    for (script, says) in [
        ("proctrace-missing", "not found: proctrace-missing, last tried as /"),
        ("/etc/passwd", "tried last: exec /etc/passwd (EACCES), "),
        ("cat /proctrace-missing/x", "last failed look-up: open /proctrace-missing/x (ENOENT), "),
        (
            "trap 'exit 143' TERM; sh -c 'kill -TERM $PPID; :'; while :; do sleep 0.1; done",
            " after a signal from ",
        ),
    ] {
        let job = Job::record(script);
        let report = String::from_utf8(job.report(&[])).unwrap();
        // As one line.
        let report = report.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(report.contains(says), "{script}: {report}");
        browser.open(&job.page());
        let page = browser.text("#failure");
        assert!(page.to_lowercase().contains(&says.to_lowercase()), "{script}: {page}");
    }
}

#[test]
fn the_timeline_is_visible_without_scrolling() {
    let job = Job::record(FAILING);
    let directory = tempfile::tempdir().unwrap();
    let browser = Browser::start(1280, 900);
    let mut pages = vec![job.page()];
    for name in ["alice-o2-before", "alice-o2-after", "tour-6"] {
        let page = directory.path().join(format!("{name}.html"));
        write(&committed(&format!("{name}.ptrace")), &page);
        pages.push(page);
    }
    for (width, height) in SIZES {
        browser.viewport(width, height);
        for page in &pages {
            browser.open(page);
            let place = "const r = document.querySelector('.chart canvas').getBoundingClientRect();
                return r.top + Math.min(r.height, 110) <= innerHeight && scrollY === 0";
            browser.wait(&format!("return innerWidth === {width} && innerHeight === {height}"));
            assert_eq!(browser.js(place), true, "{width}x{height}: {}", page.display());
            // Pixel by pixel: a picture that is scaled is blurred.
            browser.wait(
                "const c = document.querySelector('.chart canvas');
                return c.width === c.clientWidth && c.height === c.clientHeight",
            );
            let wide = "return document.documentElement.scrollWidth <= innerWidth";
            assert_eq!(browser.js(wide), true, "{width}x{height}: {}", page.display());
        }
    }
}

/// Steps of a runner, one of which has a part, and a helper that is none.
const STEPS: &str = "PROCTRACE_STEP=sim_1 sh -c 'sort /etc/passwd; sort /etc/group; true' > /dev/null; \
    PROCTRACE_STEP=digi_1 sh -c 'cat /etc/passwd; PROCTRACE_STEP=part sh -c \"cat /etc/group; true\"; true' > /dev/null; \
    sh -c 'id; id; true' > /dev/null; true";

#[test]
fn rows_are_steps_if_there_are_any_and_unfold_to_processes() {
    let job = Job::record(STEPS);
    let page = job.page();
    let browser = Browser::start(1280, 900);
    browser.open(&page);
    let rows = |count: u32| {
        let is = "return document.querySelector('.chart canvas').dataset.rows";
        browser.wait(&format!("{is} === '{count}'"));
    };
    let choose = |label: &str, value: &str| {
        browser.js(&format!(
            "const e = document.querySelector('[aria-label=\"{label}\"]'); e.value = '{value}';
            e.dispatchEvent(new Event('change'));"
        ));
    };
    let order = browser.js("return document.querySelector('[aria-label=\"Order of rows\"]').value");
    assert_eq!(order, "step");
    // The runner, two steps, and the part of one.
    rows(4);
    tab_to(&browser, "canvas");
    // The second step: its first command.
    browser.press(&format!("{DOWN}{DOWN}{DOWN} "));
    rows(5);
    // Folded whole, and unfolded again.
    browser.press("  ");
    rows(5);
    choose("Fold the tree", "none");
    rows(11);
    browser.js("document.querySelector('.chart canvas').focus()");
    browser.press(ENTER);
    browser.wait("return !document.querySelector('#process').hidden");
    let process = browser.text("#process");
    assert!(process.contains("digi_1"), "{process}");
    browser.press(ESCAPE);
    choose("Order of rows", "tree");
    rows(11);
    choose("Order of rows", "step");
    rows(11);
    choose("Fold the tree", "steps");
    rows(4);
    assert_eq!(browser.console(), Vec::<String>::new());
}

#[test]
fn the_keyboard_suffices() {
    let directory = tempfile::tempdir().unwrap();
    let page = directory.path().join("job.html");
    write(&committed("alice-o2-before.ptrace"), &page);
    let browser = Browser::start(1280, 800);
    browser.viewport(1280, 800);
    browser.open(&page);

    // The parts in their order, each reached by Tab, none of them a trap.
    browser.press(TAB);
    assert!(focused(&browser).contains("Skip to the tables"), "{}", focused(&browser));
    let mut passed = tab_to(&browser, "search");
    for name in ["Next match", "Order of rows", "summary Show", "Zoom in", "Keys and mouse"] {
        passed.extend(tab_to(&browser, name));
    }
    assert!(passed.iter().any(|one| one.contains("Colours of the page")), "{passed:?}");
    assert!(passed.iter().any(|one| one.starts_with("summary")), "{passed:?}");

    // The help, by its button and by its key; Escape goes back to where one was.
    let is_open =
        |is: bool| browser.wait(&format!("return document.querySelector('#help').open === {is}"));
    browser.press(ENTER);
    is_open(true);
    let help = browser.text("#help");
    for key in ["Enter", "Space", "fold or unfold", "to the search"] {
        assert!(help.contains(key), "{help}");
    }
    browser.press(ESCAPE);
    is_open(false);
    assert!(focused(&browser).contains("Keys and mouse"), "{}", focused(&browser));
    browser.press("?");
    is_open(true);
    browser.press(ESCAPE);
    is_open(false);

    // The menu.
    browser.js("document.querySelector('.menu summary').focus()");
    browser.press(ENTER);
    browser.wait("return document.querySelector('.menu').open");
    browser.press(&format!("{TAB}{TAB}"));
    browser.press(ESCAPE);
    browser.wait("return !document.querySelector('.menu').open");
    assert!(focused(&browser).contains("Show"), "{}", focused(&browser));

    // Rows, from the first on: one is opened, and closed again.
    tab_to(&browser, "canvas");
    browser.press(&format!("{DOWN}{DOWN}{ENTER}"));
    browser.wait("return !document.querySelector('#process').hidden");
    assert!(focused(&browser).contains("process"), "{}", focused(&browser));
    browser.press(ESCAPE);
    browser.wait("return document.querySelector('#process').hidden");
    assert!(focused(&browser).starts_with("canvas"), "{}", focused(&browser));

    // Tables: one Tab for all their names, arrows between them.
    tab_to(&browser, "tab-programs");
    browser.press(RIGHT);
    assert!(focused(&browser).contains("tab-processes"), "{}", focused(&browser));
    tab_to(&browser, "Processes, rows");
    browser.press(&format!("{DOWN}{ENTER}"));
    browser.wait("return !document.querySelector('#process').hidden");
    browser.press(ESCAPE);

    // A search from anywhere: what it finds is where one sees it.
    browser.js("scrollTo(0, document.documentElement.scrollHeight)");
    browser.press("/");
    assert!(focused(&browser).contains("search"), "{}", focused(&browser));
    browser.press(&format!("pid,ppid{ENTER}"));
    browser.wait("return /^1 of/.test(document.querySelector('#timeline .status').textContent)");
    browser.js("document.activeElement.blur(); scrollTo(0, document.documentElement.scrollHeight)");
    browser.js("document.querySelector('[aria-label=\"Next match\"]').click()");
    browser.wait(
        "const r = document.querySelector('.chart canvas').getBoundingClientRect();
        return r.top >= -1 && r.bottom <= innerHeight + 1",
    );
    assert_eq!(browser.console(), Vec::<String>::new());
}

/// Colours that do not stand out: samples of colours from the paper, edges of controls from what is
/// around them (WCAG 2.2, 1.4.11: 3).
const GRAPHICS: &str = "
    const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return [m[0], m[1], m[2], m[3] ?? 1]; };
    const lum = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.9) return c; } return [255, 255, 255]; };
    const low = [];
    const check = (e, a, what) => {
        const [x, y] = [lum(parse(a)), lum(behind(e.parentElement))];
        const ratio = (Math.max(x, y) + 0.05) / (Math.min(x, y) + 0.05);
        if (ratio < 3) low.push(`${what} ${e.parentElement.textContent.slice(0, 30)} ${ratio.toFixed(2)}`);
    };
    const seen = (e) => e.checkVisibility();
    let number = 0;
    for (const e of document.querySelectorAll('#app .swatch')) if (seen(e)) { number++; check(e, getComputedStyle(e).backgroundColor, 'swatch'); }
    for (const e of document.querySelectorAll('#app input:not([type=checkbox]), #app select, #app .toolbar button:not(.link)')) if (seen(e)) {
        number++;
        check(e, getComputedStyle(e).borderTopColor, 'edge');
    }
    return [number, low];";

/// Finds texts with a backtick that is left: what stands between backticks is typed, and set like that.
const BACKTICKS: &str = "
    const found = [];
    const walker = document.createTreeWalker(document.querySelector('#app'), NodeFilter.SHOW_TEXT);
    for (let n = walker.nextNode(); n; n = walker.nextNode()) {
        if (n.textContent.includes('`') && !n.parentElement.closest('code, h1, td')) found.push(n.textContent.slice(0, 80));
    }
    return found;";

#[test]
fn colours_stand_out_and_no_backtick_is_left() {
    let job = Job::record(FAILING);
    let directory = tempfile::tempdir().unwrap();
    let alice = directory.path().join("alice.html");
    write(&committed("alice-o2-before.ptrace"), &alice);
    let browser = Browser::start(1280, 900);
    for page in [job.page(), alice] {
        browser.open(&page);
        browser
            .js("document.querySelectorAll('#app details').forEach((one) => { one.open = true; })");
        for theme in ["light", "dark"] {
            browser.js(&format!(
                "const s = document.querySelector('.theme select'); s.value = '{theme}';
                s.dispatchEvent(new Event('change'))"
            ));
            let found = browser.js(GRAPHICS);
            assert!(found[0].as_u64().unwrap() > 10, "{found}");
            assert_eq!(found[1], serde_json::json!([]), "{theme}");
            assert_eq!(browser.js(crate::browser::CONTRAST), serde_json::json!([]), "{theme}");
        }
        browser.wait("return [...document.querySelectorAll('#sections .content')].every((one) => one.childElementCount > 0)");
        assert_eq!(browser.js(BACKTICKS), serde_json::json!([]));
    }
}
