//! What the command line asks for.

use std::path::PathBuf;

const USAGE: &str = "usage: causes_injector --truth FILE --work DIR [--kinds A,B,…] [--messages N] [--seed N] [--share 0..1]
  [--pairs] [--off] [--quiet] [--cpu N] [--other-cpu N] [--gap-ms LOW,HIGH] [--cgroup DIR] [--outside HOST:PORT] [--fifo PREFIX]";

pub struct Options {
    pub kinds: Vec<String>,
    pub messages: u64,
    pub seed: u64,
    /// Of the messages, those to which something happens.
    pub share: f64,
    /// Two kinds at once.
    pub pairs: bool,
    /// Everything as usual, but nothing happens: what the what-if predicts.
    pub off: bool,
    /// No noisy background.
    pub quiet: bool,
    pub cpu: usize,
    pub other_cpu: usize,
    pub gap_ns: (u64, u64),
    pub truth: PathBuf,
    /// For files that must lie on a disk.
    pub work: PathBuf,
    /// A cgroup of ours, to be throttled in.
    pub cgroup: PathBuf,
    /// A server that is not recorded, by TCP …
    pub outside: String,
    /// … and by two named pipes, PREFIX.in and PREFIX.out.
    pub fifo: String,
}

impl Options {
    pub fn from_arguments() -> Options {
        let mut options = Options {
            kinds: Vec::new(),
            messages: 1200,
            seed: 1,
            share: 1.0 / 3.0,
            pairs: false,
            off: false,
            quiet: false,
            cpu: 1,
            other_cpu: 0,
            gap_ns: (5_000_000, 30_000_000),
            truth: PathBuf::new(),
            work: PathBuf::from("."),
            cgroup: PathBuf::new(),
            outside: String::new(),
            fifo: String::new(),
        };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().unwrap_or_else(|| refuse(&argument));
            match argument.as_str() {
                "--pairs" => options.pairs = true,
                "--off" => options.off = true,
                "--quiet" => options.quiet = true,
                "--kinds" => options.kinds = next().split(',').map(str::to_owned).collect(),
                "--messages" => options.messages = number(&next()),
                "--seed" => options.seed = number(&next()),
                "--share" => options.share = number(&next()),
                "--cpu" => options.cpu = number(&next()),
                "--other-cpu" => options.other_cpu = number(&next()),
                "--gap-ms" => {
                    let text = next();
                    let (low, high) = text.split_once(',').unwrap_or_else(|| refuse(&text));
                    let ns = |text| (number::<f64>(text) * 1e6) as u64;
                    options.gap_ns = (ns(low), ns(high));
                }
                "--truth" => options.truth = next().into(),
                "--work" => options.work = next().into(),
                "--cgroup" => options.cgroup = next().into(),
                "--outside" => options.outside = next(),
                "--fifo" => options.fifo = next(),
                other => refuse(other),
            }
        }
        options
    }
}

fn number<T: std::str::FromStr>(text: &str) -> T {
    text.parse().unwrap_or_else(|_| refuse(text))
}

fn refuse(argument: &str) -> ! {
    eprintln!("causes_injector: {argument}?\n{USAGE}");
    std::process::exit(2)
}
