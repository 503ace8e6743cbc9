//! Tests of what is on the screen, for recordings of which everything is known.

use proctrace_live::{ByFile, Progress, Status, View, progress_line};
use proctrace_wire::{Kind, Quantity};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier};

use crate::testing::{SECOND, Told, header, view};
use crate::{Key, Screen};

const NARROW: (u16, u16) = (80, 24);

fn buffer(screen: &mut Screen, view: &View, (width, height): (u16, u16)) -> Buffer {
    let mut buffer = Buffer::empty(Rect::new(0, 0, width, height));
    screen.draw(view, Status::Recording, None, &mut buffer);
    buffer
}

fn lines(screen: &mut Screen, view: &View, size: (u16, u16)) -> Vec<String> {
    let buffer = buffer(screen, view, size);
    let row = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>();
    (0..size.1).map(|y| row(y).trim_end().to_owned()).collect()
}

fn text(screen: &mut Screen, view: &View) -> String {
    lines(screen, view, NARROW).join("\n")
}

fn press(screen: &mut Screen, view: &View, keys: &str) {
    for c in keys.chars() {
        // What is selected depends on what was drawn.
        buffer(screen, view, NARROW);
        assert!(screen.press(match c {
            '\n' => Key::Enter,
            '\x1b' => Key::Escape,
            '\t' => Key::Tab,
            c => Key::Char(c),
        }));
    }
}

/// A shell with three children; one of them has a child itself and uses most CPU time.
fn family() -> View {
    let mut view = view(&["sh", "job.sh"]).with_root("sh");
    for (child, parent, path) in
        [(10, 1, "/bin/alpha"), (11, 1, "/bin/beta"), (12, 11, "/bin/gamma"), (13, 1, "/bin/delta")]
    {
        view.forks(parent, child, SECOND + 1);
        view.execs(child, SECOND + 2, path, &[path, "--now"]);
    }
    view.samples(12, SECOND + 3, 1_500_000_000);
    view.samples(10, SECOND + 3, 500_000_000);
    view.misses(13, SECOND + 4, "/opt/lib/libx.so");
    // The windows of rates are complete.
    view.samples(1, 3 * SECOND, 1);
    view
}

/// The process names in the order of their rows.
fn order(screen: &mut Screen, view: &View) -> Vec<String> {
    let all = lines(screen, view, NARROW);
    let names = all.iter().filter_map(|line| line.split("/bin/").nth(1));
    names.map(|name| name.split(' ').next().unwrap().to_owned()).collect()
}

#[test]
fn the_head_has_the_sums() {
    let mut view = family();
    let all = lines(&mut Screen::new(false), &view, NARROW);
    assert!(all[0].starts_with(" proctrace top  sh job.sh"), "{}", all[0]);
    assert!(all[0].ends_with("RECORDING  3.00 s"), "{}", all[0]);
    assert!(all[1].contains("alive 5 processes"), "{}", all[1]);
    assert!(all[2].contains("CPU time 2.00 s  processes 5  threads 0  execs 5"), "{}", all[2]);
    assert!(all[3].contains("failed look-ups 1 "), "{}", all[3]);
    assert!(all[3].contains("lost 0"), "{}", all[3]);
    view.loses(Kind::Fork, 7);
    let all = lines(&mut Screen::new(false), &view, NARROW);
    assert!(all[3].contains("LOST 7 records"), "{}", all[3]);
}

#[test]
fn siblings_are_sorted_by_what_their_subtrees_use() {
    let view = family();
    let mut screen = Screen::new(false);
    assert_eq!(order(&mut screen, &view), ["beta", "gamma", "alpha", "delta"]);
    press(&mut screen, &view, "s");
    assert_eq!(order(&mut screen, &view), ["beta", "gamma", "alpha", "delta"]);
    // Memory, then failed look-ups, then pids.
    press(&mut screen, &view, "ss");
    assert_eq!(order(&mut screen, &view)[0], "delta");
    press(&mut screen, &view, "s");
    assert_eq!(order(&mut screen, &view), ["alpha", "beta", "gamma", "delta"]);
    press(&mut screen, &view, "SS");
    assert!(text(&mut screen, &view).contains("by memory"));
}

#[test]
fn a_filter_shows_matches_and_their_ancestors() {
    let view = family();
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "/GAM");
    assert!(text(&mut screen, &view).contains("filter: GAM_"));
    press(&mut screen, &view, "\n");
    assert_eq!(order(&mut screen, &view), ["beta", "gamma"]);
    assert!(text(&mut screen, &view).contains("/GAM/ by CPU now"));
    press(&mut screen, &view, "\x1b");
    assert_eq!(order(&mut screen, &view).len(), 4);
    press(&mut screen, &view, "/nothing\n");
    assert!(text(&mut screen, &view).contains("no match"));
}

#[test]
fn a_folded_subtree_is_one_row_with_its_sums() {
    let view = family();
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "jf");
    let all = text(&mut screen, &view);
    assert!(all.contains("[+1] /bin/beta"), "{all}");
    assert!(!all.contains("/bin/gamma"));
    let row = all.lines().find(|line| line.contains("beta")).unwrap();
    assert!(row.contains("1.50 s"), "{row}");
    press(&mut screen, &view, "f");
    assert_eq!(order(&mut screen, &view).len(), 4);
    press(&mut screen, &view, "F");
    assert!(text(&mut screen, &view).contains("[+4] sh"));
    press(&mut screen, &view, "F");
    assert_eq!(order(&mut screen, &view).len(), 4);
}

#[test]
fn what_ended_lately_is_a_row_for_each_program() {
    let mut view = family();
    for child in 20..60 {
        view.forks(11, child, 3 * SECOND);
        view.execs(child, 3 * SECOND, "/bin/short", &["/bin/short", &child.to_string()]);
        view.misses(child, 3 * SECOND, "/opt/x");
        view.exits(child, 3 * SECOND + 1, 1_000_000);
    }
    view.exits(10, 3 * SECOND + 1, 500_000_000);
    view.exits_with(13, 3 * SECOND + 1, 0, 2 << 8);
    view.exits_with(12, 3 * SECOND + 1, 0, 9);
    let mut screen = Screen::new(false);
    let all = text(&mut screen, &view);
    let row = |all: &str, name: &str| {
        let row = all.lines().find(|line| line.contains(name));
        row.unwrap_or_else(|| panic!("{name}: {all}")).to_owned()
    };
    let short = row(&all, "/bin/short");
    let fields: Vec<&str> = short.split_whitespace().collect();
    // 40 ms in two seconds; below beta, whose rows are indented.
    assert_eq!(fields[..6], ["-", "2", "40.0", "ms", "410", "kB"], "{short}");
    assert_eq!(fields[6..], ["40", "40", "ended", "/bin/short", "59"], "{short}");
    assert!(row(&all, "/bin/alpha").contains("ended  /bin/alpha"), "{all}");
    assert!(row(&all, "/bin/delta").contains("ended, exit 2  /bin/delta"), "{all}");
    assert!(row(&all, "/bin/gamma").contains("ended, SIGKILL  /bin/gamma"), "{all}");
    press(&mut screen, &view, "/short\n");
    assert!(text(&mut screen, &view).contains("/bin/beta"), "its ancestors stay");
    // Of those that have ended, too, only matches.
    press(&mut screen, &view, "\x1b/short 5\n");
    let all = text(&mut screen, &view);
    assert!(row(&all, "/bin/short").contains(" 10 ended"), "{all}");
    press(&mut screen, &view, "\x1b/short\n");
    // The last of them can be opened.
    let at = screen.rows.iter().position(|serial| *serial == 59).unwrap();
    press(&mut screen, &view, &"j".repeat(at));
    press(&mut screen, &view, "\n");
    assert!(text(&mut screen, &view).contains("ENDED (exit 0)"));
    // When the recording is over, there is no lately.
    let mut buffer = Buffer::empty(Rect::new(0, 0, 80, 24));
    Screen::new(false).draw(&view, Status::Ended, None, &mut buffer);
    let all: String = buffer.content.iter().map(ratatui::buffer::Cell::symbol).collect();
    assert!(!all.contains("40 ended"), "{all}");
}

/// The words at the bottom, each with its key.
fn bottom(screen: &mut Screen, view: &View) -> Vec<(&'static str, &'static str)> {
    let all = lines(screen, view, NARROW);
    let keys = screen.keys_now();
    for (key, word) in &keys {
        assert!(all[23].contains(&format!("{key} {word}")), "{key}: {}", all[23]);
    }
    keys
}

#[test]
fn the_keys_at_the_bottom_do_what_the_list_of_keys_says() {
    let view = family();
    let key = |name: &str| match name {
        "Enter" => Key::Enter,
        "Esc" => Key::Escape,
        "Space" => Key::Char(' '),
        "Tab" => Key::Tab,
        "Up Down" => Key::Down,
        "any key" => Key::Char(' '),
        name => Key::Char(name.chars().next().unwrap()),
    };
    let mut help = Screen::new(false);
    press(&mut help, &view, "?");
    let help = text(&mut help, &view);
    let mut seen = 0;
    // Each list, with and without a filter, an opened process, the list of keys over both.
    for before in ["", "2", "3", "4", "5", "/alpha\n", "2/alpha\n", "j\n", "?", "j\n?"] {
        let mut screen = Screen::new(false);
        press(&mut screen, &view, before);
        for (name, word) in bottom(&mut screen, &view) {
            let mut screen = Screen::new(false);
            press(&mut screen, &view, before);
            let shown = buffer(&mut screen, &view, NARROW);
            let goes_on = screen.press(key(name));
            assert_eq!(goes_on, name != "q", "{before}: {name}");
            let changed = buffer(&mut screen, &view, NARROW) != shown;
            assert!(changed || !goes_on, "{before:?}: {name} {word} does nothing");
            assert!(name == "any key" || help.contains(name), "{name} is not in the list");
            seen += 1;
        }
    }
    assert!(seen > 40, "{seen}");
}

#[test]
fn help_over_a_process_goes_back_to_it() {
    let view = family();
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "j\n?");
    assert_eq!(screen.opened(), Some(11));
    press(&mut screen, &view, " ");
    assert!(text(&mut screen, &view).contains("PARENT AND CHILDREN"));
    assert!(!screen.is_paused());
}

#[test]
fn all_of_the_list_of_keys_fits() {
    let mut screen = Screen::new(false);
    press(&mut screen, &family(), "?");
    let all = lines(&mut screen, &family(), NARROW);
    assert!(all[22].contains("ended"), "{}", all[22]);
    assert!(all.iter().all(|line| !line.contains('…')), "{all:?}");
}

#[test]
fn after_the_end_there_is_no_load_and_no_empty_screen() {
    let mut view = family();
    for task in [10, 11, 12, 13, 1] {
        view.exits(task, 3 * SECOND, 2_000_000_000);
    }
    for size in [NARROW, (200, 50)] {
        let mut buffer = Buffer::empty(Rect::new(0, 0, size.0, size.1));
        let mut screen = Screen::new(false);
        screen.draw(&view, Status::Ended, None, &mut buffer);
        let row = |y| (0..size.0).map(|x| buffer[(x, y)].symbol()).collect::<String>();
        let all: Vec<String> = (0..size.1).map(row).collect();
        assert!(all[2].contains("mean CPUs 3.33 of 2"), "{}", all[2]);
        let text = all.join("\n");
        for expected in ["no process is alive", "gamma", "/opt/lib", "DIRECTORY"] {
            assert!(text.contains(expected), "{expected}: {text}");
        }
        let gamma = all.iter().find(|line| line.contains("gamma")).unwrap();
        let fields: Vec<&str> = gamma.split_whitespace().collect();
        assert_eq!(fields[..3], ["2.00", "s", "-"], "{gamma}");
        // Nothing changes any more.
        assert!(!screen.keys_now().iter().any(|(key, _)| *key == "Space"));
        screen.press(Key::Char(' '));
        assert!(!screen.is_paused());
    }
}

#[test]
fn the_cursor_stays_with_its_process() {
    let mut view = family();
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "jjj");
    buffer(&mut screen, &view, NARROW);
    assert_eq!(screen.selected, Some(10));
    view.exits(12, 3 * SECOND, 2_000_000_000);
    view.exits(11, 3 * SECOND, 0);
    buffer(&mut screen, &view, NARROW);
    assert_eq!(screen.selected, Some(10));
    view.exits(10, 3 * SECOND, 0);
    // Its row stays for a while.
    buffer(&mut screen, &view, NARROW);
    assert_eq!(screen.selected, Some(10));
    view.samples(1, 6 * SECOND, 1);
    buffer(&mut screen, &view, NARROW);
    assert!(screen.selected.is_some_and(|serial| serial == 13 || serial == 1));
}

#[test]
fn an_opened_process_has_its_relatives_and_its_look_ups() {
    let mut view = family();
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "/delta\nj\n");
    let all = text(&mut screen, &view);
    let files = " Files       failed look-ups 1";
    for expected in ["13  delta", "/bin/delta --now", files, "/opt/lib", "parent", "sh"] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
    view.keep(screen.opened());
    view.exits(13, 4 * SECOND, 0);
    let all = text(&mut screen, &view);
    assert!(all.contains("ENDED (exit 0)"), "{all}");
    // To its parent, and back.
    press(&mut screen, &view, "\n");
    assert!(text(&mut screen, &view).contains("1  sh"));
    press(&mut screen, &view, "\x1b\x1b");
    assert!(text(&mut screen, &view).contains("COMMAND"));
}

#[test]
fn an_opened_process_has_the_system_time_of_the_list() {
    // The length of a tick is not recorded; samples have a quarter of their ticks in the kernel.
    let header = proctrace_trace::Header { tick_ns: None, ..header(&["sh"]) };
    let mut view = View::new(header, Box::new(ByFile)).with_root("sh");
    view.samples(1, 3 * SECOND, 800_000_000);
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "2");
    let all = text(&mut screen, &view);
    assert!(all.lines().any(|line| line.contains("25 %") && line.ends_with("sh")), "{all}");
    press(&mut screen, &view, "1\n");
    let all = text(&mut screen, &view);
    assert!(all.contains("system 200 ms (25 %)"), "{all}");
}

/// Steps by the names of programs: beta is one, and gamma a part of it.
#[derive(Default)]
struct Named {
    steps: Vec<proctrace_live::StepName>,
    of: std::collections::HashMap<u32, u32>,
}

impl proctrace_live::Classify for Named {
    fn classify(
        &mut self,
        exec: &proctrace_wire::Exec<'_>,
        spawner: Option<&proctrace_live::ProgramName>,
    ) -> proctrace_live::ProgramName {
        ByFile.classify(exec, spawner)
    }

    fn knows_steps(&self) -> bool {
        true
    }

    fn born(&mut self, process: u32, forker: Option<u32>) {
        if let Some(step) = forker.and_then(|forker| self.of.get(&forker).copied()) {
            self.of.insert(process, step);
        }
    }

    fn step(&mut self, exec: &proctrace_wire::Exec<'_>, process: u32, _: Option<u32>, _: u64) {
        let name = self.classify(exec, None).name;
        if name == "beta" || name == "gamma" {
            let parent = self.of.get(&process).copied();
            self.of.insert(process, self.steps.len() as u32);
            self.steps.push(proctrace_live::StepName { name: format!("make {name}"), parent });
        }
    }

    fn gone(&mut self, process: u32) {
        self.of.remove(&process);
    }

    fn step_of(&self, process: u32) -> Option<u32> {
        self.of.get(&process).copied()
    }

    fn named(&self, step: u32) -> Option<proctrace_live::StepName> {
        self.steps.get(step as usize).cloned()
    }
}

#[test]
fn steps_have_what_their_processes_and_parts_used() {
    let mut view = View::new(header(&["sh"]), Box::new(Named::default())).with_root("sh");
    for (child, parent, name) in
        [(11, 1, "/bin/beta"), (12, 11, "/bin/gamma"), (13, 1, "/bin/alpha")]
    {
        view.forks(parent, child, SECOND);
        view.execs(child, SECOND + 2, name, &[name]);
    }
    view.samples(11, 2 * SECOND, 250_000_000);
    view.samples(12, 2 * SECOND, 500_000_000);
    view.exits_with(12, 3 * SECOND, 600_000_000, 2 << 8);
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "3");
    let all = text(&mut screen, &view);
    let row = |name: &str| -> Vec<String> {
        let line = all.lines().find(|line| line.ends_with(name)).unwrap_or_else(|| panic!("{all}"));
        line.split_whitespace().map(str::to_owned).collect()
    };
    // Wall time, CPU time with that of the part, CPU now, processes and those that are alive.
    let beta = row("make beta");
    assert_eq!(beta[..4], ["2.00", "s", "850", "ms"], "{all}");
    assert_eq!(beta[5..7], ["2", "1"], "{all}");
    let gamma = row("make gamma  in make beta");
    assert_eq!(gamma[2..4], ["600", "ms"], "{all}");
    assert_eq!(gamma[5..9], ["1", "0", "exit", "2"], "{all}");
    // What runs comes first.
    assert!(all.find("make beta") < all.find("make gamma"), "{all}");
    assert!(!all.contains("alpha  in"), "{all}");
    // A list of its own below the processes, too.
    press(&mut screen, &view, "1");
    assert!(text(&mut screen, &view).contains("make gamma"));
}

#[test]
fn lists_follow_each_other() {
    let mut view = family();
    view.loses(Kind::Exit, 3);
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "\t");
    let all = text(&mut screen, &view);
    assert!(all.contains("gamma") && all.contains("CATEGORY AND PROGRAM"), "{all}");
    press(&mut screen, &view, "\t");
    assert!(text(&mut screen, &view).contains("proctrace top shows them"));
    press(&mut screen, &view, "\t");
    assert!(text(&mut screen, &view).contains("100 % /opt/lib"));
    press(&mut screen, &view, "5");
    assert!(text(&mut screen, &view).contains("3 exit: not recorded (ring_full)"));
    press(&mut screen, &view, "\t?");
    assert!(text(&mut screen, &view).contains("fold the subtree"));
    press(&mut screen, &view, "x");
    assert!(text(&mut screen, &view).contains("COMMAND"));
    assert!(!screen.press(Key::Char('q')));
}

#[test]
fn a_pause_is_visible() {
    let view = family();
    let mut screen = Screen::new(false);
    press(&mut screen, &view, " ");
    assert!(screen.is_paused());
    assert!(text(&mut screen, &view).contains("PAUSED"));
    press(&mut screen, &view, " ");
    assert!(!screen.is_paused());
}

#[test]
fn a_wide_terminal_has_all_lists() {
    let view = family();
    let all = lines(&mut Screen::new(false), &view, (200, 60)).join("\n");
    for expected in ["COMMAND", "CATEGORY AND PROGRAM", "DIRECTORY", "/opt/lib"] {
        assert!(all.contains(expected), "{expected}: {all}");
    }
}

#[test]
fn every_size_is_drawn() {
    let view = family();
    for width in (0..90).chain([139, 140, 200]) {
        for height in (0..30).chain([31, 32, 60]) {
            let mut screen = Screen::new(true);
            for keys in ["", "j", "\t", "\t", "\t", "?", "x1", "\n"] {
                buffer(&mut screen, &view, (width, height));
                for c in keys.chars() {
                    let key = if c == '\n' {
                        Key::Enter
                    } else if c == '\t' {
                        Key::Tab
                    } else {
                        Key::Char(c)
                    };
                    screen.press(key);
                }
                buffer(&mut screen, &view, (width, height));
            }
        }
    }
}

#[test]
fn names_cannot_act_on_the_terminal() {
    let mut view = view(&["sh\x1b[2J"]).with_root("sh");
    view.forks(1, 2, SECOND);
    view.execs(2, SECOND, "/bin/x\x1b]0;t\x07", &["\x1b[31mred\u{202e}\n", "漢字"]);
    view.misses(2, SECOND, "/d\x1bir/\x07");
    let mut screen = Screen::new(false);
    for keys in ["", "\t", "\t", "1", "j", "\n"] {
        press(&mut screen, &view, keys);
        for size in [NARROW, (200, 60)] {
            for cell in &buffer(&mut screen, &view, size).content {
                let seen = !cell.symbol().chars().any(proctrace_report::escape::is_unseen);
                assert!(seen, "{:?}", cell.symbol());
            }
        }
    }
    assert!(text(&mut screen, &view).contains("\\u{1b}[31mred\\u{202e}\\n 漢 字"));
}

#[test]
fn without_colour_no_cell_has_one() {
    let mut view = family();
    view.loses(Kind::Fork, 1);
    let coloured = |screen: &mut Screen| {
        let buffer = buffer(screen, &view, (200, 60));
        buffer.content.iter().any(|cell| cell.fg != Color::Reset || cell.bg != Color::Reset)
    };
    assert!(!coloured(&mut Screen::new(false)));
    assert!(coloured(&mut Screen::new(true)));
    // The selected row is visible without colours.
    let buffer = buffer(&mut Screen::new(false), &view, NARROW);
    let is_reversed = |y: u16| buffer[(5, y)].modifier.contains(Modifier::REVERSED);
    assert!((6..23).any(is_reversed));
}

#[test]
fn a_long_list_scrolls() {
    let mut view = view(&["sh"]).with_root("sh");
    for child in 2..200 {
        view.forks(1, child, SECOND);
        view.execs(child, SECOND, &format!("/bin/p{child}"), &[&format!("/bin/p{child}")]);
    }
    let mut screen = Screen::new(false);
    press(&mut screen, &view, "ssss");
    press(&mut screen, &view, "G");
    assert!(text(&mut screen, &view).contains("/bin/p199"));
    buffer(&mut screen, &view, NARROW);
    screen.press(Key::PageUp);
    let all = text(&mut screen, &view);
    assert!(all.contains("/bin/p182") || all.contains("/bin/p183"), "{all}");
    press(&mut screen, &view, "g");
    assert!(text(&mut screen, &view).contains("/bin/p2\n"));
}

#[test]
fn the_line_for_logs_has_rates_since_the_last() {
    let mut view = family();
    let line = progress_line(&view, Progress::default());
    assert_eq!(line, "3.00 s: 5 processes, 5 alive, 1.7 forks/s, CPU 2.00 s (0.67 of 2), 0 lost");
    let before = Progress::of(&view);
    let line = progress_line(&view, before);
    assert!(line.contains(", - forks/s, CPU 2.00 s (- of 2), "), "{line}");
    view.forks(1, 14, 4 * SECOND);
    view.samples(10, 4 * SECOND, 1_000_000_000);
    let line = progress_line(&view, before);
    assert_eq!(line, "4.00 s: 6 processes, 6 alive, 1.0 forks/s, CPU 2.50 s (0.50 of 2), 0 lost");
    view.loses(Kind::Fork, 2);
    assert!(progress_line(&view, before).ends_with(", 2 lost"));
}

/// A figure that the recording lacks is no zero.
#[test]
fn what_the_recording_does_not_contain_is_no_number() {
    let reason = || proctrace_trace::Knowledge::absent("a log of system calls has none");
    let mut header = header(&["sh", "job.sh"]);
    let lookups = Quantity::ALL.iter().filter(|quantity| quantity.family().is_some());
    for quantity in [Quantity::Cpu, Quantity::Faults, Quantity::Switches].iter().chain(lookups) {
        header.knowledge.insert(quantity.name().to_owned(), reason());
    }
    let mut view = View::new(header, Box::new(ByFile)).with_root("sh");
    view.samples(1, 3 * SECOND, 1);
    let mut screen = Screen::new(false);
    let list = text(&mut screen, &view);
    assert!(list.contains("CPU time -  "), "{list}");
    assert!(list.contains("failed look-ups -  "), "{list}");
    let row = list.lines().find(|line| line.ends_with("sh")).unwrap();
    let columns: Vec<&str> = row.split_whitespace().collect();
    assert_eq!((columns[2], columns[3], columns[6]), ("-", "-", "-"), "{row}");
    press(&mut screen, &view, "\n");
    let detail = text(&mut screen, &view);
    for absent in [" minor faults", " voluntary switches", "now 0 %", " failed look-ups"] {
        let is_there = detail.lines().skip(4).any(|line| line.contains(absent));
        assert!(!is_there, "{absent}: {detail}");
    }
    // The heading of the relatives alone.
    assert!(!detail.lines().any(|line| line.starts_with(" CPU         0")), "{detail}");
    let cpu = detail.lines().find(|line| line.starts_with(" CPU         ")).unwrap();
    assert_eq!(cpu.trim_start(), "CPU         waited for a CPU 0 s", "{detail}");
    assert!(detail.contains("written by system calls 0 B"), "{detail}");
}
