//! The start-up transient: found by one rule, kept separate, and reported.

/// Fewer messages than this have no "later" to compare the first ones with.
const MESSAGES_MIN: usize = 100;
/// Start-up lies within this first share of the messages …
const SHARE_MAX: usize = 10;
/// … ends with the first run of this many messages in the later range …
const CALM: usize = 10;
/// … which reaches up to this multiple of the later messages' 99th percentile.
const FACTOR: u64 = 2;

/// How many of the first messages are start-up, given every message's life in order of its start.
pub(crate) fn length(lives_ns: &[u64]) -> usize {
    if lives_ns.len() < MESSAGES_MIN {
        return 0;
    }
    let first = lives_ns.len() / SHARE_MAX;
    let mut later = lives_ns[first..].to_vec();
    later.sort_unstable();
    let limit = taut_stats::rank(&later, 0.99).unwrap_or(0).saturating_mul(FACTOR);
    let mut length = 0;
    for (at, life) in lives_ns[..first].iter().enumerate() {
        if *life > limit {
            length = at + 1;
        } else if at + 1 - length >= CALM {
            break;
        }
    }
    length
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slow_first_message_is_start_up() {
        let mut lives = vec![2; 3021];
        lives[0] = 47;
        assert_eq!(length(&lives), 1);
    }

    #[test]
    fn a_late_spike_is_not_start_up() {
        let mut lives = vec![2; 3021];
        lives[200] = 47;
        assert_eq!(length(&lives), 0);
        assert_eq!(length(&[50, 1, 1, 1]), 0, "too few to tell");
    }
}
