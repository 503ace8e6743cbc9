//! A terminal that a program runs in, as a test sees it: its screen, its modes, its keys.

#![allow(
    dead_code,
    clippy::allow_attributes,
    reason = "the tests of proctrace-recorder use a part of it"
)]

use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::process::{Child, Command};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Pts, Pty, open};
use rustix::termios::{LocalModes, tcgetattr};

/// Maximum time to wait: what is waited for comes much sooner, and without it the test fails.
const PATIENCE: Duration = Duration::from_secs(120);

/// Runs a program, says how it ended, and keeps the session until there is a line to read: the kernel
/// resets a terminal whose session ends.
const SESSION: &str = r#"trap : INT QUIT; "$@"; echo "status=$?."; read line"#;

/// A program in a terminal.
pub(crate) struct Terminal {
    pty: Arc<Pty>,
    pts: Pts,
    screen: Arc<Mutex<vt100::Parser>>,
    shell: Child,
}

fn cells(number: u16) -> NonZeroU16 {
    NonZeroU16::new(number).unwrap()
}

impl Terminal {
    /// Runs a program in a new terminal of so many columns and rows, in a session of its own.
    pub(crate) fn run(program: &Command, (columns, rows): (u16, u16)) -> Self {
        let mut command = Command::new("sh");
        command.args(["-c", SESSION, "sh"]).arg(program.get_program()).args(program.get_args());
        for (name, value) in program.get_envs() {
            match value {
                Some(value) => command.env(name, value),
                None => command.env_remove(name),
            };
        }
        if let Some(directory) = program.get_current_dir() {
            command.current_dir(directory);
        }
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(rows, columns)).unwrap();
        let screen = Arc::new(Mutex::new(vt100::Parser::new(cells(rows), cells(columns), 0)));
        let shell = pty_process::blocking::Command::from(command).spawn_borrowed(&pts).unwrap();
        let pty = Arc::new(pty);
        let (source, target) = (Arc::clone(&pty), Arc::clone(&screen));
        std::thread::spawn(move || {
            let mut bytes = [0; 1 << 16];
            while let Ok(read @ 1..) = (&*source).read(&mut bytes) {
                target.lock().unwrap().process(&bytes[..read]);
            }
        });
        Self { pty, pts, screen, shell }
    }

    /// Text on the screen, without spaces at the ends of lines.
    pub(crate) fn text(&self) -> String {
        let contents = self.screen.lock().unwrap().screen().contents();
        contents.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")
    }

    /// Returns whether a program has the whole screen.
    pub(crate) fn is_taken(&self) -> bool {
        self.screen.lock().unwrap().screen().alternate_screen()
    }

    /// Returns whether the cursor is hidden.
    pub(crate) fn hides_cursor(&self) -> bool {
        self.screen.lock().unwrap().screen().hide_cursor()
    }

    /// Returns whether the terminal echoes what is typed, and passes it on in lines.
    pub(crate) fn is_in_lines(&self) -> bool {
        let modes = tcgetattr(&self.pts).unwrap().local_modes;
        modes.contains(LocalModes::ECHO | LocalModes::ICANON | LocalModes::ISIG)
    }

    /// Waits until the screen shows something, and returns all of it.
    pub(crate) fn wait_for(&self, what: &str) -> String {
        self.wait_until(what, |text| text.contains(what))
    }

    /// Waits until the screen is as it should be, and returns it.
    pub(crate) fn wait_until(&self, what: &str, is_so: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let text = self.text();
            if is_so(&text) {
                return text;
            }
            assert!(began.elapsed() < PATIENCE, "not seen: {what}\n{text}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Types.
    pub(crate) fn press(&self, keys: &str) {
        (&*self.pty).write_all(keys.as_bytes()).unwrap();
    }

    /// Bytes that were typed and that no program has read.
    pub(crate) fn unread_bytes(&self) -> u64 {
        rustix::io::ioctl_fionread(&self.pts).unwrap()
    }

    /// Changes the size of the window.
    pub(crate) fn resize(&self, (columns, rows): (u16, u16)) {
        self.screen.lock().unwrap().screen_mut().set_size(cells(rows), cells(columns));
        self.pty.resize(Size::new(rows, columns)).unwrap();
    }

    /// The process of the program, if it runs.
    pub(crate) fn pid(&self) -> Option<i32> {
        let shell = self.shell.id();
        let children = std::fs::read_to_string(format!("/proc/{shell}/task/{shell}/children"));
        children.unwrap().split_whitespace().next().map(|pid| pid.parse().unwrap())
    }

    /// Waits for the end of the program, and returns its status as a shell has it. The terminal must
    /// be as it was before.
    pub(crate) fn wait_restored(&self) -> i32 {
        let text = self.wait_until("the end", |text| text.contains("status="));
        // The shell has written after the program.
        assert!(!self.is_taken() && !self.hides_cursor() && self.is_in_lines(), "{text}");
        let after = text.rsplit("status=").next().unwrap();
        after.split('.').next().unwrap().parse().unwrap()
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // After a failed assertion it may still run.
        let _ = self.shell.kill();
        let _ = self.shell.wait();
    }
}
