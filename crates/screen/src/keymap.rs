//! The keys and what they do: one table, from which the list of keys and the line at the bottom are
//! made.

use crate::{Over, Pane, Screen, Sort};

/// A key, or several that belong together.
pub(crate) struct Binding {
    /// As the list of keys has them.
    pub(crate) keys: &'static str,
    /// Description of what they do, in lines of the list.
    pub(crate) does: &'static [&'static str],
    /// Hint at the bottom of the lists: key and word.
    lists: Option<(&'static str, &'static str)>,
    /// Hint at the bottom of an opened process.
    process: Option<(&'static str, &'static str)>,
}

const fn binding(keys: &'static str, does: &'static [&'static str]) -> Binding {
    Binding { keys, does, lists: None, process: None }
}

impl Binding {
    const fn lists(mut self, key: &'static str, word: &'static str) -> Self {
        self.lists = Some((key, word));
        self
    }

    const fn process(mut self, key: &'static str, word: &'static str) -> Self {
        self.process = Some((key, word));
        self
    }
}

/// The keys of the list of keys, in the order in which they stand at the bottom.
pub(crate) const BINDINGS: [Binding; 10] = [
    binding(
        "q Ctrl-C",
        &[
            "quit; the recording goes on. Under record --live, Ctrl-C stops the",
            "command, as without --live",
        ],
    )
    .lists("q", "quit"),
    binding("Esc", &["back from a process (as q Left Backspace); in a list, show all"])
        .lists("Esc", "show all")
        .process("Esc", "back"),
    binding("? h", &["this list; any key leaves it"]).lists("?", "help").process("?", "help"),
    binding("/", &["show only what has this text: Enter keeps it, Esc clears it"])
        .lists("/", "filter"),
    binding("s S", &["next or previous order of the list"]).lists("s", "sort"),
    binding("f F", &["fold the subtree ([+3]: sums) or category; fold or unfold all"])
        .lists("f", "fold"),
    binding("Enter", &["open the process, or (as Right l) a relative; fold the category"])
        .lists("Enter", "open")
        .process("Enter", "open it"),
    binding("Space", &["pause: the recording goes on, the view catches up later"])
        .lists("Space", "pause")
        .process("Space", "pause"),
    binding("Tab 1-5", &["processes, programs, steps, directories, losses; Shift-Tab: back"])
        .lists("Tab", "list"),
    binding("Up Down j k", &["move; PgUp PgDn Home End (g G) move further"])
        .process("Up Down", "choose a relative"),
];

impl Screen {
    /// The keys that do something now, with a word for each.
    pub(crate) fn keys_now(&self) -> Vec<(&'static str, &'static str)> {
        let all = BINDINGS.iter().filter_map(|binding| match self.over {
            Over::Nothing => binding.lists,
            Over::Process(_) => binding.process,
            Over::Help => None,
        });
        let mut keys: Vec<_> = all.filter(|(key, _)| self.acts(key)).collect();
        for (key, word) in &mut keys {
            if *key == "Space" && self.is_paused {
                *word = "continue";
            }
        }
        if self.over == Over::Help {
            keys.push(("any key", "back"));
        }
        keys
    }

    /// Returns whether a key does something in what is shown.
    fn acts(&self, key: &str) -> bool {
        let is_list = self.over == Over::Nothing;
        match key {
            "Esc" => !is_list || !self.filter.is_empty(),
            "s" => Sort::of(self.pane).len() > 1,
            "f" => match self.pane {
                Pane::Processes => !self.rows.is_empty(),
                Pane::Programs => self.categories.iter().any(Option::is_some),
                Pane::Steps | Pane::Directories | Pane::Losses => false,
            },
            "/" => self.pane != Pane::Losses && self.filter.is_empty(),
            "Enter" if is_list => self.pane == Pane::Processes && !self.rows.is_empty(),
            "Enter" | "Up Down" => !self.relatives.is_empty(),
            "Space" => !self.is_over || self.is_paused,
            _ => true,
        }
    }
}
