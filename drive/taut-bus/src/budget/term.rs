//! A term of the budget: one contributor, what it costs, how often, and how that is known.

use serde::{Deserialize, Serialize};

use super::jitter::Jitter;

/// One contributor to the cycle.
#[derive(Clone, Debug, PartialEq)]
pub struct Term {
    /// Unique in its budget.
    pub name: String,
    /// What kind of thing it is.
    pub stage: Stage,
    /// Index of the resource it occupies.
    pub resource: usize,
    /// The phase of the host's cycle that it belongs to: the time after the point `bus.<phase>`.
    pub phase: String,
    /// How often it is paid.
    pub per: Per,
    /// So many times for each of these.
    pub times: u32,
    /// What it costs each time.
    pub price: Price,
    /// Time added each time.
    pub jitter: Option<Jitter>,
    /// How the figure is known.
    pub origin: Origin,
    /// The source's words, or why it is assumed.
    pub note: String,
    /// Stamped points that enclose this term alone, if any.
    pub points: Option<[String; 2]>,
}

/// The contributors to a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Stage {
    /// The controller's own work, where it is not on another thread.
    ControlCompute,
    /// Making frames.
    Encode,
    /// Entering the kernel, the driver.
    Syscall,
    /// A UART's FIFO level, DMA, or its detection of an idle line.
    UartFifo,
    /// Turning a half-duplex line round.
    Direction,
    /// The wire at the host.
    HostWire,
    /// A bridge, storing frames or copying bytes.
    Bridge,
    /// The wire at the servo.
    ServoWire,
    /// From the end of a command to the start of its reply.
    ServoTurnaround,
    /// The reply's way back, over all hops.
    ReplyWire,
    /// Waking the host on a reply.
    RxWake,
    /// Reading replies.
    Parse,
    /// Pauses between frames.
    InterFrame,
    /// The inertial unit.
    Imu,
    /// The host's scheduler being late.
    Scheduler,
    /// Waiting for replies that do not come.
    Retry,
    /// SPI transactions.
    Spi,
    /// CAN frames: arbitration, stuff bits, data, spacing.
    Can,
    /// The error of the sleep to the next cycle.
    CycleEnd,
}

impl Stage {
    /// Every contributor, in the order of a cycle.
    pub const ALL: [Stage; 19] = [
        Stage::ControlCompute,
        Stage::Encode,
        Stage::Syscall,
        Stage::UartFifo,
        Stage::Direction,
        Stage::HostWire,
        Stage::Bridge,
        Stage::ServoWire,
        Stage::ServoTurnaround,
        Stage::ReplyWire,
        Stage::RxWake,
        Stage::Parse,
        Stage::InterFrame,
        Stage::Imu,
        Stage::Scheduler,
        Stage::Retry,
        Stage::Spi,
        Stage::Can,
        Stage::CycleEnd,
    ];

    /// As in the file.
    pub fn word(self) -> &'static str {
        match self {
            Stage::ControlCompute => "control-compute",
            Stage::Encode => "encode",
            Stage::Syscall => "syscall",
            Stage::UartFifo => "uart-fifo",
            Stage::Direction => "direction",
            Stage::HostWire => "host-wire",
            Stage::Bridge => "bridge",
            Stage::ServoWire => "servo-wire",
            Stage::ServoTurnaround => "servo-turnaround",
            Stage::ReplyWire => "reply-wire",
            Stage::RxWake => "rx-wake",
            Stage::Parse => "parse",
            Stage::InterFrame => "inter-frame",
            Stage::Imu => "imu",
            Stage::Scheduler => "scheduler",
            Stage::Retry => "retry",
            Stage::Spi => "spi",
            Stage::Can => "can",
            Stage::CycleEnd => "cycle-end",
        }
    }

    /// The phase of a term that names none. A request-reply loop over the servos is one phase, `exchange`.
    pub fn phase(self) -> &'static str {
        match self {
            Stage::ControlCompute => "control",
            Stage::Imu => "imu",
            Stage::CycleEnd => "wait",
            _ => "exchange",
        }
    }
}

/// For what a term is paid.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Per {
    /// Each cycle; on a resource with several buses, each bus.
    #[default]
    Cycle,
    /// Each servo; on a resource with several buses, each servo of the bus.
    Servo,
}

/// What a term costs each time it is paid.
#[derive(Clone, Debug, PartialEq)]
pub enum Price {
    /// Fixed, µs.
    Us(f64),
    /// By the byte: µs a byte, of these bytes.
    PerByte(f64, Payload),
    /// An RS485 frame with framing, over so many hops; 0.5 for a bridge that overlaps half of it.
    Rs485(Payload, f64),
    /// A CAN-FD frame.
    Can(Payload, IdKind),
    /// Exactly this CAN-FD frame, µs.
    CanExact(f64),
    /// An SPI transaction of the payload and so many bytes around it.
    Spi(Payload, u32),
    /// A wait of so many µs with this probability.
    Timeout(f64, f64),
}

/// How many bytes: a number, or the name of a frame in `[frames]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Payload {
    /// Exactly.
    Bytes(u32),
    /// As `[frames]` says.
    Frame(String),
}

/// Which identifiers a CAN term's frames carry.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum IdKind {
    /// 11 bits.
    Standard,
    /// 29 bits.
    Extended,
    /// As moteus requests that want a reply: 29 bits.
    #[default]
    Request,
    /// As moteus replies: 11 bits up to servo 7, 29 from 8.
    Reply,
}

/// How a figure is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Origin {
    /// The file states it without a source.
    #[default]
    Given,
    /// A source states it.
    Stated,
    /// It follows from stated figures.
    Derived,
    /// It was measured.
    Measured,
    /// Chosen so that the total comes out.
    Fitted,
    /// Plausible, from no source.
    Assumed,
}

impl Origin {
    /// As in the file.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Given => "given",
            Origin::Stated => "stated",
            Origin::Derived => "derived",
            Origin::Measured => "measured",
            Origin::Fitted => "fitted",
            Origin::Assumed => "assumed",
        }
    }
}
