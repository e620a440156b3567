//! A message from one host to another, on one clock, with the parts of its way.

use taut_analysis::{Cause, ExplainOptions};
use taut_recording::{
    Architecture, KernelEvent,
    host_numbers::{cpu_of, thread_of},
};

mod scene;

use scene::*;

const SENDER: i32 = 10;
const HOG: i32 = 30;
const NET_RX: [i64; 3] = [3, 1, 0];

fn receiver() -> i32 {
    thread_of(1, 40)
}

fn robots_cpu() -> u16 {
    cpu_of(1, 0)
}

fn is(us: u64, cause: Cause, detail: &str) -> (u64, Cause, String) {
    (us, cause, detail.into())
}

/// The desk stamps at 100 µs, and sends from 120 on. The robot waits for data since the start; its kernel deals with the packet from
/// 400 on, and wakes the receiver at 430, which has the message at 455.
fn under_way() -> Scene {
    let (mut scene, cpu, receiver) = (Scene::new(), robots_cpu(), receiver());
    let fact = |key: &str, value: &str| (key.to_owned(), value.to_owned());
    scene.info.facts = vec![fact("hosts", "desk,robot"), fact("robot.system_calls", Architecture::HERE.word())];
    scene.thread(receiver, receiver, "robot:arm", true);
    scene.switch(0, 0, 0, R, SENDER).stamp(SENDER, 100, 1, "a");
    scene.enter(0, 120, SENDER, libc::SYS_sendto, 3, 0);
    scene.switch(cpu, 0, 0, R, receiver).enter(cpu, 10, receiver, libc::SYS_recvfrom, 3, 0);
    scene.switch(cpu, 12, receiver, S, 0).event(cpu, 400, KernelEvent::IrqEnter, 0, NET_RX);
    scene.wake(cpu, 430, 0, SOFTIRQ, receiver).event(cpu, 440, KernelEvent::IrqExit, 0, NET_RX);
    scene.switch(cpu, 450, 0, R, receiver).exit(cpu, 455, receiver, libc::SYS_recvfrom);
    scene
}

/// The call has ended long before.
fn sent_at_once() -> Scene {
    let mut scene = under_way();
    scene.exit(0, 150, SENDER, libc::SYS_sendto).switch(0, 2000, SENDER, S, 0);
    scene
}

/// The receiver stamps right after it has the message.
fn stamped(mut scene: Scene) -> Scene {
    scene.stamp(receiver(), 460, 1, "b").switch(robots_cpu(), 2000, receiver(), S, 0);
    scene
}

#[test]
fn the_way_is_through_the_senders_kernel_the_network_and_the_receivers_kernel() {
    let scene = stamped(sent_at_once());
    let expected = [
        is(20, Cause::Cpu, ""),
        is(30, Cause::Network, "sendto fd 3, in the sender's kernel"),
        is(250, Cause::Network, "recvfrom fd 3"),
        is(30, Cause::Network, "recvfrom fd 3, in the receiver's kernel"),
        is(20, Cause::Wakeup, ""),
        is(5, Cause::Syscall, "recvfrom"),
        is(5, Cause::Cpu, ""),
    ];
    assert_eq!(scene.path(), expected);
    // The program's own are both threads' times and calls, also the one that sends; the machine's are the way and the wake-up.
    let analysis = scene.analyse(ExplainOptions { sides: true, ..ExplainOptions::default() });
    let sides = analysis.chains[0].explained.sides.clone().unwrap();
    let spent: Vec<_> = sides.spent.iter().map(|of| (of.total_ns / US, of.machine_ns / US, of.work_ns / US)).collect();
    assert_eq!(spent, [(360, 300, 60)]);
}

#[test]
fn a_sender_that_loses_its_cpu_in_the_call_delays_no_message_that_is_there_meanwhile() {
    let mut scene = under_way();
    scene.switch(0, 140, SENDER, R, HOG).switch(0, 880, HOG, R, SENDER);
    scene.exit(0, 900, SENDER, libc::SYS_sendto).switch(0, 2000, SENDER, S, 0);
    // It was given away at the latest when the sender ran last.
    let expected = [
        is(20, Cause::Cpu, ""),
        is(20, Cause::Network, "sendto fd 3, in the sender's kernel"),
        is(260, Cause::Network, "recvfrom fd 3"),
        is(30, Cause::Network, "recvfrom fd 3, in the receiver's kernel"),
        is(20, Cause::Wakeup, ""),
        is(5, Cause::Syscall, "recvfrom"),
        is(5, Cause::Cpu, ""),
    ];
    assert_eq!(stamped(scene).path(), expected);
}

#[test]
fn a_receiver_that_waits_to_write_something_else_has_the_message() {
    let (mut scene, cpu, receiver) = (sent_at_once(), robots_cpu(), receiver());
    scene.enter(cpu, 460, receiver, libc::SYS_write, 5, 0).switch(cpu, 462, receiver, S, 0);
    scene.wake(cpu, 760, 0, IRQ, receiver).switch(cpu, 770, 0, R, receiver);
    scene.exit(cpu, 775, receiver, libc::SYS_write).stamp(receiver, 780, 1, "b").switch(cpu, 2000, receiver, S, 0);
    let path = scene.path();
    let of = |cause: Cause| path.iter().filter(|piece| piece.1 == cause).map(|piece| piece.0).collect::<Vec<u64>>();
    assert_eq!(of(Cause::Network), [30, 250, 30], "{path:?}");
    assert!(path.contains(&is(298, Cause::Io, "write fd 5")), "{path:?}");
}
