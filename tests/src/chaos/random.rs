//! Choices that a seed repeats.

/// Steele, Lea and Flood's `SplitMix64`: small, and good enough to choose faults.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// The choices that belong to this seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Choices that do not depend on how many more are made here.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        Self(self.next())
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From `least` to `most`, both included.
    pub fn between(&mut self, least: u64, most: u64) -> u64 {
        least + self.next() % (most - least + 1)
    }

    /// An index below `count`.
    ///
    /// # Panics
    ///
    /// Where there is none.
    pub fn below(&mut self, count: usize) -> usize {
        let last = u64::try_from(count).expect("64 bits") - 1;
        usize::try_from(self.between(0, last)).expect("below a usize")
    }

    /// True so many times of a hundred.
    pub fn percent(&mut self, percent: u64) -> bool {
        self.between(0, 99) < percent
    }

    /// Puts items into another order.
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for at in (1..items.len()).rev() {
            items.swap(at, self.below(at + 1));
        }
    }
}
