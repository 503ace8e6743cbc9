//! Simulated runs with normal noise, for tests.

use fastrand::Rng;

/// A source of simulated runs.
#[derive(Debug)]
pub struct Noise {
    rng: Rng,
    relative: f64,
}

impl Noise {
    /// One whose relative standard deviation is `relative`.
    pub fn new(seed: u64, relative: f64) -> Self {
        Self { rng: Rng::with_seed(seed), relative }
    }

    /// `n` runs around a mean.
    pub fn runs(&mut self, n: usize, mean: f64) -> Vec<f64> {
        (0..n).map(|_| mean * (1.0 + self.relative * self.normal())).collect()
    }

    /// Box and Muller, A Note on the Generation of Random Normal Deviates (1958).
    fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.rng.f64()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.rng.f64()).cos()
    }
}
