//! The data of SVG paths, with as few characters as possible.

use std::fmt::Write as _;

use plotters_backend::BackendCoord;

/// A path of straight lines in relative coordinates.
#[derive(Debug, Default)]
pub(super) struct PathData {
    data: String,
    at: BackendCoord,
    start: BackendCoord,
    /// The command that was written last.
    command: char,
}

impl PathData {
    pub(super) fn as_str(&self) -> &str {
        &self.data
    }

    pub(super) fn move_to(&mut self, to: BackendCoord) {
        self.command('m');
        self.pair(to);
        self.start = to;
    }

    pub(super) fn line_to(&mut self, to: BackendCoord) {
        match (to.0 - self.at.0, to.1 - self.at.1) {
            (0, 0) => {}
            (dx, 0) => {
                self.command('h');
                self.number(dx);
                self.at = to;
            }
            (0, dy) => {
                self.command('v');
                self.number(dy);
                self.at = to;
            }
            _ => {
                // Pairs after the first need no command.
                if self.command != 'l' {
                    self.command('l');
                }
                self.pair(to);
            }
        }
    }

    pub(super) fn close(&mut self) {
        self.command('z');
        self.at = self.start;
    }

    fn command(&mut self, command: char) {
        self.data.push(command);
        self.command = command;
    }

    fn pair(&mut self, to: BackendCoord) {
        self.number(to.0 - self.at.0);
        self.number(to.1 - self.at.1);
        self.at = to;
    }

    fn number(&mut self, value: i32) {
        // A minus sign separates two numbers as well as a space does.
        if value >= 0 && self.data.ends_with(|c: char| c.is_ascii_digit()) {
            self.data.push(' ');
        }
        // Writing to a String cannot fail.
        let _ = write!(self.data, "{value}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_relative_and_short() {
        let mut path = PathData::default();
        path.move_to((10, 5));
        path.line_to((18, 5));
        path.move_to((3, 25));
        path.line_to((30, 25));
        path.line_to((30, 25));
        path.line_to((31, 20));
        path.line_to((32, 30));
        path.line_to((32, 0));
        path.close();
        path.move_to((4, 25));
        assert_eq!(path.as_str(), "m10 5h8m-15 20h27l1-5 1 10v-30zm1 0");
    }
}
