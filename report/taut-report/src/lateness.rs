//! How late the messages of a chain are, in a sentence.

use taut_analysis::Chain;

use crate::words::{count, duration};

/// A name of several words, which would read on in a sentence.
pub(crate) fn quoted(name: &str) -> String {
    if name.contains(' ') { format!("`{name}`") } else { name.to_owned() }
}

/// The medians of the first and of the last tenth of many messages, in order of their starts.
fn course(chain: &Chain) -> Option<(u64, u64)> {
    /// Fewer say nothing of a course.
    const TENTH: usize = 10;
    let median = |part: &[(u64, u64)]| {
        let mut all: Vec<u64> = part.iter().map(|(_, total_ns)| *total_ns).collect();
        all.sort_unstable();
        all[all.len() / 2]
    };
    let tenth = chain.series.len() / 10;
    (tenth >= TENTH).then(|| (median(&chain.series[..tenth]), median(&chain.series[chain.series.len() - tenth..])))
}

pub(crate) fn lateness(chain: &Chain) -> String {
    let d = &chain.end_to_end.distribution;
    let ends = match (chain.points.first(), chain.points.last()) {
        (Some(first), Some(last)) => format!("from {} to {}", quoted(&first.name), quoted(&last.name)),
        _ => String::new(),
    };
    let (Some(max), true) = (d.max_ns, d.n > 0) else {
        return format!("None of {} messages went all the way {ends}.", count(chain.messages));
    };
    let Some(p50) = d.p50_ns else {
        let few = match course(chain) {
            Some((first_ns, last_ns)) => format!(
                ". They depend on each other too much for a median: the first tenth took {}, the last tenth {} (medians)",
                duration(first_ns),
                duration(last_ns)
            ),
            None => ", too few for a median".to_owned(),
        };
        if d.n == 1 {
            return format!("1 message went {ends} and took {}.", duration(max));
        }
        return format!("{} messages went {ends}{few}; the slowest took {}.", count(d.n), duration(max));
    };
    if p50 >= max {
        return format!("Each of {} messages took at most {} {ends}.", count(d.n), duration(max));
    }
    let carried = [(d.p999_ns, 1000), (d.p99_ns, 100), (d.p95_ns, 20), (d.p90_ns, 10)];
    let tail = match carried.iter().find_map(|(quantile, of)| Some((quantile.as_ref()?, of))) {
        Some((q, of)) if *q < max => format!("one in {of} over {}", duration(*q)),
        _ => format!("the slowest {}", duration(max)),
    };
    format!("Half of {} messages took {} or less {ends}, {tail}.", count(d.n), duration(p50))
}
