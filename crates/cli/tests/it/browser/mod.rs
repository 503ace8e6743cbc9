//! A browser for tests: Chromium by chromedriver, which speaks the WebDriver protocol, JSON over HTTP
//! (<https://www.w3.org/TR/webdriver2/>).

mod page_in_use;
mod web;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Maximum time that a page may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(300);

/// Texts whose contrast to what is behind them is too low.
pub(crate) const CONTRAST: &str = "
    const parse = (c) => { const m = c.match(/[\\d.]+/g).map(Number); return [m[0], m[1], m[2], m[3] ?? 1]; };
    const lum = (c) => { const [r, g, b] = c.map((v) => { v /= 255; return v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; });
        return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
    const behind = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c[3] > 0.9) return c; } return [255, 255, 255]; };
    const low = [];
    const walker = document.createTreeWalker(document.querySelector('#app'), NodeFilter.SHOW_TEXT);
    for (let n = walker.nextNode(); n; n = walker.nextNode()) {
        const e = n.parentElement;
        if (!n.textContent.trim() || !e.checkVisibility() || e.closest('.unseen') || e.closest(':disabled')) continue;
        const [a, b] = [lum(parse(getComputedStyle(e).color)), lum(behind(e))];
        const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
        if (ratio < 4.5) low.push(n.textContent.slice(0, 40) + ' ' + ratio.toFixed(2));
    }
    return low;";

pub(crate) struct Browser {
    driver: Child,
    /// Kept open, since the driver may still write to it.
    _output: BufReader<ChildStdout>,
    port: u16,
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Closes the browser; then only the driver is left.
        let _ = self.send("DELETE", &format!("/session/{}", self.session), None);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

impl Browser {
    /// A browser with a window of this size.
    pub(crate) fn start(width: u32, height: u32) -> Self {
        Self::start_with(width, height, &[])
    }

    /// Draws as often as it can, not at the rate of a screen: the time between frames is what a frame costs.
    pub(crate) fn start_unpaced(width: u32, height: u32) -> Self {
        Self::start_with(width, height, &["--disable-gpu-vsync", "--disable-frame-rate-limit"])
    }

    fn start_with(width: u32, height: u32, more: &[&str]) -> Self {
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("chromedriver is missing: cargo xtask setup");
        let mut output = BufReader::new(driver.stdout.take().unwrap());
        let port = port(&mut output);
        let mut browser = Self { driver, _output: output, port, session: String::new() };
        let size = format!("--window-size={width},{height}");
        let mut args = vec!["--headless=new", "--no-sandbox", &size, "--hide-scrollbars"];
        args.extend(more);
        let options = json!({ "args": args });
        let capabilities = json!({"capabilities": {"alwaysMatch": {
            "timeouts": {"script": PATIENCE.as_millis() as u64},
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}});
        let made = browser.send("POST", "/session", Some(&capabilities)).unwrap();
        browser.session = made["sessionId"].as_str().unwrap().to_owned();
        browser
    }

    /// Opens a page of `report --html` and waits until everything is unpacked.
    pub(crate) fn open(&self, page: &Path) {
        self.post("url", &json!({"url": format!("file://{}", page.display())}));
        self.wait(
            "return document.documentElement.dataset.state === 'complete' ||
            document.documentElement.dataset.state === 'failed'",
        );
        assert_eq!(self.js("return document.documentElement.dataset.state"), "complete");
    }

    /// Waits until a script returns true.
    pub(crate) fn wait(&self, script: &str) {
        let start = Instant::now();
        while self.js(script) != true {
            assert!(start.elapsed() < PATIENCE, "never true: {script}");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Value that the body of a function returns.
    pub(crate) fn js(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({"script": script, "args": []}))
    }

    /// The same, if it calls its last argument.
    pub(crate) fn js_later(&self, script: &str) -> Value {
        self.post("execute/async", &json!({"script": script, "args": []}))
    }

    /// The element of a selector.
    pub(crate) fn element(&self, selector: &str) -> String {
        let found = self.post("element", &json!({"using": "css selector", "value": selector}));
        id(&found)
    }

    pub(crate) fn elements(&self, selector: &str) -> Vec<String> {
        let found = self.post("elements", &json!({"using": "css selector", "value": selector}));
        found.as_array().unwrap().iter().map(id).collect()
    }

    pub(crate) fn click(&self, selector: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/click"), &json!({}));
    }

    /// Types into an element; see the protocol for keys such as Enter.
    pub(crate) fn keys(&self, selector: &str, text: &str) {
        let element = self.element(selector);
        self.post(&format!("element/{element}/value"), &json!({"text": text}));
    }

    /// Types into whatever has the focus.
    pub(crate) fn press(&self, keys: &str) {
        let actions: Vec<Value> = keys
            .chars()
            .flat_map(|key| {
                ["keyDown", "keyUp"].map(|kind| json!({"type": kind, "value": key.to_string()}))
            })
            .collect();
        self.post(
            "actions",
            &json!({"actions": [{"type": "key", "id": "keyboard", "actions": actions}]}),
        );
    }

    /// Makes what pages see of the window exactly this large.
    pub(crate) fn viewport(&self, width: u32, height: u32) {
        let size =
            json!({"width": width, "height": height, "deviceScaleFactor": 1, "mobile": false});
        self.post(
            "goog/cdp/execute",
            &json!({"cmd": "Emulation.setDeviceMetricsOverride", "params": size}),
        );
    }

    /// A property that assistive technology gets: `computedlabel`, `computedrole`.
    pub(crate) fn computed(&self, element: &str, what: &str) -> String {
        let path = format!("/session/{}/element/{element}/{what}", self.session);
        self.send("GET", &path, None).unwrap().as_str().unwrap().to_owned()
    }

    /// Presses the mouse button over an element at a part of its size, moves to another, and releases it.
    pub(crate) fn drag(&self, selector: &str, from: (f64, f64), to: (f64, f64)) {
        let box_of = format!(
            "const e = document.querySelector({selector:?}); e.scrollIntoView({{block: 'center', behavior: 'instant'}});
             const r = e.getBoundingClientRect(); return [r.left, r.top, r.width, r.height];"
        );
        let place = self.js(&box_of);
        let at = |n: usize| place[n].as_f64().unwrap();
        let point = |(x, y): (f64, f64)| {
            let (x, y) = ((at(0) + x * at(2)).round(), (at(1) + y * at(3)).round());
            json!({"type": "pointerMove", "duration": 60, "x": x, "y": y})
        };
        let middle = (f64::midpoint(from.0, to.0), f64::midpoint(from.1, to.1));
        let actions = json!([point(from), {"type": "pointerDown", "button": 0}, point(middle), point(to),
            {"type": "pointerUp", "button": 0}]);
        self.post(
            "actions",
            &json!({"actions": [{"type": "pointer", "id": "mouse", "actions": actions}]}),
        );
    }

    /// Everything in the console: errors, warnings and violations of the page's policy.
    pub(crate) fn console(&self) -> Vec<String> {
        let entries = self.post("se/log", &json!({"type": "browser"}));
        entries.as_array().unwrap().iter().map(ToString::to_string).collect()
    }

    /// The text of an element.
    pub(crate) fn text(&self, selector: &str) -> String {
        let text = self.js(&format!("return document.querySelector({selector:?}).textContent"));
        text.as_str().unwrap().to_owned()
    }

    fn post(&self, command: &str, body: &Value) -> Value {
        let path = format!("/session/{}/{command}", self.session);
        self.send("POST", &path, Some(body))
            .unwrap_or_else(|error| panic!("{command} {body}: {error}"))
    }

    /// The value of an answer, or the error.
    fn send(&self, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
        let body = body.map(ToString::to_string).unwrap_or_default();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).map_err(|e| e.to_string())?;
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{body}",
            body.len()
        )
        .map_err(|e| e.to_string())?;
        let mut answer = BufReader::new(stream);
        let (mut line, mut length) = (String::new(), 0);
        loop {
            line.clear();
            answer.read_line(&mut line).map_err(|e| e.to_string())?;
            if let Some(value) = line.to_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        answer.read_exact(&mut body).map_err(|e| e.to_string())?;
        let value =
            serde_json::from_slice::<Value>(&body).map_err(|e| e.to_string())?["value"].take();
        if value.get("error").is_some() { Err(value.to_string()) } else { Ok(value) }
    }
}

/// The number of an element, under the protocol's key.
fn id(found: &Value) -> String {
    found["element-6066-11e4-a52e-4f735466cecf"].as_str().unwrap().to_owned()
}

/// The port on which the driver says that it listens.
fn port(output: &mut impl BufRead) -> u16 {
    let mut line = String::new();
    while output.read_line(&mut line).unwrap() > 0 {
        if let Some((_, port)) = line.split_once("successfully on port ") {
            return port.trim().trim_end_matches('.').parse().unwrap();
        }
        line.clear();
    }
    panic!("chromedriver does not name its port");
}
