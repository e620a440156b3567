//! A replay for the tests of its views: three seconds of a jittery stream with a true overspeed at the end.

use taut_guard::Frame;
use taut_replay::{Config, Recorded, Stream, Truth, replay, tune};

use super::GuardShown;

const MS: u64 = 1_000_000;

/// 0.6 of the limit, frames held up and bunched every half second; 1.5 times the limit in the last 200 ms.
fn stream() -> Stream {
    let mut x_mm = 0.0;
    let frames = (0..300u64).map(|n| {
        let speed = if n >= 280 { 1500.0 } else { 600.0 };
        x_mm += speed * 0.01;
        let sampled_ns = 1000 * MS + n * 10 * MS;
        // Four frames wait for the last of them, and come half a millisecond apart.
        let held = if n % 50 < 4 { (3 - n % 50) * 10 * MS + (n % 50) * MS / 2 } else { 0 };
        let frame = Frame {
            sequence: (n % 256) as u32,
            source_ns: Some(sampled_ns as i64),
            arrival_ns: sampled_ns + 2 * MS + held,
            tcp_mm: [x_mm, 0.0, 500.0],
            frames_in_read: if held > 0 { 4 } else { 1 },
            ..Frame::default()
        };
        Recorded { frame, truth_mm_s: Some(speed) }
    });
    Stream { name: "follower".into(), frames: frames.collect(), incomplete: 1 }
}

pub(crate) fn with<T>(use_it: impl FnOnce(&GuardShown<'_>) -> T) -> T {
    let stream = stream();
    let config = Config::parse(
        "[guard]\nperiod_ns = 10_000_000\ntcp_limit_mm_s = 1000.0\n\
         [[against]]\nestimator = \"difference\"\n\
         [[against]]\nestimator = \"difference\"\ndebounce = 3\n\
         [[against]]\nestimator = \"savitzky-golay\"\n\
         [[against]]\nestimator = \"guard\"\nset = { time_base = \"sequence\" }\n",
    )
    .unwrap();
    let replay = replay(&stream, &config, Some(&Truth::Recorded), &mut |_, _| {}).unwrap();
    let tuned = tune(&stream, &config.parameters).unwrap();
    let toml = tuned.toml(&stream, &config);
    use_it(&GuardShown {
        run: "run.mcap",
        command: "taut guard replay run.mcap --guard guard.toml --truth recorded",
        replay: &replay,
        tuned: Some((&tuned, &toml)),
        damage: &[],
    })
}
