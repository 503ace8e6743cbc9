//! A logarithmic axis of ratios that includes 1.

/// The range of the axis.
#[derive(Debug)]
pub(super) struct Axis {
    low: f64,
    high: f64,
}

impl Axis {
    /// An axis that covers all values, and 1 and 2.
    pub(super) fn over(values: impl Iterator<Item = f64>) -> Self {
        let (low, high) = values
            .filter(|value| value.is_finite() && *value > 0.0)
            .fold((1.0_f64, 2.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Self { low: low * 0.93, high: high * 1.07 }
    }

    /// The relative position of a value, from 0 to 1.
    pub(super) fn position(&self, value: f64) -> f64 {
        (value / self.low).ln() / (self.high / self.low).ln()
    }

    /// Round numbers as ticks, few enough to be readable.
    pub(super) fn ticks(&self) -> Vec<f64> {
        let leading: &[f64] =
            if self.high / self.low > 20.0 { &[1.0, 3.0] } else { &[1.0, 2.0, 5.0] };
        let decades = [0.1, 1.0, 10.0, 100.0, 1000.0];
        let ticks =
            decades.iter().flat_map(|decade| leading.iter().map(move |digit| decade * digit));
        ticks.filter(|tick| (self.low..=self.high).contains(tick)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_factor_is_the_same_distance_everywhere() {
        let axis = Axis::over([0.8, 120.0].into_iter());
        let step = |from: f64| axis.position(2.0 * from) - axis.position(from);
        assert!((step(1.0) - step(50.0)).abs() < 1e-12);
        assert!(axis.position(0.8) > 0.0 && axis.position(120.0) < 1.0);
        assert_eq!(axis.ticks(), [1.0, 3.0, 10.0, 30.0, 100.0]);
    }

    #[test]
    fn one_is_always_on_it() {
        assert_eq!(Axis::over([1.1].into_iter()).ticks(), [1.0, 2.0]);
        assert_eq!(Axis::over([f64::NAN, 9.0].into_iter()).ticks(), [1.0, 2.0, 5.0]);
    }
}
