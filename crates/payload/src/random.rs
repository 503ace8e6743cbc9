//! Pseudo-random numbers that are the same on every machine.

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014).
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number in [0, 1).
    pub(crate) fn fraction(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A factor with a mean of 1: mostly slightly less, sometimes up to 2.5. Simulated events vary
    /// this much, because some have far more particles than others.
    pub(crate) fn uneven(&mut self) -> f64 {
        let u = self.fraction();
        0.5 + 2.0 * u * u * u
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_sequence() {
        let mut random = Random::new(1_234_567);
        let first: Vec<u64> = (0..3).map(|_| random.next()).collect();
        assert_eq!(first, [6457827717110365317, 3203168211198807973, 9817491932198370423]);
    }

    #[test]
    fn uneven_times_have_a_mean_of_one() {
        let mut random = Random::new(1);
        let mean = (0..100_000).map(|_| random.uneven()).sum::<f64>() / 1e5;
        assert!((mean - 1.0).abs() < 0.01, "{mean}");
    }
}
