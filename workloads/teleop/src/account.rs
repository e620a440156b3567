//! Where every setpoint ended: the guard crate's ledger, and the stamps of it.
//!
//! The leader numbers its setpoints 1, 2, 3, …; the follower enters each number here exactly once, those that it never saw included,
//! so that at the end the leader's count and the ledger's sums must agree.

use serde_json::{Map, Value, json};
use taut_guard::{
    Error,
    ledger::{Fate, Ledger, REASON_COUNT, Reason},
};

const BALANCE_PERIOD_NS: u64 = 1_000_000_000;

type Counts = [u64; REASON_COUNT];

#[derive(Default)]
pub struct Account {
    ledger: Ledger<256>,
    entered: u64,
    passed: u64,
    modified: Counts,
    dropped: Counts,
    balanced_ns: u64,
    balances: u64,
    alarms: u64,
    pub failure: Option<String>,
}

impl Account {
    /// A setpoint came; the numbers before it that did not were lost on the link.
    pub fn enter(&mut self, setpoint: u64, now_ns: u64) {
        while self.entered < setpoint {
            self.entered += 1;
            let produced = self.ledger.produce(self.entered, now_ns);
            self.note(produced);
            if self.entered < setpoint {
                self.drop(self.entered, Fate::Lost(Reason::QueueOverflow), now_ns);
            }
        }
    }

    /// The servo was seen to have it, as it was or changed for a limit.
    pub fn deliver(&mut self, setpoint: u64, modified: Option<Reason>, now_ns: u64) {
        let ended = self.ledger.end(setpoint, modified.map_or(Fate::Passed, Fate::Modified), now_ns);
        self.note(ended.map(drop));
        *modified.map_or(&mut self.passed, |reason| &mut self.modified[reason as usize - 1]) += 1;
        taut_stamp::applied(setpoint);
    }

    /// It ended otherwise; `fate` has a reason.
    pub fn drop(&mut self, setpoint: u64, fate: Fate, now_ns: u64) {
        let Some(reason) = fate.reason() else { return self.deliver(setpoint, None, now_ns) };
        let ended = self.ledger.end(setpoint, fate, now_ns);
        self.note(ended.map(drop));
        self.dropped[reason as usize - 1] += 1;
        taut_stamp::outcome(setpoint, reason.name());
    }

    /// The law of conservation, once a second.
    pub fn check(&mut self, now_ns: u64) {
        if now_ns - self.balanced_ns >= BALANCE_PERIOD_NS {
            self.balance(now_ns);
        }
    }

    /// `produced` is the leader's own count: what it made and never came was lost on the link.
    pub fn close(&mut self, produced: u64, now_ns: u64) {
        if produced > self.entered {
            self.enter(produced, now_ns);
            self.drop(produced, Fate::Lost(Reason::QueueOverflow), now_ns);
        } else if produced < self.entered {
            let entered = self.entered;
            self.failure.get_or_insert_with(|| format!("the leader made {produced} setpoints, {entered} came"));
        }
        self.balance(now_ns);
    }

    /// The sums, in the words of the source arrangement's ledger.
    pub fn summary(&mut self, now_ns: u64) -> Value {
        let balance = self.ledger.balance(now_ns).unwrap_or_default();
        let sum = |counts: &Counts| counts.iter().sum::<u64>();
        let applied = self.passed + sum(&self.modified);
        let accounted = applied + sum(&self.dropped) + balance.in_flight;
        json!({
            "produced": balance.produced,
            "applied": applied,
            "dropped": by_name(&self.dropped),
            "modified": by_name(&self.modified),
            "in_flight": balance.in_flight,
            "unexplained": balance.produced.abs_diff(accounted),
            "silent": balance.silent,
            "balances": self.balances,
            "alarmed_seconds": self.alarms,
        })
    }

    fn balance(&mut self, now_ns: u64) {
        self.balanced_ns = now_ns;
        match self.ledger.balance(now_ns) {
            Ok(balance) => {
                self.balances += 1;
                self.alarms += u64::from(balance.is_alarmed);
            }
            Err(unbalanced) => self.note(Err(unbalanced)),
        }
    }

    /// The first that is wrong is kept.
    fn note(&mut self, done: Result<(), Error>) {
        if let Err(wrong) = done {
            self.failure.get_or_insert_with(|| wrong.to_string());
        }
    }
}

/// The counts that are not 0, the largest first.
fn by_name(counts: &Counts) -> Value {
    let mut found: Vec<(u64, &str)> =
        Reason::ALL.into_iter().zip(counts).map(|(reason, count)| (*count, reason.name())).collect();
    found.retain(|(count, _)| *count > 0);
    found.sort_by_key(|(count, _)| std::cmp::Reverse(*count));
    Value::Object(found.into_iter().map(|(count, name)| (name.to_owned(), count.into())).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn it_is_conserved_whatever_happens(fates in prop::collection::vec(0..6_u8, 0..200)) {
            let (mut account, mut flying) = (Account::default(), 0);
            for (number, fate) in (1..).zip(&fates) {
                // One that the link loses: the next one, or the leader's count, says so.
                if *fate == 0 {
                    continue;
                }
                account.enter(number, number);
                match fate {
                    1 => account.deliver(number, None, number),
                    2 => account.deliver(number, Some(Reason::VelocityLimit), number),
                    3 => account.drop(number, Fate::Superseded(Reason::Superseded), number),
                    4 => account.drop(number, Fate::Rejected(Reason::GuardLatched), number),
                    _ => flying += 1,
                }
            }
            account.close(fates.len() as u64, 999);
            let summary = account.summary(999);
            let count = |fate: u8| fates.iter().filter(|one| **one == fate).count() as u64;
            prop_assert_eq!(&account.failure, &None);
            prop_assert_eq!(&summary["produced"], fates.len());
            prop_assert_eq!((&summary["in_flight"], &summary["unexplained"], &summary["silent"]), (&json!(flying), &json!(0), &json!(count(0))));
            prop_assert_eq!(summary["dropped"]["queue_overflow"].as_u64().unwrap_or(0), count(0));
            prop_assert_eq!(summary["applied"].as_u64().unwrap(), count(1) + count(2));
        }
    }

    #[test]
    fn a_count_that_disagrees_with_the_leaders_and_a_second_fate_are_failures() {
        let mut account = Account::default();
        account.enter(2, 0);
        account.close(1, 0);
        assert!(account.failure.unwrap().contains("made 1"));
        let mut account = Account::default();
        account.enter(1, 0);
        account.deliver(1, None, 0);
        account.drop(1, Fate::Lost(Reason::Transport), 0);
        assert!(account.failure.is_some() && account.summary(0)["unexplained"] == 1);
    }
}
