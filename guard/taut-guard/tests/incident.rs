//! The incident this guard was made after: the arm moved at 20 % of its velocity, frames were held up and came in a
//! bunch, and a speed from arrival times read 3.0 m/s and stopped the arm.

use taut_guard::{Events, Frame, Parameters, SpeedGuard, State};

const MS: u64 = 1_000_000;

/// 6 mm every 10 ms (20 % of 3 m/s). Four frames are held up for 30 ms and then come 2 ms apart.
fn trace() -> impl Iterator<Item = Frame> {
    (0..300u64).map(|n| {
        let sampled = 20 * MS + n * 10 * MS;
        let bunched = (150..154).contains(&n);
        let arrival_ns = if bunched { 20 * MS + 1533 * MS + (n - 150) * 2 * MS } else { sampled + MS };
        Frame {
            sequence: (n % 256) as u32,
            source_ns: Some(sampled as i64),
            arrival_ns,
            tcp_mm: [6.0 * n as f64 - 900.0, 250.0, 400.0],
            frames_in_read: if bunched { 4 } else { 1 },
            ..Frame::default()
        }
    })
}

fn naive_mm_s(frames: &[Frame]) -> f64 {
    let speed = |pair: &[Frame]| {
        (pair[1].tcp_mm[0] - pair[0].tcp_mm[0]) / ((pair[1].arrival_ns - pair[0].arrival_ns) as f64 * 1e-9)
    };
    frames.windows(2).map(speed).fold(0.0, f64::max)
}

#[test]
fn bunched_frames_at_20_percent_velocity_do_not_trip() {
    let frames: Vec<Frame> = trace().collect();
    assert!((naive_mm_s(&frames) - 3000.0).abs() < 1.0, "the naive guard reads {}", naive_mm_s(&frames));

    let mut guard: SpeedGuard = SpeedGuard::new(Parameters::for_tcp(10 * MS, 1000.0)).unwrap();
    let mut said = Vec::new();
    for (n, frame) in frames.iter().enumerate() {
        let verdict = guard.update(frame);
        assert!(verdict.ratio <= 0.6, "{n}: {verdict:?}");
        assert_eq!(verdict.state, if n < 11 { State::Init } else { State::Ok }, "{n}: {verdict:?}");
        if verdict.events.contains(Events::RECEIVER_STALL) {
            said.push(n);
        }
    }
    assert_eq!(said, [150, 151, 152, 153]);
    assert_eq!(guard.counters().receiver_stalls.get(), 4);
    assert_eq!(guard.trip(), None);
}
