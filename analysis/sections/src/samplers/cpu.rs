//! User and system time as samplers read it: fractional, and never compared with exact time.

/// User and system time in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Cpu {
    pub(crate) user_ns: f64,
    pub(crate) system_ns: f64,
}

impl Cpu {
    pub(crate) fn total_ns(self) -> f64 {
        self.user_ns + self.system_ns
    }

    pub(crate) fn plus(self, other: Self) -> Self {
        Self { user_ns: self.user_ns + other.user_ns, system_ns: self.system_ns + other.system_ns }
    }

    pub(crate) fn minus(self, other: Self) -> Self {
        self.plus(other.times(-1.0))
    }

    pub(crate) fn times(self, factor: f64) -> Self {
        Self { user_ns: self.user_ns * factor, system_ns: self.system_ns * factor }
    }

    pub(crate) fn max(self, other: Self) -> Self {
        Self {
            user_ns: self.user_ns.max(other.user_ns),
            system_ns: self.system_ns.max(other.system_ns),
        }
    }

    /// Rounded down to whole units, each part separately, as they are counted and printed.
    pub(crate) fn whole(self, unit_ns: f64) -> Self {
        // Floating-point rounding may leave a sum of fractions just short of a whole unit.
        let whole = |ns: f64| ((ns + 0.5).max(0.0) / unit_ns).floor() * unit_ns;
        Self { user_ns: whole(self.user_ns), system_ns: whole(self.system_ns) }
    }
}

impl From<(f64, f64)> for Cpu {
    fn from((user_ns, system_ns): (f64, f64)) -> Self {
        Self { user_ns, system_ns }
    }
}
