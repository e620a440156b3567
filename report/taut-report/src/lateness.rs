//! How late the messages of a chain are, in a sentence.

use taut_analysis::Chain;

use crate::words::{count, duration};

/// A name of several words, which would read on in a sentence.
fn quoted(name: &str) -> String {
    if name.contains(' ') { format!("`{name}`") } else { name.to_owned() }
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
        return format!(
            "{} messages went {ends}, too few for a median; the slowest took {}.",
            count(d.n),
            duration(max)
        );
    };
    let tail = match (d.p999_ns, d.p99_ns, d.p95_ns, d.p90_ns) {
        (Some(q), ..) => format!("one in 1000 over {}", duration(q)),
        (_, Some(q), ..) => format!("one in 100 over {}", duration(q)),
        (_, _, Some(q), _) => format!("one in 20 over {}", duration(q)),
        (_, _, _, Some(q)) => format!("one in 10 over {}", duration(q)),
        _ => format!("the slowest {}", duration(max)),
    };
    format!("Half of {} messages took {} or less {ends}, {tail}.", count(d.n), duration(p50))
}
