//! Axes: their ranges, ticks, and tick labels in a suitable unit.

use std::ops::Range;

use proctrace_findings::{Axis, Unit};

use crate::number;

/// The range of an axis and its number format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Scale {
    low: f64,
    high: f64,
    logarithmic: bool,
    unit: Unit,
    title: String,
    /// Approximate number of ticks.
    ticks: usize,
}

/// A labelled position on an axis.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Tick {
    pub(crate) at: f64,
    pub(crate) label: String,
}

/// Maximum decades of a logarithmic axis: nanoseconds to years.
const DECADES_MAX: i32 = 24;

impl Scale {
    /// An axis for these values. A linear one starts at zero, or lower for negative values: with
    /// any other origin, bar lengths would not be proportional to values.
    pub(crate) fn of(axis: &Axis, values: impl IntoIterator<Item = f64>, ticks: usize) -> Self {
        let mut scale = Self::exact(axis, values, ticks);
        if !scale.logarithmic {
            let step = scale.step();
            scale.high = (scale.high / step - 1e-9).ceil() * step;
            scale.low = (scale.low / step + 1e-9).floor() * step;
        }
        scale
    }

    /// The same, but ending exactly at the largest value.
    pub(crate) fn exact(axis: &Axis, values: impl IntoIterator<Item = f64>, ticks: usize) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values {
            if value.is_finite() && (value > 0.0 || !axis.logarithmic) {
                (low, high) = (low.min(value), high.max(value));
            }
        }
        if low > high {
            (low, high) = (1.0, 1.0);
        }
        if axis.logarithmic {
            let first = (low.log10() + 1e-9).floor();
            let last = (high.log10() - 1e-9).ceil().max(first + 1.0);
            let first = first.max(last - f64::from(DECADES_MAX));
            (low, high) = (10_f64.powf(first), 10_f64.powf(last));
        } else {
            (low, high) = (low.min(0.0), high.max(0.0));
            if high - low <= 0.0 {
                high = low + 1.0;
            }
        }
        let (unit, title) = (axis.unit, axis.title.clone());
        Self { low, high, logarithmic: axis.logarithmic, unit, title, ticks: ticks.max(1) }
    }

    /// The same with the fixed range `low` to `high`.
    pub(crate) fn between(self, low: f64, high: f64) -> Self {
        if high > low && (low > 0.0 || !self.logarithmic) {
            Self { low, high, ..self }
        } else {
            self
        }
    }

    /// Extends a logarithmic axis slightly downwards, so that bars of the lowest value are visible.
    pub(crate) fn with_foot(mut self) -> Self {
        if self.logarithmic {
            self.low /= 2.0;
        }
        self
    }

    pub(crate) fn low(&self) -> f64 {
        self.low
    }

    /// The values between which the axis lies.
    pub(crate) fn range(&self) -> Range<f64> {
        self.low..self.high
    }

    /// The relative position of a value between the begin (0) and the end (1) of the axis, clamped
    /// to it.
    pub(crate) fn part(&self, value: f64) -> f64 {
        let part = if self.logarithmic {
            let (low, high) = (self.low.log10(), self.high.log10());
            (value.max(self.low).log10() - low) / (high - low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if part.is_finite() { part.clamp(0.0, 1.0) } else { 0.0 }
    }

    /// True if a value lies on the axis.
    pub(crate) fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }

    /// The axis label: its title, and the unit unless the tick labels contain it.
    pub(crate) fn title(&self) -> String {
        let unit = if self.logarithmic { "" } else { self.spoken().1 };
        let unit = match (unit, self.unit) {
            ("", Unit::PerSecond) => "per second",
            ("", Unit::Cores) => "cores",
            ("", Unit::Percent) => "%",
            (unit, _) => unit,
        };
        let said = unit.len() > 2 && self.title.to_lowercase().contains(unit);
        match (unit.is_empty() || said, self.title.is_empty()) {
            (true, _) => self.title.clone(),
            (false, true) => unit.to_owned(),
            (false, false) => format!("{} ({unit})", self.title),
        }
    }

    /// The labelled ticks of the axis.
    pub(crate) fn ticks(&self) -> Vec<Tick> {
        if self.logarithmic { self.decades() } else { self.steps() }
    }

    /// Minor ticks of a logarithmic axis: 2 to 9 of each decade.
    pub(crate) fn minor(&self) -> Vec<f64> {
        if !self.logarithmic || self.high / self.low > 1e6 {
            return Vec::new();
        }
        let first = self.low.log10().floor() as i32;
        let last = self.high.log10().ceil() as i32;
        (first..last)
            .flat_map(|decade| (2..10).map(move |n| f64::from(n) * 10_f64.powi(decade)))
            .filter(|value| self.covers(*value))
            .collect()
    }

    fn decades(&self) -> Vec<Tick> {
        // Below two decades powers of ten alone are too few.
        if self.unit == Unit::Ratio && self.high / self.low < 100.0 {
            let leading: &[f64] =
                if self.high / self.low < 20.0 { &[1.0, 2.0, 5.0] } else { &[1.0, 3.0] };
            let decades = (self.low.log10().floor() as i32)..=(self.high.log10().ceil() as i32);
            let values = decades
                .flat_map(|decade| leading.iter().map(move |digit| digit * 10_f64.powi(decade)));
            let covered = values
                .filter(|at| (self.low * (1.0 - 1e-9)..=self.high * (1.0 + 1e-9)).contains(at));
            return covered.map(|at| Tick { at, label: self.value(at) }).collect();
        }
        let first = (self.low.log10() - 1e-9).ceil() as i32;
        let last = (self.high.log10() + 1e-9).floor() as i32;
        let every = (last - first) / self.ticks.max(2) as i32 + 1;
        (first..=last)
            .step_by(every.max(1) as usize)
            .map(|decade| 10_f64.powi(decade))
            .map(|at| Tick { at, label: self.value(at) })
            .collect()
    }

    fn steps(&self) -> Vec<Tick> {
        let step = self.step();
        let per = self.spoken().0;
        let decimals = (-(step / per).log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
        let first = (self.low / step - 1e-9).ceil() as i64;
        let last = (self.high / step + 1e-9).floor() as i64;
        (first..=last.min(first.saturating_add(1000)))
            .map(|n| n as f64 * step)
            .map(|at| Tick { at, label: self.short(at / per, decimals) })
            .collect()
    }

    /// A tick label without the unit, which is in the title.
    fn short(&self, value: f64, decimals: usize) -> String {
        let largest = self.high.abs().max(self.low.abs());
        let plain = matches!(self.unit, Unit::Nanoseconds | Unit::Bytes);
        if plain || largest < 1e4 {
            return signed(value, decimals);
        }
        let (per, letter) = thousands(largest);
        let decimals = (-(self.step() / per).log10() - 1e-9).ceil().clamp(0.0, 12.0) as usize;
        if value == 0.0 {
            "0".to_owned()
        } else {
            format!("{}{letter}", signed(value / per, decimals))
        }
    }

    /// The tick spacing: 1, 2 or 5 times a power of ten of the unit, or steps of clock time.
    fn step(&self) -> f64 {
        let (per, name) = self.spoken();
        let wanted = (self.high - self.low) / per / self.ticks as f64;
        let clock: &[f64] = match name {
            "min" => &[1.0, 2.0, 5.0, 10.0, 15.0, 30.0, 60.0],
            "h" => &[1.0, 2.0, 3.0, 6.0, 12.0, 24.0],
            _ => &[],
        };
        if let Some(step) = clock.iter().find(|step| **step >= wanted)
            && wanted > 0.5
        {
            return step * per;
        }
        let power = 10_f64.powf(wanted.log10().floor());
        let step = [1.0, 2.0, 5.0, 10.0].into_iter().find(|n| n * power >= wanted * (1.0 - 1e-9));
        let mut step = step.unwrap_or(10.0) * power;
        if self.unit == Unit::Count {
            step = step.max(1.0);
        }
        step * per
    }

    /// The unit suited to the range: its size in the axis's own unit, and its name.
    fn spoken(&self) -> (f64, &'static str) {
        let largest = self.high.abs().max(self.low.abs());
        let units: &[(f64, &str)] = match self.unit {
            Unit::Nanoseconds => {
                &[(1.0, "ns"), (1e3, "µs"), (1e6, "ms"), (1e9, "s"), (6e10, "min"), (3.6e12, "h")]
            }
            Unit::Bytes => {
                &[(1.0, "B"), (1e3, "kB"), (1e6, "MB"), (1e9, "GB"), (1e12, "TB"), (1e15, "PB")]
            }
            _ => &[(1.0, "")],
        };
        // 90 s and 90 min are easier to read than 1.5 min and 1.5 h.
        let enough = |per: f64| {
            largest >= if per > 1e10 && self.unit == Unit::Nanoseconds { 3.0 * per } else { per }
        };
        units.iter().rev().copied().find(|(per, _)| enough(*per)).unwrap_or(units[0])
    }

    /// A value with its unit, as displayed next to a bar.
    pub(crate) fn value(&self, value: f64) -> String {
        value_of(self.unit, value)
    }
}

/// A value with its unit.
pub(crate) fn value_of(unit: Unit, value: f64) -> String {
    let (sign, size) = if value < 0.0 { ("−", -value) } else { ("", value) };
    let text = match unit {
        Unit::Nanoseconds if size < 999.5 && size > 0.0 => format!("{} ns", about(size)),
        // Decades of an axis: 100 s rather than 1 min 40 s.
        Unit::Nanoseconds if size >= 1e11 && is_decade(size) => {
            format!("{} s", number::count((size / 1e9) as u64))
        }
        Unit::Nanoseconds if is_decade(size) => {
            let (per, name) = match size {
                ..1e6 => (1e3, "µs"),
                ..1e9 => (1e6, "ms"),
                _ => (1e9, "s"),
            };
            format!("{} {name}", about(size / per))
        }
        Unit::Nanoseconds => number::time(size as u64),
        Unit::Bytes if is_decade(size) => number::bytes(size as u64).replace(".0", ""),
        Unit::Bytes => number::bytes(size as u64),
        Unit::Percent => format!("{} %", about(size)),
        Unit::PerSecond => format!("{}/s", about(size)),
        Unit::Coefficient => format!("{size:.2}"),
        Unit::Text
        | Unit::List
        | Unit::Figure
        | Unit::Count
        | Unit::Cores
        | Unit::Ratio
        | Unit::Flag => about(size),
    };
    format!("{sign}{text}")
}

/// A number with about three significant digits.
fn about(value: f64) -> String {
    if value >= 1e15 {
        return format!("{value:.0e}");
    }
    if value >= 99.95 || value.fract() == 0.0 {
        return number::count(value.round() as u64);
    }
    let decimals = match value {
        9.995.. => 1,
        // Keeps a digit, so that 0.996 and 1 next to each other stay distinguishable.
        0.9995.. => 2,
        0.000_5.. => 3,
        _ if value == 0.0 => 0,
        _ => return format!("{value:.1e}"),
    };
    let text = format!("{value:.decimals$}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

fn is_decade(value: f64) -> bool {
    value > 0.0 && (value.log10() - value.log10().round()).abs() < 1e-9
}

/// Uses a minus sign as wide as a plus sign.
fn signed(value: f64, decimals: usize) -> String {
    let text = match value.abs() {
        1e7.. => format!("{value:.0e}"),
        _ => format!("{value:.decimals$}"),
    };
    match text.strip_prefix('-') {
        Some(rest) if rest.bytes().all(|byte| matches!(byte, b'0' | b'.')) => rest.to_owned(),
        Some(rest) => format!("−{rest}"),
        None => text,
    }
}

fn thousands(largest: f64) -> (f64, &'static str) {
    [(1e12, "T"), (1e9, "G"), (1e6, "M")]
        .into_iter()
        .find(|(per, _)| largest >= *per)
        .unwrap_or((1e3, "k"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn labels(axis: &Axis, values: &[f64], ticks: usize) -> (Vec<String>, String) {
        let scale = Scale::of(axis, values.iter().copied(), ticks);
        (scale.ticks().into_iter().map(|tick| tick.label).collect(), scale.title())
    }

    #[test]
    fn numbers_take_the_unit_that_suits_the_axis() {
        let time = Axis::linear("time", Unit::Nanoseconds);
        assert_eq!(labels(&time, &[7.2e9], 4).0, ["0", "2", "4", "6", "8"]);
        assert_eq!(labels(&time, &[7.2e9], 4).1, "time (s)");
        assert_eq!(labels(&time, &[90e9], 4).1, "time (s)");
        let (ticks, title) = labels(&time, &[3e12], 4);
        assert_eq!((ticks.join(" "), &*title), ("0 15 30 45 60".to_owned(), "time (min)"));
        assert_eq!(labels(&time, &[2.5e6], 5).0, ["0.0", "0.5", "1.0", "1.5", "2.0", "2.5"]);
        let memory = Axis::linear("PSS", Unit::Bytes);
        assert_eq!(labels(&memory, &[1.5e9], 3).1, "PSS (GB)");
        let count = Axis::linear("processes", Unit::Count);
        assert_eq!(labels(&count, &[70_000.0], 4).0, ["0", "20k", "40k", "60k", "80k"]);
        assert_eq!(labels(&count, &[2.0], 8).0, ["0", "1", "2"]);
        let r = Axis::linear("change", Unit::Percent);
        assert_eq!(labels(&r, &[-30.0, 10.0], 4).0, ["−30", "−20", "−10", "0", "10"]);
        assert_eq!(labels(&r, &[-30.0], 3).1, "change (%)");
        assert_eq!(
            labels(&Axis::linear("forks per second", Unit::PerSecond), &[1.0], 3).1,
            "forks per second"
        );
        assert_eq!(labels(&count, &[], 4).0, ["0", "1"]);
    }

    #[test]
    fn decades_have_units_of_their_own() {
        let time = Axis::logarithmic("life", Unit::Nanoseconds);
        let (ticks, title) = labels(&time, &[2e5, 4e9], 9);
        assert_eq!(ticks, ["100 µs", "1 ms", "10 ms", "100 ms", "1 s", "10 s"]);
        assert_eq!(title, "life");
        assert_eq!(labels(&time, &[2e11], 9).0, ["100 s", "1,000 s"]);
        let count = Axis::logarithmic("n", Unit::Count);
        assert_eq!(
            labels(&count, &[1.0, 72_500.0], 9).0,
            ["1", "10", "100", "1,000", "10,000", "100,000"]
        );
    }

    #[test]
    fn values_are_readable() {
        assert_eq!(value_of(Unit::Nanoseconds, 1.5e6), "1.5 ms");
        assert_eq!(value_of(Unit::Nanoseconds, -2.0), "−2 ns");
        assert_eq!(value_of(Unit::Percent, 12.345), "12.3 %");
        assert_eq!(value_of(Unit::Cores, 1.5), "1.5");
        assert_eq!(value_of(Unit::PerSecond, 1234.5), "1,235/s");
        assert_eq!(value_of(Unit::Ratio, 0.0001), "1.0e-4");
        assert_eq!(value_of(Unit::Coefficient, -0.5), "−0.50");
    }

    proptest! {
        #[test]
        fn any_values_have_an_axis(
            values in proptest::collection::vec(proptest::num::f64::ANY, 0..8),
            logarithmic: bool,
            ticks in 0_usize..12,
        ) {
            let values: Vec<f64> = values.into_iter().map(|value| value.clamp(-1e30, 1e30)).collect();
            let axis = Axis { title: String::new(), unit: Unit::Nanoseconds, logarithmic };
            let scale = Scale::of(&axis, values.iter().copied(), ticks);
            prop_assert!(scale.low < scale.high);
            let found = scale.ticks();
            prop_assert!(found.len() <= 2 * ticks + 8, "{found:?}");
            for value in values {
                prop_assert!((0.0..=1.0).contains(&scale.part(value)));
            }
        }
    }
}
