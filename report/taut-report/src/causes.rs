//! Causes in sentences; tables have their words.

use taut_analysis::{Cause, CauseShare, Explained};

use crate::words::percent;

/// A cause with its largest party: "preemption by hog/30", "waiting for a CPU after a wakeup (while hog/30 ran)".
pub(crate) fn phrase(cause: Cause, detail: &str) -> String {
    let what = match cause {
        Cause::Lock if detail.starts_with("held by ") => return format!("a lock {detail}"),
        Cause::Lock if !detail.is_empty() => return format!("the lock {}", with_quoted_name(detail)),
        Cause::Preempted if !detail.is_empty() => return format!("preemption {detail}"),
        Cause::Wakeup if detail.is_empty() => return "a CPU leaving idle after a wakeup".to_owned(),
        Cause::Queued if detail.contains(" was busy with ") => {
            return format!("waiting for {}", detail.replacen(" was busy with ", ", which was busy with ", 1));
        }
        Cause::TimerSlack if detail.starts_with("timer interrupt came late") => {
            return detail.replacen("timer interrupt came late", "a timer interrupt that came late", 1);
        }
        other => noun(other),
    };
    match cause.party(detail) {
        detail if detail.is_empty() => what.to_owned(),
        detail => format!("{what} ({detail})"),
    }
}

/// "`m` (held by logger/7)": a variable's name may be a word of the sentence.
fn with_quoted_name(lock: &str) -> String {
    let (name, rest) = lock.split_at(lock.find(' ').unwrap_or(lock.len()));
    if rest.is_empty() || rest.starts_with(" (") { format!("`{name}`{rest}") } else { lock.to_owned() }
}

/// A cause in a sentence. Of the two waits for a CPU each has the word that tables have, so that they are known for one kind.
pub(crate) fn noun(cause: Cause) -> &'static str {
    match cause {
        Cause::Cpu => "computing",
        Cause::Syscall => "system calls",
        Cause::PageFault => "page faults",
        Cause::Irq => "interrupts",
        Cause::Preempted => "preemption",
        Cause::Wakeup => "waiting for a CPU after a wakeup",
        Cause::Throttled => "throttling",
        Cause::Lock => "a lock",
        Cause::Gil => "waiting for the GIL",
        Cause::Io => "waiting for data",
        Cause::Sleep => "sleeping",
        Cause::TimerSlack => "timer slack",
        Cause::Queued => "waiting behind other messages",
        Cause::Executor => "a busy executor",
        Cause::Partner => "waiting for a partner",
        Cause::Network => "the network",
        Cause::Disk => "waiting for a disk",
        Cause::Stopped => "being stopped",
        Cause::Hypervisor => "the hypervisor",
        Cause::Unknown => "unknown",
    }
}

/// The cause, and the party that has most of it.
pub(crate) fn with_party(explained: &Explained, of: &CauseShare) -> String {
    let parties = explained.causes.iter().filter(|share| share.cause == of.cause && !share.detail.is_empty());
    match parties.max_by(|a, b| a.tail_share.total_cmp(&b.tail_share)) {
        // Of one party alone the share is the cause's.
        Some(one) if one.tail_share > 0.95 * of.tail_share => phrase(of.cause, &explained.named(&one.detail)),
        Some(one) => {
            let party = of.cause.party(&explained.named(&one.detail));
            format!("{} ({} {party})", noun(of.cause), percent(one.tail_share))
        }
        None => noun(of.cause).to_owned(),
    }
}

/// What a prediction is without: a cause by its word, or a lock with its holder.
pub(crate) fn without(against: &str, explained: &Explained) -> String {
    match Cause::ALL.into_iter().find(|cause| cause.word() == against) {
        Some(cause) => noun(cause).to_owned(),
        None => explained.named(against),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_thread_that_had_the_cpu_is_not_the_waker() {
        let wakeup = "waiting for a CPU after a wakeup";
        assert_eq!(phrase(Cause::Wakeup, "by hog/30"), format!("{wakeup} (while hog/30 ran)"));
        assert_eq!(phrase(Cause::Preempted, "by hog/30"), "preemption by hog/30");
        assert_eq!(phrase(Cause::Wakeup, "mostly by hog/30"), format!("{wakeup} (mostly by hog/30)"));
        assert_eq!(phrase(Cause::Wakeup, ""), "a CPU leaving idle after a wakeup");
        assert_eq!(phrase(Cause::Syscall, "recvfrom"), "system calls (recvfrom)");
        assert_eq!(phrase(Cause::Lock, "m (held by logger/7)"), "the lock `m` (held by logger/7)");
        assert_eq!(phrase(Cause::Lock, "cfg_lock"), "the lock `cfg_lock`");
        assert_eq!(phrase(Cause::Lock, "at 0x7f00 (held by logger/7)"), "the lock at 0x7f00 (held by logger/7)");
        assert_eq!(phrase(Cause::TimerSlack, "timer interrupt came late"), "a timer interrupt that came late");
        assert_eq!(phrase(Cause::TimerSlack, "in sleeper/12"), "timer slack (in sleeper/12)");
    }

    #[test]
    fn who_waits_for_marked_work_waits_behind_no_message() {
        let [of_work, of_messages] =
            ["ui/9 was busy with task poll", "ui/9 was busy"].map(|of| phrase(Cause::Queued, of));
        assert_eq!(of_work, "waiting for ui/9, which was busy with task poll");
        assert_eq!(of_messages, "waiting behind other messages (ui/9 was busy)");
    }
}
