//! Simulated servos behind real doors: the same engine drives them over a pty, over UDP, and over vcan where the kernel
//! has it.

use std::{
    process::Command as Process,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::JoinHandle,
    time::Duration,
};

use moteus_protocol::{
    Mode,
    command::{PositionCommand, PositionFormat},
    query::{QueryFormat, QueryResult},
};
use taut_bus::{
    cycle::{Command, Engine, Monotonic, Patience, Request},
    servo::{Body, Limits, Servo},
    sim::{Bus, Wiring, serve},
    transport::{Error, Fdcanusb, Frame, Pty, SocketCan, Transport, Udp, UdpDoor},
};
use taut_skip::{Need, skip};

/// A bus served by a thread until this is dropped.
struct Served {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Served {
    fn through(door: impl Transport + Send + 'static) -> Served {
        let stop = Arc::new(AtomicBool::new(false));
        let servos = (1..=3).map(|id| Servo::new(id, Body::default(), Limits::default(), 0)).collect();
        let (bus, stopped) = (Bus::new(Wiring::default(), servos), stop.clone());
        Served { stop, thread: Some(std::thread::spawn(move || serve(bus, door, &stopped))) }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let served = self.thread.take().unwrap().join().unwrap();
        assert!(std::thread::panicking() || served.is_ok(), "{served:?}");
    }
}

fn engine<T: Transport>(bus: T) -> Engine<T, Monotonic> {
    // A loaded machine may take its time; no reply is late before a second.
    let patience = Patience { min_wait_ns: 0, deadline_ns: 5_000_000_000 };
    Engine::new(vec![bus], Monotonic::new(Duration::ZERO), patience)
}

fn command(servo: u8, position: f32) -> Command {
    let mut frame = Frame::new();
    frame.arbitration_id = 0x8000 | u32::from(servo);
    let command = PositionCommand::new().position(position).watchdog_timeout(f32::NAN);
    command.serialize(&mut frame, &PositionFormat::default());
    QueryFormat::default().serialize(&mut frame);
    Command::new(0, frame)
}

fn three_servos_obey(bus: impl Transport) {
    let mut engine = engine(bus);
    let commands = [1, 2, 3].map(|servo| command(servo, 0.0));
    for cycle in 0..50 {
        let outcome = engine.cycle(cycle, &Request { commands: &commands, ..Request::default() });
        assert_eq!((outcome.sent, outcome.missing), (3, 0), "cycle {cycle}: {:?}", engine.bus_health(0));
    }
    let modes: Vec<(u8, Mode)> =
        engine.replies().iter().map(|reply| (reply.servo, QueryResult::parse(&reply.frame).mode)).collect();
    assert_eq!(modes.len(), 3);
    assert!(modes.iter().all(|(_, mode)| *mode == Mode::Position), "{modes:?}");
    let health = engine.bus_health(0);
    assert_eq!((health.errors, health.unexpected), (0, 0), "{health:?}");
}

#[test]
fn over_a_pty() {
    let pty = Pty::open().unwrap();
    let path = pty.path().to_owned();
    let _served = Served::through(pty);
    three_servos_obey(Fdcanusb::open(&path).unwrap());
}

#[test]
fn a_client_may_go_and_another_come() {
    let pty = Pty::open().unwrap();
    let path = pty.path().to_owned();
    let _served = Served::through(pty);
    for _ in 0..3 {
        three_servos_obey(Fdcanusb::open(&path).unwrap());
    }
}

#[test]
fn over_udp() {
    let door = UdpDoor::listen("127.0.0.1:0").unwrap();
    let address = door.address().unwrap().to_string();
    let _served = Served::through(door);
    three_servos_obey(Udp::connect(&address).unwrap());
}

fn ip(arguments: &[&str]) -> bool {
    Process::new("ip").args(arguments).output().is_ok_and(|done| done.status.success())
}

/// A virtual CAN-FD interface until this is dropped.
struct Vcan(String);

impl Vcan {
    fn new() -> Option<Vcan> {
        let name = format!("vtaut{}", std::process::id() % 10_000);
        ip(&["link", "add", &name, "type", "vcan"]).then_some(Vcan(name))
    }
}

impl Drop for Vcan {
    fn drop(&mut self) {
        ip(&["link", "delete", &self.0]);
    }
}

#[test]
fn over_vcan_where_the_kernel_has_it() {
    let Some(vcan) = Vcan::new() else {
        return skip(Need::Vcan, "needs root, iproute2 and the kernel module vcan");
    };
    assert!(ip(&["link", "set", &vcan.0, "mtu", "72", "up"]));
    let _served = Served::through(SocketCan::open(&vcan.0).unwrap());
    three_servos_obey(SocketCan::open(&vcan.0).unwrap());
}

#[test]
fn an_absent_device_is_named() {
    let error = Fdcanusb::open("/dev/tty-nowhere".as_ref()).unwrap_err().to_string();
    assert!(error.starts_with("/dev/tty-nowhere: ") && error.contains("/dev/ttyACM0"), "{error}");
}
