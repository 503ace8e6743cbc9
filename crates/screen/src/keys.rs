//! Keys, and what each does to the screen.

use crate::{Cursor, Over, Pane, Screen, Sort};

/// Maximum length of a filter, which is typed by hand.
const FILTER_MAX: usize = 100;

/// A key, independent of terminal libraries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Key {
    /// A character.
    Char(char),
    /// Enter.
    Enter,
    /// Escape.
    Escape,
    /// Tab.
    Tab,
    /// Shift and Tab.
    BackTab,
    /// Backspace.
    Backspace,
    /// Up.
    Up,
    /// Down.
    Down,
    /// Left.
    Left,
    /// Right.
    Right,
    /// Page up.
    PageUp,
    /// Page down.
    PageDown,
    /// To the first row.
    Home,
    /// To the last row.
    End,
}

impl Screen {
    /// Acts on a key. False if the view is to be closed.
    pub fn press(&mut self, key: Key) -> bool {
        if self.is_typing {
            self.type_filter(key);
            return true;
        }
        match (self.over, key) {
            (_, Key::Char('q')) if self.over == Over::Nothing => return false,
            (Over::Help, _) => {
                self.over = self.below_help.take().map_or(Over::Nothing, Over::Process);
            }
            // Nothing changes any more.
            (_, Key::Char(' ')) => self.is_paused = !self.is_paused && !self.is_over,
            (_, Key::Char('?' | 'h')) => {
                self.below_help = self.opened();
                self.over = Over::Help;
            }
            (Over::Process(serial), key) => self.press_in_process(serial, key),
            (Over::Nothing, key) => self.press_in_list(key),
        }
        true
    }

    fn type_filter(&mut self, key: Key) {
        match key {
            Key::Enter => self.is_typing = false,
            Key::Escape => {
                self.is_typing = false;
                self.filter.clear();
            }
            Key::Backspace => {
                self.filter.pop();
            }
            Key::Char(c) if !c.is_control() && self.filter.len() < FILTER_MAX => {
                self.filter.push(c);
            }
            _ => {}
        }
    }

    fn press_in_process(&mut self, serial: u32, key: Key) {
        let rows = self.relatives.len();
        match key {
            Key::Enter | Key::Right | Key::Char('l') => {
                if let Some(relative) = self.relatives.get(self.relative.row) {
                    self.open(*relative);
                }
            }
            Key::Escape | Key::Backspace | Key::Left | Key::Char('q') => {
                self.over = Over::Nothing;
                // The cursor stays with the process that was looked at.
                self.selected = Some(serial);
            }
            key => {
                let page = self.page;
                step(&mut self.relative, key, rows, page);
            }
        }
    }

    fn press_in_list(&mut self, key: Key) {
        match key {
            Key::Char('/') => self.is_typing = true,
            Key::Escape => self.filter.clear(),
            Key::Tab => self.turn(1),
            Key::BackTab => self.turn(Pane::ALL.len() - 1),
            Key::Char('s') => self.sort_next(1),
            Key::Char('S') => self.sort_next(Sort::of(self.pane).len() - 1),
            Key::Char('f') => self.fold(),
            Key::Char('F') => self.fold_all(),
            Key::Char(c @ '1'..='5') => {
                let number = c as usize - '1' as usize;
                self.pane = Pane::ALL[number];
            }
            Key::Enter if self.pane == Pane::Processes => {
                if let Some(serial) = self.selected {
                    self.open(serial);
                }
            }
            Key::Enter if self.pane == Pane::Programs => self.fold(),
            key => self.move_cursor(key),
        }
    }

    fn open(&mut self, serial: u32) {
        self.over = Over::Process(serial);
        self.relative = Cursor::default();
        self.relatives.clear();
    }

    fn turn(&mut self, panes: usize) {
        self.pane = Pane::ALL[(self.pane as usize + panes) % Pane::ALL.len()];
    }

    fn sort_next(&mut self, by: usize) {
        let sort = &mut self.sorts[self.pane as usize];
        *sort = (*sort + by) % Sort::of(self.pane).len();
    }

    fn fold(&mut self) {
        match self.pane {
            Pane::Processes => {
                if let Some(serial) = self.selected {
                    toggle(&mut self.folded, serial);
                }
            }
            Pane::Programs => {
                let row = self.cursor().row;
                if let Some(Some(category)) = self.categories.get(row).cloned() {
                    toggle(&mut self.folded_categories, category);
                }
            }
            Pane::Steps | Pane::Directories | Pane::Losses => {}
        }
    }

    /// Folds everything that is visible, or unfolds everything if anything is folded.
    fn fold_all(&mut self) {
        match self.pane {
            Pane::Processes if self.folded.is_empty() => self.folded.extend(&self.rows),
            Pane::Processes => self.folded.clear(),
            Pane::Programs if self.folded_categories.is_empty() => {
                self.folded_categories.extend(self.categories.iter().flatten().cloned());
            }
            Pane::Programs => self.folded_categories.clear(),
            Pane::Steps | Pane::Directories | Pane::Losses => {}
        }
    }

    fn move_cursor(&mut self, key: Key) {
        let page = self.page;
        let is_moved = step(self.cursor(), key, usize::MAX, page);
        if self.pane == Pane::Processes && is_moved {
            let row = self.cursor().row.min(self.rows.len().saturating_sub(1));
            self.cursor().row = row;
            self.selected = self.rows.get(row).copied();
        }
    }
}

fn toggle<T: std::hash::Hash + Eq>(set: &mut std::collections::HashSet<T>, item: T) {
    if !set.remove(&item) {
        set.insert(item);
    }
}

/// Moves a cursor in a list of `rows` rows; false if the key does not do that.
fn step(cursor: &mut Cursor, key: Key, rows: usize, page: usize) -> bool {
    let last = rows.saturating_sub(1);
    cursor.row = match key {
        Key::Up | Key::Char('k') => cursor.row.saturating_sub(1),
        Key::Down | Key::Char('j') => cursor.row.saturating_add(1).min(last),
        Key::PageUp => cursor.row.saturating_sub(page),
        Key::PageDown => cursor.row.saturating_add(page).min(last),
        Key::Home | Key::Char('g') => 0,
        Key::End | Key::Char('G') => last,
        _ => return false,
    };
    true
}
