//! A simulated servo that answers the moteus register protocol: position mode, temperature, fault, watchdog.
//! Takes frames and times, gives frames; reads no clock.

mod console;
mod motor;
mod registers;

use moteus_protocol::{
    Mode, READ_ERROR, REPLY_INT8, Resolution, Subframe, SubframeType, Value, WRITE_ERROR, WriteCanData, WriteCombiner,
    calculate_arbitration_id, parse_arbitration_id, parse_frame,
};

pub use motor::{Body, Limits, Motor, OVER_TEMPERATURE};

use crate::transport::Frame;
use console::{Console, Spoken};
use motor::Command;
use registers::{Reading, Refused};

/// All servos answer to this destination.
const BROADCAST: i8 = 0x7f;
/// The flag of an arbitration id that asks for a reply.
const WANTS_REPLY: u32 = 0x8000;
/// Registers that fit a reply: an opcode, a register and at least a byte each take more than 64 bytes beyond.
const MAX_READ: usize = 64;

/// One servo on a bus.
#[derive(Clone, Debug)]
pub struct Servo {
    id: u8,
    uuid: [i32; 4],
    motor: Motor,
    console: Console,
}

/// A register's value, or the reason why there is none.
type Asked = (u16, Resolution, Result<Reading, Refused>);

impl Servo {
    /// The servo with this id, 1 to 126, at rest and stopped. Its UUID follows from `seed` and id, so that servos of one id on
    /// several buses differ.
    pub fn new(id: u8, body: Body, limits: Limits, seed: u32) -> Servo {
        // Any well-mixed words do: 2^32 / golden ratio, as Knuth's multiplicative hash.
        let word =
            |n: u32| (seed.wrapping_mul(131).wrapping_add(u32::from(id) * 4 + n)).wrapping_mul(0x9e37_79b9) as i32;
        Servo {
            id,
            uuid: [word(0), word(1), word(2), word(3)],
            motor: Motor::new(body, limits),
            console: Console::default(),
        }
    }

    /// Its id.
    pub fn id(&self) -> u8 {
        self.id
    }

    /// The motor behind the registers.
    pub fn motor(&self) -> &Motor {
        &self.motor
    }

    /// The same, to heat or load it.
    pub fn motor_mut(&mut self) -> &mut Motor {
        &mut self.motor
    }

    /// Takes a frame off the bus at `now_ns`; gives the reply, when the frame is for this servo and asks for one.
    pub fn handle(&mut self, now_ns: u64, frame: &Frame) -> Option<Frame> {
        let (_, destination, _) = parse_arbitration_id(frame.arbitration_id);
        if destination != self.id as i8 && destination != BROADCAST {
            return None;
        }
        self.motor.advance(now_ns);
        let mut reply = Frame::new();
        if let Some(spoken) = self.console.take(frame.payload()) {
            match spoken {
                Spoken::Lines(lines) => lines.iter().for_each(|line| self.answer(line)),
                Spoken::Reply(payload) => payload.iter().for_each(|byte| WriteCanData::new(&mut reply).write_u8(*byte)),
            }
            return self.replied(frame, reply);
        }
        let mut command: Option<Result<Command, Refused>> = None;
        let mut asked: [Option<Asked>; MAX_READ] = [None; MAX_READ];
        let mut count = 0;
        for subframe in parse_frame(frame.payload()) {
            let Subframe::Register { subframe_type, register, resolution, value } = subframe else { continue };
            match (subframe_type, value) {
                (SubframeType::Read, _) if count < MAX_READ => {
                    asked[count] = Some((register, resolution, self.read(register, now_ns)));
                    count += 1;
                }
                (SubframeType::Write, Some(value)) => {
                    match self.write(register, value, &mut command) {
                        Ok(true) => {}
                        Ok(false) => return None,
                        Err(refused) => {
                            // A command with a part that was not understood is no command.
                            command = command.map(|_| Err(refused));
                            write_error(&mut reply, WRITE_ERROR, register, refused);
                        }
                    }
                }
                _ => {}
            }
        }
        if let Some(Ok(command)) = command {
            self.motor.command(command);
            // What is read in the same frame is read after the command.
            for asked in asked[..count].iter_mut().flatten() {
                asked.2 = self.read(asked.0, now_ns);
            }
        }
        write_replies(&mut reply, &asked[..count]);
        self.replied(frame, reply)
    }

    /// The reply to a frame that asks for one.
    fn replied(&self, frame: &Frame, mut reply: Frame) -> Option<Frame> {
        if frame.arbitration_id & WANTS_REPLY == 0 {
            return None;
        }
        let (source, _, prefix) = parse_arbitration_id(frame.arbitration_id);
        reply.pad_to_dlc();
        reply.arbitration_id = calculate_arbitration_id(self.id as i8, source, prefix, false);
        Some(reply)
    }

    /// The few lines that clients say to a servo that is to be quiet; all others are refused, as moteus refuses what it does not know.
    fn answer(&mut self, line: &str) {
        match line.trim() {
            "d stop" => {
                self.motor.command(Command::new(Mode::Stopped));
                self.console.say("OK");
            }
            "tel stop" => self.console.say("OK"),
            "conf get id.id" => self.console.say(&self.id.to_string()),
            _ => self.console.say("ERR unknown command"),
        }
    }

    /// False: a UUID prefix that is not ours, so that nothing of the frame is for us.
    fn write(
        &mut self,
        register: u16,
        value: Value,
        command: &mut Option<Result<Command, Refused>>,
    ) -> Result<bool, Refused> {
        if let Some(word) = registers::uuid_mask(register) {
            return Ok(value.to_i32() == self.uuid[word]);
        }
        if register == 0 {
            *command = Some(registers::mode(value).map(Command::new));
            return command.as_ref().and_then(|c| c.as_ref().err()).map_or(Ok(true), |refused| Err(*refused));
        }
        if registers::place(register) {
            self.motor.set_position(f64::from(value.to_f32(&moteus_protocol::scaling::POSITION)));
            return Ok(true);
        }
        match command {
            Some(Ok(command)) => registers::set(command, register, value).map(|()| true),
            // moteus keeps such values without acting on them until a mode is written, which resets them.
            _ => registers::set(&mut Command::new(Mode::Stopped), register, value).map(|()| true),
        }
    }

    fn read(&self, register: u16, now_ns: u64) -> Result<Reading, Refused> {
        registers::read(&self.motor, self.id, &self.uuid, register, now_ns)
    }
}

/// Runs of neighbouring registers in one resolution share a header; what cannot be read is an error subframe.
fn write_replies(reply: &mut Frame, asked: &[Option<Asked>]) {
    let mut rest = asked;
    while let Some((Some((first, resolution, reading)), _)) = rest.split_first() {
        if let Err(refused) = reading {
            write_error(reply, READ_ERROR, *first, *refused);
            rest = &rest[1..];
            continue;
        }
        let run = rest
            .iter()
            .enumerate()
            .take_while(|(at, next)| {
                next.is_some_and(|(register, r, reading)| {
                    register == first + *at as u16 && r == *resolution && reading.is_ok()
                })
            })
            .count();
        let resolutions = [*resolution; MAX_READ];
        let mut combiner = WriteCombiner::new(REPLY_INT8, *first, &resolutions[..run]);
        let mut writer = WriteCanData::new(reply);
        for (_, _, reading) in rest[..run].iter().flatten() {
            // Opcode, count, register of two bytes and value.
            if writer.remaining() < 4 + resolution.size() {
                return;
            }
            if combiner.maybe_write(&mut writer) {
                match reading {
                    Ok(Reading::Scaled(value, scaling)) => writer.write_mapped(*value, scaling, *resolution),
                    Ok(Reading::Whole(value)) => writer.write_int(*value, *resolution),
                    Err(_) => {}
                }
            }
        }
        rest = &rest[run..];
    }
}

fn write_error(reply: &mut Frame, opcode: u8, register: u16, refused: Refused) {
    let mut writer = WriteCanData::new(reply);
    if writer.remaining() >= 6 {
        writer.write_u8(opcode);
        writer.write_varuint(u32::from(register));
        writer.write_varuint(refused as u32);
    }
}

#[cfg(test)]
mod tests {
    use moteus_protocol::{
        Register,
        command::{PositionCommand, PositionFormat, StopCommand, ZeroVelocityCommand, ZeroVelocityFormat},
        query::{QueryFormat, QueryResult},
    };
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    fn servo() -> Servo {
        Servo::new(1, Body::default(), Limits::default(), 0)
    }

    fn request(build: impl FnOnce(&mut Frame)) -> Frame {
        let mut frame = Frame::new();
        frame.arbitration_id = 0x8001;
        build(&mut frame);
        frame
    }

    fn position(command: &PositionCommand) -> Frame {
        request(|frame| {
            command.serialize(frame, &PositionFormat::default());
            QueryFormat::default().serialize(frame);
        })
    }

    fn ask(servo: &mut Servo, now_ns: u64, frame: &Frame) -> QueryResult {
        let reply = servo.handle(now_ns, frame).expect("a reply");
        assert_eq!(reply.arbitration_id, 0x100);
        QueryResult::parse(&reply)
    }

    fn query() -> Frame {
        request(|frame| {
            QueryFormat::default().serialize(frame);
        })
    }

    #[test]
    fn position_mode_goes_where_it_is_told() {
        let mut servo = servo();
        let to = position(&PositionCommand::new().position(0.25));
        for cycle in 0..1000 {
            ask(&mut servo, cycle * MS, &to);
        }
        let state = ask(&mut servo, 1000 * MS, &query());
        assert_eq!((state.mode, state.fault), (Mode::Position, 0));
        assert!((state.position - 0.25).abs() < 1e-3 && state.velocity.abs() < 1e-2, "{state:?}");
    }

    #[test]
    fn a_reply_shows_what_its_own_command_did() {
        let state = ask(&mut servo(), 0, &position(&PositionCommand::new().position(0.0)));
        assert_eq!(state.mode, Mode::Position);
    }

    #[test]
    fn without_commands_it_times_out_between_100_ms_and_a_tick_later() {
        let mut servo = servo();
        ask(&mut servo, 0, &position(&PositionCommand::new().position(0.0)));
        assert_eq!(ask(&mut servo, 100 * MS - 1, &query()).mode, Mode::Position);
        assert_eq!(ask(&mut servo, 100 * MS + motor::TICK_NS, &query()).mode, Mode::Timeout);
    }

    #[test]
    fn gaps_shorter_than_the_time_out_never_trip_it() {
        let mut servo = servo();
        let hold = position(&PositionCommand::new().position(0.0));
        let mut now = 0;
        for gap in (1..=99).chain(std::iter::repeat_n(99, 1000)) {
            now += gap * MS;
            assert_eq!(ask(&mut servo, now, &hold).mode, Mode::Position);
        }
    }

    #[test]
    fn late_commands_do_not_resume_and_stop_does() {
        let mut servo = servo();
        let hold = position(&PositionCommand::new().position(0.0));
        ask(&mut servo, 0, &hold);
        assert_eq!(ask(&mut servo, 200 * MS, &hold).mode, Mode::Timeout);
        let damp = request(|frame| {
            ZeroVelocityCommand::default().serialize(frame, &ZeroVelocityFormat::default());
            QueryFormat::default().serialize(frame);
        });
        assert_eq!(ask(&mut servo, 201 * MS, &damp).mode, Mode::Timeout);
        let stop = request(|frame| {
            StopCommand::serialize(frame);
            QueryFormat::default().serialize(frame);
        });
        assert_eq!(ask(&mut servo, 202 * MS, &stop).mode, Mode::Stopped);
        assert_eq!(ask(&mut servo, 203 * MS, &hold).mode, Mode::Position);
    }

    #[test]
    fn zero_velocity_is_not_timed() {
        let mut servo = servo();
        let damp = request(|frame| {
            ZeroVelocityCommand::default().serialize(frame, &ZeroVelocityFormat::default());
            QueryFormat::default().serialize(frame);
        });
        ask(&mut servo, 0, &damp);
        assert_eq!(ask(&mut servo, 10_000 * MS, &query()).mode, Mode::ZeroVelocity);
    }

    #[test]
    fn a_command_brings_its_own_time_out_or_none() {
        for (timeout_s, after_ms, expected) in
            [(0.02, 21, Mode::Timeout), (0.5, 400, Mode::Position), (f32::NAN, 5_000, Mode::Position)]
        {
            let mut servo = servo();
            ask(&mut servo, 0, &position(&PositionCommand::new().position(0.0).watchdog_timeout(timeout_s)));
            assert_eq!(ask(&mut servo, after_ms * MS, &query()).mode, expected, "{timeout_s} s");
        }
    }

    #[test]
    fn a_command_with_an_impossible_part_is_no_command() {
        for command in [
            PositionCommand::new().position(1.0).kd_scale(f32::INFINITY),
            PositionCommand::new().position(f32::INFINITY),
            PositionCommand::new().position(1.0).velocity(f32::NAN),
            PositionCommand::new().position(1.0).watchdog_timeout(-1.0),
            PositionCommand::new().position(1.0).velocity_limit(2.0),
        ] {
            let mut servo = servo();
            let reply = servo.handle(0, &position(&command)).unwrap();
            assert_eq!(QueryResult::parse(&reply).mode, Mode::Stopped, "{command:?}");
            let refused = parse_frame(reply.payload()).any(|s| matches!(s, Subframe::Error { .. }));
            assert!(refused, "{command:?}");
        }
    }

    #[test]
    fn too_hot_is_a_fault_that_only_stop_leaves() {
        let mut servo = servo();
        let hold = position(&PositionCommand::new().position(0.0));
        ask(&mut servo, 0, &hold);
        servo.motor_mut().set_temperature_c(120.0);
        let state = ask(&mut servo, MS, &hold);
        assert_eq!((state.mode, state.fault, state.torque), (Mode::Fault, OVER_TEMPERATURE as i8, 0.0));
        assert!(state.temperature > 100.0);
        assert_eq!(ask(&mut servo, 2 * MS, &hold).mode, Mode::Fault);
    }

    #[test]
    fn the_uuid_is_told_and_addresses() {
        let mut servo = servo();
        let words = servo.uuid;
        let mut told = Vec::new();
        let ask_uuid = request(|frame| {
            frame.arbitration_id = 0x807f;
            let mut format = QueryFormat::minimal();
            (format.mode, format.position, format.velocity, format.torque) = Default::default();
            (0x150..=0x153).for_each(|register| format.add_extra(register, Resolution::Int32));
            format.add_extra(Register::UuidMaskCapable.address(), Resolution::Int8);
            format.serialize(frame);
        });
        let reply = servo.handle(0, &ask_uuid).unwrap();
        for subframe in parse_frame(reply.payload()) {
            if let Subframe::Register { register, value: Some(value), .. } = subframe {
                told.push((register, value.to_i32()));
            }
        }
        let expected: Vec<(u16, i32)> =
            (0x150..).zip(words).chain([(Register::UuidMaskCapable.address(), 1)]).collect();
        assert_eq!(told, expected);
        for (word, answers) in [(words[0], true), (words[0] ^ 1, false)] {
            let addressed = request(|frame| {
                frame.arbitration_id = 0x807f;
                let mut writer = WriteCanData::new(frame);
                writer.write_u8(moteus_protocol::WRITE_INT32 | 1);
                writer.write_varuint(0x154);
                writer.write_i32(word);
                QueryFormat::default().serialize(frame);
            });
            assert_eq!(servo.handle(0, &addressed).is_some(), answers);
        }
    }

    #[test]
    fn what_is_not_for_it_or_asks_nothing_gets_no_reply() {
        let mut servo = servo();
        for (id, replies) in [(0x8001, true), (0x0001, false), (0x8002, false), (0x807f, true)] {
            let mut frame = query();
            frame.arbitration_id = id;
            assert_eq!(servo.handle(0, &frame).is_some(), replies, "{id:#x}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_survived(
            frames in prop::collection::vec((any::<u32>(), prop::collection::vec(any::<u8>(), 0..=64)), 1..20),
        ) {
            let mut servo = servo();
            for (at, (id, data)) in frames.iter().enumerate() {
                let mut frame = Frame::new();
                frame.arbitration_id = id & !0x7f | 1;
                frame.data[..data.len()].copy_from_slice(data);
                frame.size = data.len() as u8;
                servo.handle(at as u64 * MS, &frame);
                prop_assert!(servo.motor().torque_nm().abs() <= Limits::default().torque_nm);
                prop_assert!(servo.motor().position_rev().is_finite());
            }
        }
    }
}
