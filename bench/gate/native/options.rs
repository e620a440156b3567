//! What the command line asks for.

const USAGE: &str = "usage: gate_loop [--seconds S] [--seed N] [--slow SHARE | --tail] [--measure]";

pub struct Options {
    pub seconds: f64,
    pub seed: u64,
    /// More work in the estimate, as a share of it.
    pub slow: f64,
    /// One message in 200 has five times the work there.
    pub tail: bool,
    /// Slow every second message only, and print the CPU times of both kinds.
    pub measure: bool,
    /// The process that the first one starts.
    pub is_second: bool,
}

impl Options {
    pub fn from_arguments() -> Options {
        let mut options = Options { seconds: 1.5, seed: 1, slow: 0.0, tail: false, measure: false, is_second: false };
        let mut arguments = std::env::args().skip(1);
        while let Some(argument) = arguments.next() {
            let mut next = || arguments.next().unwrap_or_else(|| refuse(&argument));
            match argument.as_str() {
                "--seconds" => options.seconds = number(&next()),
                "--seed" => options.seed = number(&next()),
                "--slow" => options.slow = number(&next()),
                "--tail" => options.tail = true,
                "--measure" => options.measure = true,
                "--second" => options.is_second = true,
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
    eprintln!("gate_loop: {argument}?\n{USAGE}");
    std::process::exit(2)
}
