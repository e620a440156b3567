//! CAN-FD with bit-rate switching (ISO 11898-1): the time of a frame, with its stuff bits none, typical, worst,
//! or counted bit by bit.

use serde::Deserialize;

/// ACK, ACK delimiter, end of frame 7, intermission 3: at the nominal rate, after the CRC delimiter.
const TRAILER_BITS: u32 = 12;
/// ESI and the data length code.
const CONTROL_BITS: u32 = 5;
/// One stuff bit in so many, over random data.
const TYPICAL_STUFFING: f64 = 1.0 / 32.0;
/// Random bits reach a run of five, from the stuff bit that begins the next, after 2 + 4 + 8 + 16 of them on average.
const RANDOM_STUFFING: f64 = 1.0 / 30.0;
/// Equal bits in a row after which a complement is stuffed.
const RUN: u32 = 5;
/// Bytes of the longest frame.
const MAX_DATA: usize = 64;

/// A CAN-FD bus.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CanFd {
    /// Bits a second of arbitration and trailer.
    pub nominal_hz: f64,
    /// Bits a second from the bit-rate switch to the CRC delimiter.
    pub data_hz: f64,
    /// Which stuff bits are counted.
    #[serde(default)]
    pub stuffing: Stuffing,
}

/// Which dynamic stuff bits are counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Stuffing {
    /// No stuff bits: the shortest frame.
    None,
    /// 1 in 32 bits.
    #[default]
    Typical,
    /// The most that any content can need.
    Worst,
    /// Counted bit by bit: over the identifier, and over random payloads, of which 1 bit in 30 brings one on average.
    Random,
}

/// Length of the identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Id {
    /// 11 bits.
    Standard(u16),
    /// 29 bits.
    Extended(u32),
}

impl Id {
    /// The id of a request to a moteus servo that wants a reply: 0x8000 + servo, which needs 29 bits.
    pub fn request(servo: u8) -> Id {
        Id::Extended(0x8000 | u32::from(servo))
    }

    /// The id of a moteus servo's reply: its own id in the upper byte, 11 bits up to servo 7, 29 from 8.
    pub fn reply(servo: u8) -> Id {
        match servo {
            0..=7 => Id::Standard(u16::from(servo) << 8),
            _ => Id::Extended(u32::from(servo) << 8),
        }
    }

    /// Bits from start of frame to the bit-rate switch.
    pub fn arbitration_bits(self) -> u32 {
        match self {
            Id::Standard(_) => 17,
            Id::Extended(_) => 36,
        }
    }
}

/// The data length that carries `bytes`: CAN-FD has no 9 to 11 and so on. `None` beyond 64.
pub fn data_length(bytes: u32) -> Option<u32> {
    match bytes {
        0..=8 => Some(bytes),
        _ => [12, 16, 20, 24, 32, 48, 64].into_iter().find(|length| *length >= bytes),
    }
}

impl CanFd {
    /// A frame of `data` bytes (a [`data_length`]), intermission included; the mean where stuffing is random.
    pub fn frame_us(&self, id: Id, data: u32, stuffing: Stuffing) -> f64 {
        let (arbitration, bits) = (f64::from(id.arbitration_bits()), f64::from(CONTROL_BITS + 8 * data));
        let (in_arbitration, in_data) = match stuffing {
            Stuffing::None => (0.0, 0.0),
            Stuffing::Typical => (arbitration * TYPICAL_STUFFING, bits * TYPICAL_STUFFING),
            Stuffing::Random => (f64::from(stuff_bits(id, &[]).0), bits * RANDOM_STUFFING),
            Stuffing::Worst => (((arbitration - 1.0) / 4.0).floor(), (bits / 4.0).floor()),
        };
        self.stuffed_us(id, data, in_arbitration, in_data)
    }

    /// The frame with exactly these bytes, padded with `padding` to a length that CAN-FD has; `None` beyond 64 bytes.
    pub fn exact_frame_us(&self, id: Id, payload: &[u8], padding: u8) -> Option<f64> {
        let length = data_length(payload.len() as u32)?;
        let mut data = [padding; MAX_DATA];
        data[..payload.len()].copy_from_slice(payload);
        let (in_arbitration, in_data) = stuff_bits(id, &data[..length as usize]);
        Some(self.stuffed_us(id, length, f64::from(in_arbitration), f64::from(in_data)))
    }

    fn stuffed_us(&self, id: Id, data: u32, in_arbitration: f64, in_data: f64) -> f64 {
        let nominal = f64::from(id.arbitration_bits() + TRAILER_BITS) + in_arbitration;
        let fast = f64::from(CONTROL_BITS + 8 * data + crc_bits(data)) + in_data;
        nominal * 1e6 / self.nominal_hz + fast * 1e6 / self.data_hz
    }
}

/// Stuff count 4, CRC 17 or 21, fixed stuff bits 6 or 7, delimiter.
fn crc_bits(data: u32) -> u32 {
    match data {
        0..=16 => 4 + 17 + 6 + 1,
        _ => 4 + 21 + 7 + 1,
    }
}

/// Dynamic stuff bits up to and after the bit-rate switch. A run that ends with the data field needs none: the
/// fixed stuff bit before the CRC breaks it.
pub fn stuff_bits(id: Id, data: &[u8]) -> (u32, u32) {
    let switch = id.arbitration_bits() as usize;
    let all = switch + CONTROL_BITS as usize + 8 * data.len();
    let (mut stuffed, mut run, mut last) = ((0, 0), 0, None);
    for (at, bit) in bits(id, data).enumerate() {
        run = if last == Some(bit) { run + 1 } else { 1 };
        last = Some(bit);
        if run == RUN && at + 1 < all {
            // The stuffed bit is itself the first of a run; after the switch it travels at the data rate.
            (run, last) = (1, Some(!bit));
            *(if at + 1 < switch { &mut stuffed.0 } else { &mut stuffed.1 }) += 1;
        }
    }
    stuffed
}

/// Start of frame to the last data bit, before stuffing; dominant is false.
fn bits(id: Id, data: &[u8]) -> impl Iterator<Item = bool> {
    // Values with their number of bits; nothing here may allocate, for simulated buses count stuff bits in a cycle.
    let arbitration = match id {
        // RRS and IDE
        Id::Standard(id) => [(u32::from(id), 11), (0b00, 2), (0, 0), (0, 0)],
        // SRR and IDE; RRS
        Id::Extended(id) => [(id >> 18, 11), (0b11, 2), (id, 18), (0, 1)],
    };
    // FDF, reserved and BRS; ESI: error active
    let control = [(0b101, 3), (0, 1), (length_code(data.len() as u32), 4)];
    let data = data.iter().map(|byte| (u32::from(*byte), 8));
    let fields = std::iter::once((0, 1)).chain(arbitration).chain(control).chain(data);
    fields.flat_map(|(value, n)| (0..n).rev().map(move |at| value >> at & 1 == 1))
}

fn length_code(data: u32) -> u32 {
    match data {
        0..=8 => data,
        _ => 9 + [12, 16, 20, 24, 32, 48, 64].iter().take_while(|length| **length < data).count() as u32,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BUS: CanFd = CanFd { nominal_hz: 1e6, data_hz: 5e6, stuffing: Stuffing::Typical };
    const STANDARD: Id = Id::Standard(0x100);
    const EXTENDED: Id = Id::Extended(0x8001);

    #[test]
    fn the_table_of_frame_times_at_1_and_5_mbit() {
        let table = [
            (STANDARD, 16, [61.0, 63.0, 72.0]),
            (EXTENDED, 16, [80.0, 82.0, 95.0]),
            (EXTENDED, 20, [88.0, 90.0, 104.0]),
            (EXTENDED, 24, [94.0, 96.0, 112.0]),
            (EXTENDED, 32, [107.0, 110.0, 128.0]),
            (EXTENDED, 48, [132.0, 136.0, 160.0]),
            (EXTENDED, 64, [158.0, 162.0, 192.0]),
        ];
        for (id, data, expected) in table {
            let found = [Stuffing::None, Stuffing::Typical, Stuffing::Worst].map(|s| BUS.frame_us(id, data, s).round());
            assert_eq!(found, expected, "{id:?}, {data} bytes");
        }
    }

    #[test]
    fn the_nominal_rate_dominates() {
        let fast = CanFd { data_hz: 10e6, ..BUS };
        let saved = BUS.frame_us(EXTENDED, 16, Stuffing::None) - fast.frame_us(EXTENDED, 16, Stuffing::None);
        assert!((saved - 16.1).abs() < 0.1, "twice the data rate saves {saved} µs of 80");
    }

    #[test]
    fn fields_have_the_bits_of_the_standard() {
        assert_eq!(bits(STANDARD, &[]).count(), 17 + 5);
        assert_eq!(bits(EXTENDED, &[0; 16]).count(), 36 + 5 + 128);
        // 0x100: SOF 0, id 001 0000 0000, RRS 0, IDE 0, FDF 1, res 0, BRS 1, ESI 0, DLC 1010 for 16 bytes.
        let text: String = bits(STANDARD, &[0; 16]).take(22).map(|b| if b { '1' } else { '0' }).collect();
        assert_eq!(text, "0001000000000010101010");
        assert_eq!([8, 12, 16, 20, 24, 32, 48, 64].map(length_code), [8, 9, 10, 11, 12, 13, 14, 15]);
    }

    #[test]
    fn stuff_bits_counted_by_hand() {
        // 0001 00000[1]00000[1] 10101 0 1010…: two stuff bits in the arbitration field, none in alternating data.
        assert_eq!(stuff_bits(STANDARD, &[0x55; 16]), (2, 0));
        // The length code ends 1010, so each stuff bit closes 4 zeros: 0|0000 [1] 0000 0[1]… over 8 zero bytes.
        // 1000 then 64 zeros: a run of 3 + 64 zeros. Stuffed after 5 zeros and then after every 5 again (the stuff bit
        // is a one): 67 / 5 = 13.
        assert_eq!(stuff_bits(STANDARD, &[0; 8]).1, 13);
        // Ones after the 0 of a 0-length… 8 bytes of ones after …1000: 64 ones, 12 full runs of 5.
        assert_eq!(stuff_bits(STANDARD, &[0xff; 8]).1, 12);
        // Five equal bits at the very end need none: the fixed stuff bit follows.
        assert_eq!(stuff_bits(STANDARD, &[0b1010_1010, 0b1010_0000]).1, stuff_bits(STANDARD, &[0xaa, 0xaa]).1);
    }

    #[test]
    fn moteus_ids_are_long_for_requests_and_from_servo_8() {
        assert_eq!(Id::request(1), Id::Extended(0x8001));
        assert_eq!((Id::reply(7), Id::reply(8)), (Id::Standard(0x700), Id::Extended(0x800)));
    }

    #[test]
    fn lengths_round_up_to_those_that_exist() {
        assert_eq!([0, 5, 8, 9, 13, 17, 33, 64].map(|n| data_length(n).unwrap()), [0, 5, 8, 12, 16, 20, 48, 64]);
        assert_eq!(data_length(65), None);
        assert_eq!(BUS.exact_frame_us(EXTENDED, &[0; 65], 0x50), None);
    }

    proptest! {
        #[test]
        fn exact_stuffing_lies_between_none_and_worst(
            extended: bool, id in 0u32..1 << 29, payload in prop::collection::vec(any::<u8>(), 0..=64),
        ) {
            let id = if extended { Id::Extended(id) } else { Id::Standard((id & 0x7ff) as u16) };
            let data = data_length(payload.len() as u32).unwrap();
            let exact = BUS.exact_frame_us(id, &payload, 0x50).unwrap();
            prop_assert!(exact >= BUS.frame_us(id, data, Stuffing::None) - 1e-9);
            prop_assert!(exact <= BUS.frame_us(id, data, Stuffing::Worst) + 1e-9);
        }

        #[test]
        fn no_run_of_six_is_left_after_stuffing(payload in prop::collection::vec(any::<u8>(), 0..=64)) {
            let mut data = payload.clone();
            data.resize(data_length(payload.len() as u32).unwrap() as usize, 0);
            let raw: Vec<bool> = bits(EXTENDED, &data).collect();
            let (arbitration, fast) = stuff_bits(EXTENDED, &data);
            // Stuff independently: insert after each five equal bits, then look at the result.
            let mut wire: Vec<bool> = Vec::new();
            for (at, bit) in raw.iter().enumerate() {
                wire.push(*bit);
                let run = wire.iter().rev().take_while(|b| *b == bit).count();
                if run == 5 && at + 1 < raw.len() { wire.push(!bit); }
            }
            prop_assert_eq!(wire.len(), raw.len() + (arbitration + fast) as usize);
            prop_assert!(wire.windows(6).all(|w| w.iter().any(|b| *b != w[0])));
        }
    }
}
