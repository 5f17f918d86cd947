//! A source of random numbers for simulations: the same on every machine.

/// SplitMix64.
pub struct Random(pub u64);

impl Random {
    /// Any number.
    #[allow(clippy::should_implement_trait, reason = "an endless source, not an iterator")]
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In `0..limit`; 0 if that is empty.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// In `1..=greatest`, mostly far below.
    pub fn span(&mut self, greatest: u64) -> u64 {
        let shift = self.below(4);
        1 + (self.below(greatest) >> shift)
    }

    /// In (0, 1].
    pub fn unit(&mut self) -> f64 {
        ((self.next() >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    /// Log-uniform from `low` to `high`.
    pub fn log_uniform(&mut self, low: f64, high: f64) -> f64 {
        low * (high / low).powf(self.unit())
    }

    /// One of these.
    pub fn one_of<T: Copy>(&mut self, these: &[T]) -> T {
        these[self.below(these.len() as u64) as usize]
    }

    /// Exponential with mean 1.
    pub fn exponential(&mut self) -> f64 {
        -self.unit().ln()
    }

    /// Normal with mean 0 and variance 1.
    pub fn normal(&mut self) -> f64 {
        (2.0 * self.exponential()).sqrt() * (std::f64::consts::TAU * self.unit()).cos()
    }
}
