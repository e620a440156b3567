//! Which servo is where: bus n carries leg n with its shoulder, femur and tibia, ids rising from 1; and how the servos are set.

use taut_bus::{
    servo::{Body, Limits, Servo},
    sim::{Bus, Wiring},
};

/// Legs, and buses: front right, front left, rear right, rear left.
pub const LEGS: usize = 4;
/// Joints of a leg.
pub const JOINTS: usize = 3;
/// All servos.
pub const SERVOS: usize = LEGS * JOINTS;

/// The id of a servo.
pub fn id(servo: usize) -> u8 {
    servo as u8 + 1
}

/// The bus of a servo.
pub fn bus(servo: usize) -> usize {
    servo / JOINTS
}

/// The buses with their servos, moved by the caller's physics. Gains are those that mjbots/quad's
/// `utils/config_servos.py` sets in the A2; the torque is the peak of its qdd100 servos.
pub fn buses(wiring: &Wiring) -> Vec<Bus> {
    let servo = |servo: usize| {
        let limits = Limits {
            torque_nm: 16.0,
            timeout_torque_nm: 5.0,
            kp_nm: if servo.is_multiple_of(JOINTS) { 300.0 } else { 100.0 },
            kd_nm_s: 9.0,
            ..Limits::default()
        };
        // Heat: no source; such that standing warms by 25 K.
        let body = Body { turns_by_itself: false, heating_k_s_nm2: 0.02, cooling_s: 250.0, ..Body::default() };
        Servo::new(id(servo), body, limits, bus(servo) as u32)
    };
    let on = |leg: usize| (0..JOINTS).map(move |joint| servo(leg * JOINTS + joint)).collect();
    (0..LEGS).map(|leg| Bus::new(Wiring { seed: wiring.seed + leg as u64, ..wiring.clone() }, on(leg))).collect()
}
