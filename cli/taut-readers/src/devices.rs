//! What the kernel, adapters and servos say.

use taut_bus::{
    servo::{Body, Limits, Servo},
    transport::Frame,
};

/// Pages of ftrace, records of perf's rings, and the texts that say how they lie.
pub fn kernel_events(bytes: &[u8]) {
    taut_capture::fuzzing::kernel_events(bytes);
}

/// ELF files, maps of the kernel's and of compiled addresses, mangled names.
pub fn symbol_tables(bytes: &[u8]) {
    taut_capture::fuzzing::symbol_tables(bytes);
}

/// The fdcanusb's lines, both ends, and datagrams of frames.
pub fn bus_lines(bytes: &[u8]) {
    taut_bus::fuzzing::lines(bytes);
    taut_bus::fuzzing::datagrams(bytes);
}

/// Frames to a simulated servo: sixteen bytes each at most, ids from the first ones.
pub fn servo_frames(bytes: &[u8]) {
    let mut servo = Servo::new(1, Body::default(), Limits::default(), 7);
    for (at, bytes) in bytes.chunks(20).enumerate() {
        let mut frame = Frame::new();
        let (id, data) = bytes.split_at(bytes.len().min(1));
        frame.arbitration_id = 0x8001 | u32::from(id.first().copied().unwrap_or(0)) << 8;
        frame.data[..data.len()].copy_from_slice(data);
        frame.size = data.len() as u8;
        let reply = servo.handle(at as u64 * 1_000_000, &frame);
        assert!(reply.is_none_or(|reply| reply.size <= 64));
    }
}
