//! At what level chunks are compressed. mcap takes the level without a sign, and ours is negative.

use taut_recording::{Ending, Info, Writer};

#[test]
fn literals_are_left_as_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let mut writer = Writer::create(&path, &Info::default()).unwrap();
    let channel = writer.channel("/telemetry/noise", "telemetry/msg/Noise", "uint8[100000] value\n").unwrap();
    // Bytes of four random bits: no two stretches are alike, but any coding of literals would halve them.
    let mut state = 1_u64;
    let noise = |out: &mut Vec<u8>| {
        out.extend([0, 1, 0, 0]);
        out.extend((0..100_000).map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 60) as u8
        }));
    };
    writer.message(channel, 0, 0, noise).unwrap();
    writer.finish(&Ending::default()).unwrap();
    assert!(std::fs::metadata(path).unwrap().len() > 90_000);
}
