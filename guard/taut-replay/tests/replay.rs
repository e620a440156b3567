//! Replays of simulated streams: what trips falsely, what is found, what is proposed.

#[path = "../../taut-guard/tests/stream/mod.rs"]
mod stream;

use stream::{ALL_COMBINED, CLEAN, Delay, HOUR_NS, LIMIT_MM_S, MS, Motion, Scenario};
use taut_guard::{Frame, Parameters, TimeBase};
use taut_replay::{Config, Error, Recorded, Replay, Run, Stream, Truth, replay, tune};

/// Delays of 10 ms on average, stalls, loss: what the table of docs/proof/guard.md calls usual.
const USUAL: Scenario = Scenario { name: "usual", delay: Delay::Exponential, has_stalls: true, loss: 0.05, ..CLEAN };

const GUARD: &str = "[guard]\nperiod_ns = 10_000_000\ntcp_limit_mm_s = 1000.0\nstale_ns = 700_000_000\n\
    age_max_ns = 700_000_000\n";

fn heard(scenario: Scenario, motion: Motion, seconds: u64, seed: u64) -> Stream {
    let mut simulated = stream::Stream::new(scenario, motion, seed);
    let mut frames = Vec::new();
    loop {
        let delivered = simulated.hear();
        if delivered.frame.arrival_ns > seconds * 1_000_000_000 {
            return Stream { name: scenario.name.into(), frames, incomplete: 0 };
        }
        let at_s = delivered.sampled_ns as f64 * 1e-9;
        let (from_s, to) = motion.overspeed.unwrap_or((f64::INFINITY, 0.0));
        let ratio = if at_s >= from_s { to } else { motion.ratio };
        frames.push(Recorded { frame: delivered.frame, truth_mm_s: Some(ratio * LIMIT_MM_S) });
    }
}

fn replayed(stream: &Stream, config: &str, truth: &Truth) -> Replay {
    replay(stream, &Config::parse(config).unwrap(), Some(truth), &mut |_, _| {}).unwrap()
}

fn false_trips(run: &Run) -> usize {
    run.judgement.as_ref().unwrap().false_trips
}

#[test]
fn jitter_trips_the_naive_and_not_ours() {
    for (scenario, seed) in [(USUAL, 1), (ALL_COMBINED, 2)] {
        let stream = heard(scenario, Motion::steady(0.95), 120, seed);
        let replay = replayed(&stream, GUARD, &Truth::Recorded);
        let (ours, naive) = replay.runs.split_first().unwrap();
        assert_eq!((ours.overspeed_trips, ours.fault_trips), (0, 0), "{}: {:?}", scenario.name, ours.trips);
        assert!(ours.largest > 0.9 && ours.largest <= 0.95 + 1e-9, "{}", ours.largest);
        for run in naive {
            assert!(false_trips(run) > 0, "{}: {} trips falsely nowhere", scenario.name, run.name);
            assert_eq!(false_trips(run), run.overspeed_trips);
            // At most one a second.
            assert!(run.overspeed_trips <= 121 && run.frames_over >= run.overspeed_trips as u64);
        }
        println!("{}: seed {seed}, {:?}", scenario.name, naive.iter().map(false_trips).collect::<Vec<_>>());
    }
}

#[test]
fn a_true_overspeed_is_found_with_its_proof() {
    let motion = Motion { ratio: 0.6, overspeed: Some((5.0, 1.25)), ramp: f64::INFINITY };
    let stream = heard(CLEAN, motion, 6, 3);
    let replay = replayed(&stream, "[guard]\nperiod_ns = 10_000_000\ntcp_limit_mm_s = 1000.0\n", &Truth::Recorded);
    assert_eq!(replay.overspeeds.len(), 1);
    assert!(
        (replay.start_ns + replay.overspeeds[0].from_ns).abs_diff(5_000 * MS) <= 12 * MS
            && replay.overspeeds[0].peak_mm_s == 1250.0
    );
    let ours = &replay.runs[0];
    let judgement = ours.judgement.as_ref().unwrap();
    assert_eq!((judgement.false_trips, judgement.found, judgement.missed), (0, 1, 0));
    let bound = replay.parameters.detection_bound_ns(1.25, 0, 0).unwrap();
    assert!(judgement.delays_ns[0] <= bound && judgement.by_silence == 0);
    // The proof is one: it gives the bound by the formula of the specification, from what the robot sent.
    let trip = &ours.trips[0];
    let [a, b] = trip.proof.unwrap();
    let way = a.tcp_mm.iter().zip(b.tcp_mm).map(|(a, b)| (b - a) * (b - a)).sum::<f64>().sqrt();
    let longest_s = ((b.t_ns - a.t_ns) as f64 * 1e-9 + 2e-3) / (1.0 - 200e-6);
    assert!((trip.share - (way - 0.1) / longest_s / LIMIT_MM_S).abs() < 1e-12 && trip.share > 1.0);
    for sample in [a, b] {
        let is_it = |r: &&Recorded| Some(r.frame.arrival_ns - replay.start_ns) == sample.arrival_ns;
        let frame = stream.frames.iter().find(is_it).unwrap().frame;
        assert_eq!((frame.tcp_mm, frame.source_ns), (sample.tcp_mm, Some(sample.t_ns)));
    }
    assert_eq!((trip.black_box.len(), trip.black_box[49].arrival_ns), (50, trip.at_ns));
    // A fresh guard trips again and again while it lasts: that is one trip.
    assert_eq!((ours.overspeed_trips, trip.is_false), (1, Some(false)));
}

#[test]
fn silence_is_a_stop_of_its_own_kind_and_never_false() {
    let mut stream = heard(CLEAN, Motion::steady(0.5), 4, 4);
    stream.frames.retain(|recorded| !(2_000 * MS..2_300 * MS).contains(&recorded.frame.arrival_ns));
    let replay = replayed(&stream, "[guard]\nperiod_ns = 10_000_000\ntcp_limit_mm_s = 1000.0\n", &Truth::Legal);
    let ours = &replay.runs[0];
    assert_eq!((ours.overspeed_trips, ours.stale_trips, ours.fault_trips), (0, 1, 0));
    let trip = &ours.trips[0];
    assert_eq!((trip.state, trip.cause, trip.is_false), ("stale", "silence", None));
    // Found by a tick within the silence, not by the frame after it.
    assert!((2_040 * MS..2_052 * MS).contains(&(replay.start_ns + trip.at_ns)), "{}", trip.at_ns);
}

#[test]
fn what_is_proposed_fits_the_stream() {
    for (scenario, seed) in [(CLEAN, 5), (USUAL, 6)] {
        let stream = heard(scenario, Motion::steady(0.95), 60, seed);
        let given = Parameters { tcp_error_mm: 0.05, ..Parameters::for_tcp(10 * MS, LIMIT_MM_S) };
        let tuned = tune(&stream, &given).unwrap();
        let p = tuned.parameters;
        // Stamps are whole milliseconds and taken up to 0.4 ms off: two of them differ by up to 1.8 ms from T.
        assert_eq!((p.period_ns, p.sequence_modulus, p.time_base), (10 * MS, 256, TimeBase::Source));
        assert!((500_000..=1_500_000).contains(&p.source_error_ns), "{}", p.source_error_ns);
        assert!(p.stale_ns >= 50 * MS && (scenario.name == "clean") == (p.stale_ns == 50 * MS), "{}", p.stale_ns);
        let toml = tuned.toml(&stream, &Config::parse(GUARD).unwrap());
        let again = Config::parse(&toml).unwrap();
        assert_eq!(again.parameters, p, "{toml}");
        let replay = replay(&stream, &again, Some(&Truth::Recorded), &mut |_, _| {}).unwrap();
        let ours = &replay.runs[0];
        assert_eq!((ours.overspeed_trips, ours.stale_trips, ours.fault_trips), (0, 0, 0), "{}: {toml}", scenario.name);
        println!("{}: seed {seed}\n{toml}", scenario.name);
    }
}

#[test]
fn another_period_is_found_out() {
    // 8 ms, told as 10; by the count alone, with a count of 16 bits.
    let frames = (0..1000u64).map(|n| {
        let arrival_ns = 1_000 * MS + n * 8 * MS + (n * 7919 % 13) * MS / 10;
        let sequence = ((n + 65_000) % 65_536) as u32;
        let frame = Frame { sequence, arrival_ns, tcp_mm: [2.0 * n as f64, 0.0, 0.0], ..Frame::default() };
        Recorded { frame, truth_mm_s: None }
    });
    let stream = Stream { name: "counts".into(), frames: frames.collect(), incomplete: 0 };
    let tuned = tune(&stream, &Parameters::for_tcp(10 * MS, 1000.0)).unwrap();
    let p = tuned.parameters;
    assert_eq!((p.period_ns, p.sequence_modulus, p.time_base), (8 * MS, 65_536, TimeBase::Sequence));
    assert_eq!(p.window_ns, 120 * MS);
}

/// Of a robot that sends the time since 1970 as a double: steps of 256 ns are lost (10 ms is no multiple of them).
#[test]
fn exact_stamps_of_a_calendar_clock_are_a_time_base() {
    for start_ns in [0, 1_700_000_000_000_000_000_u64, 1_700_000_000_000_000_123] {
        let frames = (0..1000u64).map(|n| {
            let stamp = (start_ns + n * 10 * MS) as f64 as i64;
            let arrival_ns = 1_000 * MS + n * 10 * MS + (n * 7919 % 13) * MS / 10;
            let (sequence, source_ns) = ((n % 256) as u32, Some(stamp));
            let frame =
                Frame { sequence, source_ns, arrival_ns, tcp_mm: [2.0 * n as f64, 0.0, 0.0], ..Frame::default() };
            Recorded { frame, truth_mm_s: None }
        });
        let stream = Stream { name: "calendar".into(), frames: frames.collect(), incomplete: 0 };
        let given = Parameters::for_tcp(10 * MS, 1000.0);
        let tuned = tune(&stream, &given).unwrap();
        let p = tuned.parameters;
        assert_eq!((p.period_ns, p.time_base), (10 * MS, TimeBase::Source), "{start_ns}");
        // Their error cannot be seen: as given, and not a step of 10 ms with half of it as the error.
        assert_eq!(p.source_error_ns, given.source_error_ns.min(5 * MS), "{start_ns}");
        let why = |evidence: &taut_replay::Evidence| evidence.why.contains("exactly T apart");
        assert!(tuned.evidence.iter().any(why), "{start_ns}: {:?}", tuned.evidence);
        // A speed 25 % above the limit is still found.
        assert!(p.detection_bound_ns(1.25, 0, 0).is_some(), "{start_ns}: {p:?}");
    }
}

#[test]
fn a_resting_robot_shows_its_noise() {
    let mut stream = heard(CLEAN, Motion::steady(0.0), 5, 7);
    let tuned = tune(&stream, &Parameters::for_tcp(10 * MS, LIMIT_MM_S)).unwrap();
    let p_mm = tuned.parameters.tcp_error_mm;
    assert!((0.04..=0.08).contains(&p_mm), "{p_mm}");
    stream.frames.truncate(100);
    assert!(matches!(tune(&stream, &Parameters::for_tcp(10 * MS, LIMIT_MM_S)), Err(Error::TooShort { .. })));
}

#[test]
fn what_the_frames_lack_is_named_with_its_remedy() {
    let mut stream = heard(CLEAN, Motion::steady(0.5), 2, 8);
    let say = |stream: &Stream, truth: Option<&Truth>| {
        replay(stream, &Config::parse(GUARD).unwrap(), truth, &mut |_, _| {}).unwrap_err().to_string()
    };
    for recorded in &mut stream.frames {
        (recorded.truth_mm_s, recorded.frame.reported_mm_s) = (None, None);
    }
    assert!(say(&stream, Some(&Truth::Recorded)).contains("truth_mm_s, which no frame"));
    assert!(say(&stream, Some(&Truth::Reported)).contains("reported_mm_s, which no frame"));
    for recorded in &mut stream.frames {
        recorded.frame.sequence += 300;
    }
    assert!(say(&stream, None).contains("has no sequence below sequence_modulus"));
    for recorded in &mut stream.frames {
        (recorded.frame.source_ns, recorded.frame.sequence) = (None, 0);
    }
    assert!(say(&stream, None).contains("has no source_ns; set time_base"));
    stream.frames.truncate(3);
    assert!(say(&stream, None).contains("has 3 frames"));
}

/// An hour is replayed in seconds; here a tenth of one, with every estimator.
#[test]
fn a_long_stream_is_no_trouble() {
    let stream = heard(USUAL, Motion::steady(0.6), HOUR_NS / 10 / 1_000_000_000, 9);
    let replay = replayed(&stream, GUARD, &Truth::Legal);
    assert_eq!(replay.runs[0].overspeed_trips, 0);
    assert!(replay.runs.iter().all(|run| run.trips.len() <= 100));
}
