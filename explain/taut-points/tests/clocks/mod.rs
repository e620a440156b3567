//! Clocks of which everything is known.

/// Random cases; TAUT_CASES says how many more than the few that a test run has time for.
pub fn cases() -> u64 {
    std::env::var("TAUT_CASES").ok().and_then(|count| count.parse().ok()).unwrap_or(100)
}

pub const PPM: f64 = 1e-6;

/// xorshift64*, so that a case is its seed.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn between(&mut self, from: f64, to: f64) -> f64 {
        from + (to - from) * self.next()
    }

    pub fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.next()).ln()
    }
}

/// A pair of clocks of which everything is known.
pub struct Truth {
    pub offset_ns: f64,
    pub rate: f64,
    /// The rate moves by this, ppm per second, from `-clip` to `clip` ppm around `rate`.
    pub ramp: f64,
    pub clip: f64,
    /// A's clock, and by how much B's steps there.
    pub step: Option<(f64, f64)>,
    pub length_ns: f64,
}

impl Truth {
    pub fn of(random: &mut Random, has_step: bool) -> Truth {
        let length_ns = random.between(3e9, 90e9);
        let kind = (random.next() * 3.0) as u32;
        let step = if random.next() < 0.5 { 1.0 } else { -1.0 } * random.between(30e6, 5e9);
        Truth {
            offset_ns: random.between(-5.0, 5.0) * 86_400e9,
            rate: random.between(-200.0, 200.0) * PPM,
            ramp: [0.0, random.between(-0.2, 0.2), random.between(-50.0, 50.0)][kind as usize],
            clip: 9.5,
            step: has_step.then(|| (random.between(0.3, 0.7) * length_ns, step)),
            length_ns,
        }
    }

    /// B − A when A shows `x` after its start.
    pub fn at(&self, x: f64) -> f64 {
        let t = (x - self.length_ns / 2.0) / 1e9;
        let bend_s = if self.ramp == 0.0 { f64::INFINITY } else { self.clip / self.ramp.abs() };
        // ns: the integral of the clipped rate (1 ppm for 1 s is 1 µs).
        let inside = t.clamp(-bend_s, bend_s);
        let slope = if self.ramp == 0.0 {
            0.0
        } else {
            self.ramp * inside * inside / 2.0 + self.ramp.signum() * self.clip * (t.abs() - inside.abs())
        };
        let stepped = self.step.filter(|(at, _)| x >= *at).map_or(0.0, |(_, by)| by);
        self.offset_ns + self.rate * x + slope * 1e3 + stepped
    }
}

pub const START: f64 = 1e12;
