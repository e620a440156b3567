//! How far a clock is from that of its PTP grandmaster, as ptp4l states it. A statement, not a measurement.

use std::{path::Path, process::Command, time::Duration};

use taut_clock::{monotonic_ns, realtime_ns};

use crate::{first_line::text_of, realtime::DRIFT};

/// Where ptp4l is asked, unless its `uds_address` is another.
pub const SOCKET: &str = "/var/run/ptp4l";
/// pmc waits a tenth of a second for answers.
const PATIENCE: Duration = Duration::from_millis(500);
const QUESTIONS: [&str; 4] =
    ["GET TIME_STATUS_NP", "GET CURRENT_DATA_SET", "GET PORT_DATA_SET", "GET PORT_PROPERTIES_NP"];
/// The intervals between Sync messages that the standard's profiles use, as exponents of two of seconds.
const LOG_INTERVALS: std::ops::RangeInclusive<i32> = -7..=7;

/// What ptp4l stated.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    grandmaster: String,
    steps: u32,
    offset_ns: f64,
    path_delay_ns: f64,
    /// CLOCK_REALTIME at the last Sync message, by software time stamps; 0 on the grandmaster.
    sync_ns: u64,
    /// The ports', in lower case.
    time_stamps: String,
    /// `None`: nothing is stated of CLOCK_REALTIME.
    bound_ns: Option<f64>,
    /// CLOCK_MONOTONIC.
    at_ns: u64,
}

impl Stated {
    /// What a recording that starts at this moment of CLOCK_MONOTONIC says of it.
    pub fn facts(&self, start_ns: u64) -> [(&'static str, String); 7] {
        // The grandmaster's clock is the one that others are compared with: it does not drift.
        let drifts = if self.steps == 0 { 0.0 } else { DRIFT * start_ns.abs_diff(self.at_ns) as f64 };
        let bound = self.bound_ns.map_or(String::new(), |bound_ns| ((bound_ns + drifts).ceil() as u64).to_string());
        [
            ("ptp_bound_ns", bound),
            ("ptp_grandmaster", self.grandmaster.clone()),
            ("ptp_offset_ns", self.offset_ns.to_string()),
            ("ptp_path_delay_ns", self.path_delay_ns.to_string()),
            ("ptp_steps", self.steps.to_string()),
            ("ptp_sync_realtime_ns", self.sync_ns.to_string()),
            ("ptp_time_stamps", self.time_stamps.clone()),
        ]
    }
}

/// Asks ptp4l; `None` where none listens there, or it does not answer: only root may ask.
pub fn stated(socket: &Path) -> Option<Stated> {
    if !socket.exists() {
        return None;
    }
    let mut pmc = Command::new("pmc");
    pmc.args(["-u", "-b", "0", "-s"]).arg(socket).args(QUESTIONS);
    read(&text_of(pmc, PATIENCE)?, realtime_ns(), monotonic_ns())
}

/// Of pmc's text, in which each answer is a line with its name and lines of a key and a value.
///
/// The bound is taken one step from the grandmaster by software time stamps, which are of CLOCK_REALTIME: the network card's clock is
/// another, and of other steps the delay is not stated. The path's delay is half of the way there and back, so the ways' difference
/// makes the offset wrong by at most that, for a Sync message that took its usual time. The delay and the offset are of messages up to an
/// interval apart, so the clock's drift in that time counts, beside that since the last Sync message.
fn read(said: &str, now_ns: u64, at_ns: u64) -> Option<Stated> {
    let values = |key: &'static str| {
        said.lines().filter_map(move |line| {
            let mut words = line.split_whitespace();
            (words.next() == Some(key)).then(|| words.next().unwrap_or_default())
        })
    };
    let only = |key| {
        let mut all = values(key);
        all.next().filter(|_| all.next().is_none())
    };
    let number = |key| only(key)?.parse::<f64>().ok().filter(|number| number.is_finite());
    let grandmaster = only("gmIdentity").filter(|of| is_identity(of))?.to_owned();
    let steps: u32 = only("stepsRemoved")?.parse().ok()?;
    let (offset_ns, path_delay_ns) = (number("offsetFromMaster")?, number("meanPathDelay")?);
    let sync_ns: u64 = only("ingress_time")?.parse().ok()?;
    let mut time_stamps: Vec<String> =
        values("timestamping").map(|of| of.chars().filter(char::is_ascii_graphic).collect::<String>()).collect();
    time_stamps.iter_mut().for_each(|of| of.make_ascii_lowercase());
    time_stamps.sort();
    time_stamps.dedup();
    let interval_s = values("logSyncInterval").map(|log| log.parse().ok().filter(|log| LOG_INTERVALS.contains(log)));
    let interval_s = interval_s.map(|log| log.map(|log: i32| 2f64.powi(log))).collect::<Option<Vec<f64>>>();
    let interval_s = interval_s.and_then(|all| all.into_iter().reduce(f64::max));
    let is_present = only("gmPresent") == Some("true");
    let bound_ns = match (time_stamps == ["software"], steps, interval_s) {
        (true, 0, _) => Some(0.0),
        (true, 1, Some(interval_s)) if is_present && sync_ns > 0 => {
            let age_ns = now_ns.abs_diff(sync_ns) as f64;
            Some(offset_ns.abs() + path_delay_ns.abs() + DRIFT * (age_ns + interval_s * 1e9))
        }
        _ => None,
    };
    let time_stamps = time_stamps.join(",");
    Some(Stated { grandmaster, steps, offset_ns, path_delay_ns, sync_ns, time_stamps, bound_ns, at_ns })
}

/// As pmc prints it: three groups of hexadecimal digits.
fn is_identity(text: &str) -> bool {
    let groups: Vec<&str> = text.split('.').collect();
    groups.iter().map(|group| group.len()).eq([6, 4, 6])
        && groups.concat().bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use std::{fs, process::Stdio, time::Instant};

    use proptest::prelude::*;
    use taut_skip::{Need, skip};

    use super::*;

    /// What pmc of linuxptp 3.1.1 says between two network namespaces: of the grandmaster, and of a clock that follows it.
    const GRANDMASTER: &str = include_str!("ptp_says/grandmaster.txt");
    const FOLLOWER: &str = include_str!("ptp_says/follower.txt");
    const SYNC_NS: u64 = 1_795_884_574_325_875_056;

    fn bound_of(said: &str) -> Option<f64> {
        read(said, SYNC_NS + 2_000_000_000, 5).unwrap().bound_ns
    }

    #[test]
    fn the_bound_is_the_offset_the_paths_delay_and_what_a_clock_drifts() {
        let stated = read(FOLLOWER, SYNC_NS + 2_000_000_000, 5_000_000_000).unwrap();
        let facts = stated.facts(6_000_000_000);
        let facts = facts.each_ref().map(|(key, value)| (*key, value.as_str()));
        let expected = [
            // 31 ns, 1992 ns, and 50 ppm of 2 s since, of 1 s between two Syncs, and of 1 s until the start.
            ("ptp_bound_ns", "202023"),
            ("ptp_grandmaster", "56678f.fffe.ba9269"),
            ("ptp_offset_ns", "31"),
            ("ptp_path_delay_ns", "1992"),
            ("ptp_steps", "1"),
            ("ptp_sync_realtime_ns", "1795884574325875056"),
            ("ptp_time_stamps", "software"),
        ];
        assert_eq!(facts, expected);
        let of_itself = read(GRANDMASTER, SYNC_NS, 5).unwrap();
        assert_eq!((of_itself.grandmaster, of_itself.bound_ns), (stated.grandmaster, Some(0.0)));
    }

    #[test]
    fn of_the_cards_clock_of_more_steps_and_without_a_grandmaster_no_bound_is_taken() {
        assert!(bound_of(FOLLOWER).is_some());
        let changes = [
            ("SOFTWARE", "HARDWARE"),
            ("stepsRemoved     1", "stepsRemoved     2"),
            ("gmPresent                  true", "gmPresent                  false"),
            ("1795884574325875056", "0"),
            ("logSyncInterval         0", "logSyncInterval         127"),
        ];
        for (from, to) in changes {
            assert!(FOLLOWER.contains(from), "{from}");
            assert_eq!(bound_of(&FOLLOWER.replace(from, to)), None, "{to}");
        }
        assert_eq!(bound_of(&GRANDMASTER.replace("SOFTWARE", "HARDWARE")), None);
        let read = |from: &str, to: &str| read(&FOLLOWER.replace(from, to), SYNC_NS, 5);
        assert_eq!(read("meanPathDelay    1992.0", "meanPathDelay    nan"), None);
        assert_eq!(read("56678f.fffe.ba9269", "no.such.clock"), None);
        assert_eq!(read("sending: GET TIME_STATUS_NP", "gmIdentity 56678f.fffe.ba9270"), None, "two answers");
    }

    proptest! {
        #[test]
        fn foreign_text_is_read_without_a_panic(place in 0..FOLLOWER.len(), by in "\\PC{0,9}", now_ns: u64) {
            // The text is ASCII.
            let (before, after) = FOLLOWER.split_at(place);
            for said in [format!("{before}{by}{after}"), format!("{before}{by}"), by] {
                if let Some(stated) = read(&said, now_ns, 5) {
                    stated.facts(u64::MAX);
                }
            }
        }
    }

    #[test]
    fn a_ptp4l_that_runs_is_asked_and_one_that_does_not_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("ptp4l");
        assert_eq!(stated(&socket), None);
        if rustix::process::geteuid().as_raw() != 0 {
            return skip(Need::Root, "ptp4l needs it");
        }
        let settings =
            format!("[global]\ntime_stamping software\nfree_running 1\nuds_address {}\n[lo]\n", socket.display());
        let file = folder.path().join("ptp4l.conf");
        fs::write(&file, settings).unwrap();
        let mut ptp4l = Command::new("ptp4l");
        ptp4l.arg("-f").arg(&file).stdout(Stdio::null()).stderr(Stdio::null());
        let Ok(mut ptp4l) = ptp4l.spawn() else { return skip(Need::Ptp4l, "ptp4l is not installed") };
        let until = Instant::now() + Duration::from_secs(60);
        let found = loop {
            match stated(&socket) {
                None if Instant::now() < until && ptp4l.try_wait().unwrap().is_none() => {
                    std::thread::sleep(Duration::from_millis(10));
                }
                found => break found,
            }
        };
        let _ = ptp4l.kill();
        ptp4l.wait().unwrap();
        // Alone it is its own grandmaster.
        let found = found.expect("ptp4l answers");
        assert_eq!((found.steps, found.time_stamps.as_str(), found.bound_ns), (0, "software", Some(0.0)));
    }
}
