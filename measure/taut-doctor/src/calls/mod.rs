//! Answers that no file gives, by name. All of them only ask: none opens a serial port (that would raise DTR, which
//! resets many controllers), and the one scheduling change is made to a separate thread that ends at once.

mod audit;
mod kernel;
mod network;
mod python;

use std::fs;

use crate::{Answer, Missing, missing::missing};

/// Asks the machine underneath.
#[derive(Debug)]
pub(crate) struct Calls {
    /// Started first and read last, since it is the slowest.
    python: python::Python,
}

impl Calls {
    pub fn new() -> Calls {
        Calls { python: python::Python::start() }
    }

    /// The answer of a call.
    pub fn answer(&self, name: &str) -> Answer {
        match name.split_once(' ').unwrap_or((name, "")) {
            ("sched_setscheduler", _) => kernel::may_run_fifo(),
            ("clock_getres", _) => kernel::clock_resolution_ns(),
            ("clock_gettime", _) => kernel::clock_cost_ns(),
            ("adjtimex", _) => kernel::time_state(),
            ("access", path) => kernel::writable(path),
            ("read", "/dev/cpu_dma_latency") => kernel::dma_latency_us(),
            ("read", "/dev/cpu/0/msr") => kernel::smi_count(),
            ("audit_get", _) => audit::status(),
            ("ethtool_coalesce", interface) => network::coalescing(interface),
            ("ethtool_eee", interface) => network::energy_efficient(interface),
            ("processes", _) => processes(),
            ("python3", _) => self.python.answer(),
            _ => Err(Missing::Absent),
        }
    }
}

/// Programs that checks ask for. The kernel's first thread shows only where all of them do. The others are nobody's
/// business, least of all in a machine that was written down.
const PROGRAMS: [&str; 8] =
    ["kthreadd", "irqbalance", "chronyd", "ptp4l", "phc2sys", "ntpd", "systemd-timesyn", "timemaster"];

/// Which of those run.
fn processes() -> Answer {
    let mut names: Vec<String> = fs::read_dir("/proc")
        .map_err(missing)?
        .flatten()
        .filter(|entry| entry.file_name().as_encoded_bytes().iter().all(u8::is_ascii_digit))
        .filter_map(|entry| Some(fs::read_to_string(entry.path().join("comm")).ok()?.trim().to_owned()))
        .filter(|name| PROGRAMS.contains(&name.as_str()))
        .collect();
    names.sort();
    names.dedup();
    Ok(names.join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machine_underneath_answers() {
        let calls = Calls::new();
        let number = |name: &str| calls.answer(name).unwrap().parse::<f64>().unwrap();
        assert_eq!(number("clock_getres"), 1.0, "every kernel that runs these tests has high-resolution timers");
        assert!(number("clock_gettime") > 0.0);
        assert!(calls.answer("adjtimex").unwrap().contains("synchronized="));
        assert!(calls.answer("processes").unwrap().lines().all(|name| PROGRAMS.contains(&name)));
        assert_eq!(calls.answer("ethtool_coalesce no-such-interface"), Err(Missing::Absent));
        assert_eq!(calls.answer("ethtool_coalesce with a name that is far too long"), Err(Missing::Absent));
        assert_eq!(calls.answer("no such call"), Err(Missing::Absent));
    }
}
