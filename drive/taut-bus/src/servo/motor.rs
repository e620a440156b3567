//! What a simulated servo's motor does: control modes, the latched time-out, heat, and a turning mass.
//! Semantics of the modes: moteus reference, "Control modes" and "position watchdog".

use moteus_protocol::Mode;

/// Control period: 20 kHz.
pub(super) const TICK_NS: u64 = 50_000;
/// A longer silence is simulated for so long and then counts as passed: what moves has come to rest by then.
const LONGEST_NS: u64 = 1_000_000_000;
/// moteus' fault code 38.
pub const OVER_TEMPERATURE: u8 = 38;

/// What turns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Body {
    /// Moment of inertia at the output, kg·m².
    pub inertia_kg_m2: f64,
    /// Torque of whatever hangs on the output, Nm.
    pub load_nm: f64,
    /// Viscous friction, Nm·s a revolution.
    pub friction_nm_s: f64,
    /// False: the caller moves it, by [`Motor::place`].
    pub turns_by_itself: bool,
    /// How fast torque heats it, K/s at 1 Nm; the heat grows with the torque's square.
    pub heating_k_s_nm2: f64,
    /// Time constant of its cooling down to 25 °C, s.
    pub cooling_s: f64,
}

impl Default for Body {
    fn default() -> Body {
        Body {
            inertia_kg_m2: 1e-3,
            load_nm: 0.0,
            friction_nm_s: 0.01,
            turns_by_itself: true,
            heating_k_s_nm2: 1.0,
            cooling_s: 30.0,
        }
    }
}

/// The servo's configuration.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limits {
    /// Largest torque in any mode, Nm.
    pub torque_nm: f64,
    /// Largest torque after a time-out, Nm.
    pub timeout_torque_nm: f64,
    /// Position gain, Nm a revolution.
    pub kp_nm: f64,
    /// Velocity gain, Nm·s a revolution.
    pub kd_nm_s: f64,
    /// Damping of shorted windings, Nm·s a revolution.
    pub brake_nm_s: f64,
    /// Time-out of position mode where a command brings none.
    pub timeout_ns: u64,
    /// The temperature that is a fault, °C.
    pub temperature_c: f64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            torque_nm: 5.0,
            timeout_torque_nm: 5.0,
            kp_nm: 20.0,
            kd_nm_s: 0.5,
            brake_nm_s: 1.0,
            timeout_ns: 100_000_000,
            temperature_c: 75.0,
        }
    }
}

/// One command as its registers say it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Command {
    pub mode: Mode,
    /// NaN: from where it is.
    pub position_rev: f64,
    pub velocity_rev_s: f64,
    pub feedforward_nm: f64,
    pub kp_scale: f64,
    pub kd_scale: f64,
    /// NaN: the configured one.
    pub max_torque_nm: f64,
    /// NaN: none.
    pub stop_rev: f64,
    /// 0: the configured one. NaN: none.
    pub timeout_s: f64,
}

impl Command {
    /// With moteus' defaults of what is not written.
    pub fn new(mode: Mode) -> Command {
        Command {
            mode,
            position_rev: f64::NAN,
            velocity_rev_s: 0.0,
            feedforward_nm: 0.0,
            kp_scale: 1.0,
            kd_scale: 1.0,
            max_torque_nm: f64::NAN,
            stop_rev: f64::NAN,
            timeout_s: 0.0,
        }
    }
}

/// Motor, controller and load.
#[derive(Clone, Debug)]
pub struct Motor {
    body: Body,
    limits: Limits,
    mode: Mode,
    fault: u8,
    command: Command,
    /// Where position mode wants to be; moves with the commanded velocity.
    target_rev: f64,
    expires_ns: Option<u64>,
    /// `None` before the first frame.
    now_ns: Option<u64>,
    position_rev: f64,
    velocity_rev_s: f64,
    torque_nm: f64,
    temperature_c: f64,
}

impl Motor {
    /// At rest at 0, stopped, at 25 °C.
    pub fn new(body: Body, limits: Limits) -> Motor {
        Motor {
            body,
            limits,
            mode: Mode::Stopped,
            fault: 0,
            command: Command::new(Mode::Stopped),
            target_rev: 0.0,
            expires_ns: None,
            now_ns: None,
            position_rev: 0.0,
            velocity_rev_s: 0.0,
            torque_nm: 0.0,
            temperature_c: 25.0,
        }
    }

    /// Lives until `now_ns`, tick by tick.
    pub fn advance(&mut self, now_ns: u64) {
        let mut at = *self.now_ns.get_or_insert(now_ns);
        let skipped = now_ns.saturating_sub(at).saturating_sub(LONGEST_NS);
        let simulated_to = now_ns - skipped.min(now_ns);
        while at + TICK_NS <= simulated_to {
            at += TICK_NS;
            self.tick(at);
        }
        self.now_ns = Some(at + skipped);
        self.watch(at + skipped);
    }

    /// Obeys, unless it may not: a fault and a time-out are latched, and only stop leaves them.
    pub(super) fn command(&mut self, command: Command) {
        if command.mode == Mode::Stopped {
            (self.mode, self.fault) = (Mode::Stopped, 0);
        } else if !self.mode.is_error() {
            self.mode = command.mode;
        } else {
            return;
        }
        let now_ns = self.now_ns.unwrap_or(0);
        self.expires_ns = match (command.mode, command.timeout_s) {
            (Mode::Position, 0.0) => Some(now_ns + self.limits.timeout_ns),
            (Mode::Position, s) if s > 0.0 => Some(now_ns + (s * 1e9) as u64),
            _ => None,
        };
        // Position mode without a position goes on from its last target, or begins where the motor is.
        let was_position = self.command.mode == Mode::Position;
        self.target_rev = match command.position_rev {
            position if position.is_finite() => position,
            _ if was_position => self.target_rev,
            _ => self.position_rev,
        };
        self.command = command;
        self.torque_nm = self.controlled_torque_nm();
    }

    /// The mode it is in.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// moteus' fault code; 0 is none.
    pub fn fault(&self) -> u8 {
        self.fault
    }

    /// Revolutions of the output.
    pub fn position_rev(&self) -> f64 {
        self.position_rev
    }

    /// Revolutions a second.
    pub fn velocity_rev_s(&self) -> f64 {
        self.velocity_rev_s
    }

    /// Torque that the motor gives now, Nm.
    pub fn torque_nm(&self) -> f64 {
        self.torque_nm
    }

    /// °C.
    pub fn temperature_c(&self) -> f64 {
        self.temperature_c
    }

    /// Where position mode wants to be, revolutions.
    pub fn target_rev(&self) -> f64 {
        self.target_rev
    }

    /// Heats or cools it.
    pub fn set_temperature_c(&mut self, temperature_c: f64) {
        self.temperature_c = temperature_c;
    }

    /// Hangs a torque on the output, Nm.
    pub fn set_load_nm(&mut self, load_nm: f64) {
        self.body.load_nm = load_nm;
    }

    /// Where the caller's physics has it now; see [`Body::turns_by_itself`].
    pub fn place(&mut self, position_rev: f64, velocity_rev_s: f64) {
        (self.position_rev, self.velocity_rev_s) = (position_rev, velocity_rev_s);
    }

    /// Calls this place so many revolutions.
    pub(super) fn set_position(&mut self, position_rev: f64) {
        if position_rev.is_finite() {
            self.position_rev = position_rev;
        }
    }

    fn tick(&mut self, now_ns: u64) {
        let dt_s = TICK_NS as f64 / 1e9;
        self.watch(now_ns);
        if self.mode == Mode::Position {
            let stop = self.command.stop_rev;
            let step = self.command.velocity_rev_s * dt_s;
            // Not beyond the stop position, from whichever side it comes.
            self.target_rev = match (self.target_rev, self.target_rev + step) {
                (from, to) if stop.is_finite() && (stop - from) * (stop - to) <= 0.0 && step != 0.0 => stop,
                (_, to) => to,
            };
        }
        self.torque_nm = self.controlled_torque_nm();
        if self.body.turns_by_itself {
            let b = self.body;
            let torque = self.torque_nm + b.load_nm - b.friction_nm_s * self.velocity_rev_s;
            self.velocity_rev_s += torque / (std::f64::consts::TAU * b.inertia_kg_m2) * dt_s;
            self.position_rev += self.velocity_rev_s * dt_s;
        }
        let heating = self.body.heating_k_s_nm2 * self.torque_nm * self.torque_nm;
        self.temperature_c += (heating - (self.temperature_c - 25.0) / self.body.cooling_s) * dt_s;
    }

    fn watch(&mut self, now_ns: u64) {
        if self.temperature_c > self.limits.temperature_c && self.mode != Mode::Stopped {
            (self.mode, self.fault) = (Mode::Fault, OVER_TEMPERATURE);
        }
        if self.mode == Mode::Position && self.expires_ns.is_some_and(|expires| now_ns >= expires) {
            self.mode = Mode::Timeout;
        }
        if !matches!(self.mode, Mode::Position) {
            self.torque_nm = self.controlled_torque_nm();
        }
    }

    fn controlled_torque_nm(&self) -> f64 {
        let (c, l) = (&self.command, &self.limits);
        let cap = match c.max_torque_nm {
            _ if self.mode == Mode::Timeout => l.timeout_torque_nm.min(l.torque_nm),
            nm if nm >= 0.0 => nm.min(l.torque_nm),
            _ => l.torque_nm,
        };
        let torque = match self.mode {
            Mode::Position => {
                let moving = if self.target_rev == c.stop_rev { 0.0 } else { c.velocity_rev_s };
                l.kp_nm * c.kp_scale * (self.target_rev - self.position_rev)
                    + l.kd_nm_s * c.kd_scale * (moving - self.velocity_rev_s)
                    + c.feedforward_nm
            }
            Mode::ZeroVelocity => -l.kd_nm_s * c.kd_scale * self.velocity_rev_s,
            // Whatever the last command scaled: the way down is the configured one.
            Mode::Timeout => -l.kd_nm_s * self.velocity_rev_s,
            Mode::Brake => -l.brake_nm_s * self.velocity_rev_s,
            _ => 0.0,
        };
        torque.clamp(-cap, cap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: u64 = 1_000_000_000;

    fn falling(load_nm: f64) -> Motor {
        let mut motor = Motor::new(Body { load_nm, ..Body::default() }, Limits::default());
        motor.advance(0);
        motor.command(Command { position_rev: 0.0, ..Command::new(Mode::Position) });
        motor
    }

    #[test]
    fn after_the_time_out_it_sinks_at_load_over_damping() {
        let mut motor = falling(1.0);
        motor.advance(S);
        assert_eq!(motor.mode(), Mode::Timeout);
        // 1 Nm / (0.5 + 0.01 of friction) Nm·s
        assert!((motor.velocity_rev_s() - 1.0 / 0.51).abs() < 0.02, "{}", motor.velocity_rev_s());
    }

    #[test]
    fn a_load_beyond_the_cap_falls_and_the_torque_stays_at_the_cap() {
        let mut motor = falling(8.0);
        motor.advance(S);
        assert_eq!(motor.torque_nm(), -5.0);
        assert!(motor.velocity_rev_s() > 50.0, "{}", motor.velocity_rev_s());
    }

    #[test]
    fn after_the_time_out_a_cap_of_its_own_holds() {
        let limits = Limits { timeout_torque_nm: 2.0, ..Limits::default() };
        let mut motor = Motor::new(Body { load_nm: 3.0, ..Body::default() }, limits);
        motor.advance(0);
        motor.command(Command { position_rev: 0.0, ..Command::new(Mode::Position) });
        motor.advance(S / 20);
        assert!(motor.torque_nm() < -2.0, "{}", motor.torque_nm());
        motor.advance(S);
        assert_eq!((motor.mode(), motor.torque_nm()), (Mode::Timeout, -2.0));
    }

    #[test]
    fn a_commanded_cap_holds_in_position_mode() {
        let mut motor = falling(0.0);
        motor.command(Command { position_rev: 10.0, max_torque_nm: 0.5, ..Command::new(Mode::Position) });
        motor.advance(10 * TICK_NS);
        assert_eq!(motor.torque_nm(), 0.5);
    }

    #[test]
    fn a_velocity_moves_the_target_to_the_stop_position() {
        let mut motor = falling(0.0);
        for cycle in 1..=2000 {
            motor.advance(cycle * S / 1000);
            motor.command(Command { velocity_rev_s: 0.5, stop_rev: 0.3, ..Command::new(Mode::Position) });
        }
        assert_eq!(motor.target_rev(), 0.3);
        assert!((motor.position_rev() - 0.3).abs() < 1e-3, "{}", motor.position_rev());
    }

    #[test]
    fn work_heats_and_rest_cools() {
        let mut motor = Motor::new(Body { turns_by_itself: false, ..Body::default() }, Limits::default());
        motor.advance(0);
        for cycle in 1..=1000 {
            motor.advance(cycle * S / 1000);
            motor.command(Command { feedforward_nm: 3.0, kp_scale: 0.0, ..Command::new(Mode::Position) });
        }
        // 9 K/s, less what it loses meanwhile.
        assert!((32.0..34.0).contains(&motor.temperature_c()), "{}", motor.temperature_c());
    }
}
