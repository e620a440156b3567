//! The one sentence at the top of every view: what a busy reader needs, and no more than the data carry.

use taut_analysis::{Analysis, Chain};

use crate::words::{count, duration, percent};

/// What happened, in two or three short sentences about the largest chain.
pub fn headline(analysis: &Analysis) -> String {
    let Some(chain) = analysis.chains.first() else {
        return "No chain was found: no message passed two points.".to_owned();
    };
    let mut sentences = vec![lateness(chain)];
    sentences.extend(where_late(chain));
    sentences.extend(ended(chain));
    sentences.join(" ")
}

/// The sentence with a capital letter.
pub(crate) fn capital(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map_or(String::new(), |first| first.to_uppercase().chain(characters).collect())
}

fn lateness(chain: &Chain) -> String {
    let d = &chain.end_to_end.distribution;
    let ends = match (chain.points.first(), chain.points.last()) {
        (Some(first), Some(last)) => format!("from {} to {}", first.name, last.name),
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

/// The hop that most of the tail is spent in.
fn where_late(chain: &Chain) -> Option<String> {
    let hop = chain.hops.iter().max_by(|a, b| a.tail_share.total_cmp_or_less(&b.tail_share))?;
    let share = hop.tail_share.filter(|share| *share > 0.0)?;
    Some(format!("Of what makes the slow ones slow, {} is spent from {} to {}.", percent(share), hop.from, hop.to))
}

fn ended(chain: &Chain) -> Option<String> {
    let outcomes = &chain.outcomes;
    let dropped: u64 = outcomes.dropped.iter().map(|(_, n)| n).sum();
    if outcomes.unexplained > 0 {
        return Some(format!(
            "{} of {} messages vanished without a reason.",
            count(outcomes.unexplained),
            count(chain.messages)
        ));
    }
    let (reason, _) = outcomes.dropped.first()?;
    let share = percent(dropped as f64 / chain.messages.max(1) as f64);
    Some(format!("{share} of {} messages were dropped, most for {reason}.", count(chain.messages)))
}

trait TotalOrder {
    fn total_cmp_or_less(&self, other: &Self) -> std::cmp::Ordering;
}

impl TotalOrder for Option<f64> {
    fn total_cmp_or_less(&self, other: &Self) -> std::cmp::Ordering {
        self.unwrap_or(-1.0).total_cmp(&other.unwrap_or(-1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_headline_says_how_late_where_and_what_was_lost() {
        let text = headline(&sample::teleop());
        assert_eq!(
            text.replace('\u{202f}', " "),
            "Half of 868 messages took 2.43 ms or less from publish.pre_read to follower.command_applied, one in 100 over \
             11.0 ms. Of what makes the slow ones slow, 52.0 % is spent from sysstate.pre_callback to orch.cb_enter. 71.2 % of \
             3 021 messages were dropped, most for validator_timing_bug."
        );
    }
}
