//! The common style of all figures: colours, font sizes, spacing.

use super::extent::Font;

/// A colour in SVG notation.
pub(crate) type Colour = &'static str;

/// Paul Tol's vibrant scheme: colours distinguishable with any kind of colour vision. Neither of
/// the first two resembles those of the categories below.
const VIBRANT: [Colour; 7] =
    ["#0077bb", "#ee7733", "#33bbee", "#ee3377", "#009988", "#cc3311", "#bbbbbb"];

/// His muted scheme, for larger numbers of items.
const MUTED: [Colour; 9] = [
    "#332288", "#cc6677", "#44aa99", "#ddcc77", "#88ccee", "#882255", "#117733", "#aa4499",
    "#999933",
];

/// His light scheme, without its darkest colour: backgrounds for dark text.
pub(crate) const LIGHT: [Colour; 7] =
    ["#77aadd", "#ee8866", "#eedd88", "#ffaabb", "#99ddff", "#44bb99", "#bbcc33"];

/// His diverging scheme from blue over white to red, as red, green, blue.
pub(crate) const DIVERGING: [[u8; 3]; 9] = [
    [0x21, 0x66, 0xac],
    [0x43, 0x93, 0xc3],
    [0x92, 0xc5, 0xde],
    [0xd1, 0xe5, 0xf0],
    [0xf7, 0xf7, 0xf7],
    [0xfd, 0xdb, 0xc7],
    [0xf4, 0xa5, 0x82],
    [0xd6, 0x60, 0x4d],
    [0xb2, 0x18, 0x2b],
];

/// For remainders and missing values.
pub(crate) const REST: Colour = "#bbbbbb";
pub(crate) const INK: Colour = "#222222";
pub(crate) const FAINT_INK: Colour = "#595959";
pub(crate) const AXIS: Colour = "#888888";
pub(crate) const GRID: Colour = "#e4e4e4";
pub(crate) const PAPER: Colour = "#ffffff";
/// For the range that measurements have without any difference.
pub(crate) const NOISE: Colour = "#eeeeee";
/// For requested values and moments in time.
pub(crate) const MARK: Colour = "#444444";
/// For amounts above the requested value; in a waterfall, for increases.
pub(crate) const MORE: Colour = "#cc3311";
/// For decreases.
pub(crate) const LESS: Colour = "#009988";

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
    let bright = matches!(colour, "#ee7733" | "#33bbee" | "#bbbbbb" | "#ddcc77" | "#88ccee");
    if bright { INK } else { PAPER }
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
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), MUTED.len());
    }
}
