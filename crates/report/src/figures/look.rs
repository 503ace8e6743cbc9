//! The common style of all figures: colours, font sizes, spacing.

use plotters::style::RGBColor;

use super::extent::Font;

/// A colour.
pub(crate) type Colour = RGBColor;

/// A colour as 0xRRGGBB.
pub(crate) const fn rgb(code: u32) -> Colour {
    let [_, red, green, blue] = code.to_be_bytes();
    RGBColor(red, green, blue)
}

/// Paul Tol's vibrant scheme: colours distinguishable with any kind of colour vision. Neither of
/// the first two resembles those of the categories below.
const VIBRANT: [Colour; 7] = [
    rgb(0x0077bb),
    rgb(0xee7733),
    rgb(0x33bbee),
    rgb(0xee3377),
    rgb(0x009988),
    rgb(0xcc3311),
    rgb(0xbbbbbb),
];

/// His muted scheme, for larger numbers of items.
const MUTED: [Colour; 9] = [
    rgb(0x332288),
    rgb(0xcc6677),
    rgb(0x44aa99),
    rgb(0xddcc77),
    rgb(0x88ccee),
    rgb(0x882255),
    rgb(0x117733),
    rgb(0xaa4499),
    rgb(0x999933),
];

/// His light scheme, without its darkest colour: backgrounds for dark text.
pub(crate) const LIGHT: [Colour; 7] = [
    rgb(0x77aadd),
    rgb(0xee8866),
    rgb(0xeedd88),
    rgb(0xffaabb),
    rgb(0x99ddff),
    rgb(0x44bb99),
    rgb(0xbbcc33),
];

/// His diverging scheme from blue over white to red.
pub(crate) const DIVERGING: [Colour; 9] = [
    rgb(0x2166ac),
    rgb(0x4393c3),
    rgb(0x92c5de),
    rgb(0xd1e5f0),
    rgb(0xf7f7f7),
    rgb(0xfddbc7),
    rgb(0xf4a582),
    rgb(0xd6604d),
    rgb(0xb2182b),
];

/// Colour of remainders and missing values.
pub(crate) const REST: Colour = rgb(0xbbbbbb);
pub(crate) const INK: Colour = rgb(0x222222);
pub(crate) const FAINT_INK: Colour = rgb(0x595959);
pub(crate) const AXIS: Colour = rgb(0x888888);
pub(crate) const GRID: Colour = rgb(0xe4e4e4);
pub(crate) const PAPER: Colour = rgb(0xffffff);
/// Colour of the range that measurements have without any difference.
pub(crate) const NOISE: Colour = rgb(0xeeeeee);
/// Colour of requested values and moments in time.
pub(crate) const MARK: Colour = rgb(0x444444);
/// Colour of amounts above the requested value; in a waterfall, of increases.
pub(crate) const MORE: Colour = rgb(0xcc3311);
/// Colour of decreases.
pub(crate) const LESS: Colour = rgb(0x009988);

pub(crate) const TITLE: Font = Font::bold(17.0);
pub(crate) const HEADING: Font = Font::bold(12.0);
pub(crate) const LABEL: Font = Font::regular(12.0);
pub(crate) const TICK: Font = Font::regular(11.0);
pub(crate) const NOTE: Font = Font::regular(11.0);

/// Width of a figure, and its margin.
pub(crate) const WIDTH: f64 = 960.0;
pub(crate) const MARGIN: f64 = 16.0;
/// Gap between a label and its object.
pub(crate) const GAP: f64 = 6.0;
/// Line height of small type.
pub(crate) const LINE: f64 = 16.0;

/// The colour of a series. Up to seven series use the scheme with the strongest contrast.
pub(crate) fn series(at: usize, of: usize) -> Colour {
    if of <= VIBRANT.len() { VIBRANT[at % VIBRANT.len()] } else { category(at) }
}

/// The same, but grey for missing data and for series without a name of their own.
pub(crate) fn series_named(name: &str, at: usize, of: usize) -> Colour {
    if matches!(name, "missing" | "other" | "others" | "idle") { REST } else { series(at, of) }
}

/// A text colour readable on this colour.
pub(crate) fn ink_on(colour: Colour) -> Colour {
    const BRIGHT: [Colour; 5] =
        [rgb(0xee7733), rgb(0x33bbee), rgb(0xbbbbbb), rgb(0xddcc77), rgb(0x88ccee)];
    if BRIGHT.contains(&colour) { INK } else { PAPER }
}

/// A hash of the name that is the same everywhere (FNV-1a).
pub(crate) fn hash(name: &str) -> usize {
    let hash = name.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    (hash >> 32) as usize
}

/// Colours of categories by name, so that they agree between figures whatever their order: each
/// category gets the colour its name hashes to, or the next free one, in alphabetical order.
/// Categories beyond the scheme are grey.
pub(crate) fn categories(names: &[&str]) -> Vec<Colour> {
    let mut order: Vec<usize> = (0..names.len().min(MUTED.len())).collect();
    order.sort_by_key(|at| names[*at]);
    let mut colours = vec![REST; names.len()];
    let mut taken = [false; MUTED.len()];
    // Categories whose own colour is free go first, so that a displaced one does not displace
    // another.
    order.retain(|at| {
        let own = hash(names[*at]) % MUTED.len();
        if !taken[own] {
            colours[*at] = MUTED[own];
        }
        std::mem::replace(&mut taken[own], true)
    });
    for at in order {
        let first = hash(names[at]);
        let free = (0..MUTED.len()).map(|next| (first + next) % MUTED.len()).find(|n| !taken[*n]);
        if let Some(free) = free {
            taken[free] = true;
            colours[at] = MUTED[free];
        }
    }
    colours
}

/// The colour of a category by index; grey beyond the scheme.
pub(crate) fn category(at: usize) -> Colour {
    MUTED.get(at).copied().unwrap_or(REST)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_go_by_name_and_differ() {
        let (a, b) = (categories(&["sed", "awk", "o2-sim"]), categories(&["o2-sim", "sed", "awk"]));
        assert_eq!([a[0], a[1], a[2]], [b[1], b[2], b[0]]);
        let names: Vec<String> = (0..12).map(|n| format!("name-{n}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut all = categories(&names);
        assert_eq!(all.split_off(MUTED.len()), [REST; 3]);
        all.sort_unstable_by_key(|colour| (colour.0, colour.1, colour.2));
        all.dedup();
        assert_eq!(all.len(), MUTED.len());
    }
}
