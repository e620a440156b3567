//! Causes as renderers see them: a letter, a word, a colour. Causes of one colour are the thread's own time, what others took, locks,
//! the way to the CPU, waits.

use taut_analysis::Cause;
use taut_document::{Class, Tone};

/// All of them, by their numbers.
pub(crate) fn classes() -> Vec<Class> {
    let class = |cause: Cause| Class::new(letter(cause), cause.word(), tone(cause));
    Cause::ALL.into_iter().map(class).collect()
}

/// The number of a cause by its word.
pub(crate) fn number(word: &str) -> usize {
    Cause::ALL.iter().position(|cause| cause.word() == word).unwrap_or(Cause::ALL.len() - 1)
}

fn tone(cause: Cause) -> Tone {
    use Cause::*;
    match cause {
        Cpu | Syscall => Tone::Series(0),
        Preempted | Throttled | Stopped | Hypervisor | Irq => Tone::Series(5),
        Lock | Gil => Tone::Series(3),
        Wakeup | TimerSlack | PageFault => Tone::Series(1),
        Io | Network | Sleep | Disk | Queued | Executor => Tone::Series(4),
        Unknown => Tone::Quiet,
    }
}

/// One letter, so that lanes are read without colour.
fn letter(cause: Cause) -> char {
    match cause {
        Cause::Cpu => 'c',
        Cause::Syscall => 's',
        Cause::PageFault => 'F',
        Cause::Irq => 'i',
        Cause::Preempted => 'P',
        Cause::Wakeup => 'u',
        Cause::Throttled => 'T',
        Cause::Lock => 'L',
        Cause::Gil => 'G',
        Cause::Io => 'I',
        Cause::Sleep => 'z',
        Cause::TimerSlack => 'Z',
        Cause::Queued => 'Q',
        Cause::Executor => 'E',
        Cause::Network => 'N',
        Cause::Disk => 'D',
        Cause::Stopped => 'S',
        Cause::Hypervisor => 'H',
        Cause::Unknown => '?',
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_place_and_a_letter_of_its_own() {
        let mut letters: Vec<char> = classes().iter().map(|class| class.letter).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), Cause::ALL.len());
        assert!(Cause::ALL.into_iter().enumerate().all(|(at, cause)| cause as usize == at));
    }
}
