//! Text widths, so that space can be reserved before text is drawn.
//!
//! An SVG does not determine which font a viewer uses for "sans-serif". The widths here are the
//! advances of DejaVu Sans, the widest of the common fonts: text that fits in it also fits in
//! Arial, Helvetica, Liberation Sans and Noto Sans.

use std::borrow::Cow;

use crate::escape::xml;

/// Advances of the printable ASCII characters, in thousandths of the font size.
const ADVANCES: [u16; 95] = [
    318, 401, 460, 838, 636, 950, 780, 275, 390, 390, 500, 838, 318, 361, 318, 337, 636, 636, 636,
    636, 636, 636, 636, 636, 636, 636, 337, 337, 838, 838, 838, 531, 1000, 684, 686, 698, 770, 632,
    575, 775, 752, 295, 295, 656, 557, 863, 748, 787, 603, 787, 695, 635, 611, 732, 684, 989, 685,
    611, 685, 390, 337, 390, 838, 500, 500, 613, 635, 550, 635, 615, 352, 635, 634, 278, 278, 579,
    278, 974, 634, 612, 635, 635, 411, 521, 392, 634, 592, 818, 592, 592, 525, 636, 337, 636, 838,
];
/// Advance of other scripts: an ideograph is as wide as it is high.
const OTHER: u16 = 1000;
/// Advance of accented Latin, Greek and Cyrillic letters, few of which are wider.
const ALPHABETIC: u16 = 850;
/// Approximate width factor of bold letters.
const BOLD: f64 = 1.12;

/// A font size and weight.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Font {
    /// Size in pixels.
    pub size: f64,
    /// True if it is bold.
    pub bold: bool,
}

impl Font {
    /// Regular weight at this size.
    pub const fn regular(size: f64) -> Self {
        Self { size, bold: false }
    }

    /// Bold weight at this size.
    pub const fn bold(size: f64) -> Self {
        Self { size, bold: true }
    }

    /// Width of one line of text in pixels, as displayed, i.e. with harmful characters escaped.
    pub fn width(self, text: &str) -> f64 {
        let thousandths: u64 = xml(text).chars().map(|c| u64::from(advance(c))).sum();
        thousandths as f64 / 1000.0 * self.size * if self.bold { BOLD } else { 1.0 }
    }

    /// The text as displayed, truncated with an ellipsis if it is wider than `width` pixels.
    pub fn fit(self, text: &str, width: f64) -> Cow<'_, str> {
        let text = xml(text);
        // A name may be megabytes long; no more characters than this can fit.
        let longest = (width / self.size.max(1.0) * 4.0).max(0.0) as usize + 1;
        if text.len() <= longest.saturating_mul(4) && self.width(&text) <= width {
            return text;
        }
        let mut kept = String::new();
        let mut room = width - self.width("…");
        for c in text.chars().take(longest) {
            room -= self.width(c.encode_utf8(&mut [0; 4]));
            if room < 0.0 {
                break;
            }
            kept.push(c);
        }
        kept.truncate(kept.trim_end().len());
        kept.push('…');
        kept.into()
    }

    /// A name as displayed, shortened in the middle if it is wider than `width` pixels: names that
    /// begin alike differ in their ends ("gcc-12", "cc1plus").
    pub fn fit_name(self, name: &str, width: f64) -> Cow<'_, str> {
        let name = xml(name);
        let longest = (width / self.size.max(1.0) * 4.0).max(0.0) as usize + 1;
        if name.len() <= longest.saturating_mul(4) && self.width(&name) <= width {
            return name;
        }
        let mut room = width - self.width("…");
        let mut takes = |c: &char, least: f64| {
            let left = room - self.width(c.encode_utf8(&mut [0; 4]));
            let fits = left >= least;
            room = if fits { left } else { room };
            fits
        };
        let half = (width - self.width("…")) / 2.0;
        let front: String = name.chars().take(longest).take_while(|c| takes(c, half)).collect();
        let end: Vec<char> =
            name.chars().rev().take(longest).take_while(|c| takes(c, 0.0)).collect();
        let end: String = end.into_iter().rev().collect();
        format!("{}…{}", front.trim_end(), end.trim_start()).into()
    }

    /// Wraps text between words to lines of at most `width` pixels.
    pub fn wrap(self, text: &str, width: f64) -> Vec<String> {
        let mut lines: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            let word = self.fit(word, width);
            match lines.last_mut() {
                Some(line) if self.width(line) + self.width(" ") + self.width(&word) <= width => {
                    line.push(' ');
                    line.push_str(&word);
                }
                _ => lines.push(word.into_owned()),
            }
        }
        lines
    }
}

fn advance(c: char) -> u16 {
    match c {
        ' '..='~' => ADVANCES[c as usize - ' ' as usize],
        '·' => 318,
        '–' => 500,
        'µ' => 636,
        '\u{80}'..='\u{52f}' => ALPHABETIC,
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SMALL: Font = Font::regular(10.0);

    #[test]
    fn widths_are_those_of_the_font() {
        assert_eq!(SMALL.width("iW0"), 2.78 + 9.89 + 6.36);
        assert_eq!(SMALL.width(""), 0.0);
        assert!(Font::bold(10.0).width("a") > SMALL.width("a"));
    }

    #[test]
    fn lines_break_between_words() {
        let lines = SMALL.wrap("one two  three\nfour", 60.0);
        assert_eq!(lines, ["one two", "three four"]);
    }

    proptest! {
        #[test]
        fn what_is_fitted_fits(text in "\\PC{0,60}", width in 20.0..400.0) {
            prop_assert!(SMALL.width(&SMALL.fit(&text, width)) <= width + 1e-9);
            prop_assert!(SMALL.width(&SMALL.fit_name(&text, width)) <= width + 1e-9);
            for line in SMALL.wrap(&text, width) {
                prop_assert!(SMALL.width(&line) <= width + 1e-9);
            }
        }
    }
}
