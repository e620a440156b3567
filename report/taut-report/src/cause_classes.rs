//! Causes as renderers see them: a letter, a word, a colour, and a texture. Causes of one colour are the thread's own time, what others
//! took, locks and partners, the way to the CPU, waits; textures tell them apart.

use taut_analysis::Cause;
use taut_document::{Class, Tone};

/// All of them, by their numbers.
pub(crate) fn classes() -> Vec<Class> {
    let class = |cause: Cause| {
        let (letter, colour, texture) = drawn(cause);
        let tone = if cause == Cause::Unknown { Tone::Quiet } else { Tone::Series(colour) };
        Class::new(letter, cause.word(), tone).textured(texture)
    };
    Cause::ALL.into_iter().map(class).collect()
}

/// The number of a cause by its word.
pub(crate) fn number(word: &str) -> usize {
    Cause::ALL.iter().position(|cause| cause.word() == word).unwrap_or(Cause::ALL.len() - 1)
}

/// A letter, so that lanes are read without colour; a colour; and a texture, none for the first of a colour.
fn drawn(cause: Cause) -> (char, u8, u8) {
    match cause {
        Cause::Cpu => ('c', 0, 0),
        Cause::Syscall => ('s', 0, 1),
        Cause::Preempted => ('P', 5, 0),
        Cause::Irq => ('i', 5, 1),
        Cause::Throttled => ('T', 5, 2),
        Cause::Hypervisor => ('H', 5, 3),
        Cause::Stopped => ('S', 5, 4),
        Cause::Lock => ('L', 3, 0),
        Cause::Gil => ('G', 3, 1),
        Cause::Partner => ('W', 3, 2),
        Cause::Wakeup => ('u', 1, 0),
        Cause::TimerSlack => ('Z', 1, 1),
        Cause::PageFault => ('F', 1, 2),
        Cause::Io => ('I', 4, 0),
        Cause::Executor => ('E', 4, 1),
        Cause::Queued => ('Q', 4, 2),
        Cause::Sleep => ('z', 4, 3),
        Cause::Network => ('N', 4, 4),
        Cause::Disk => ('D', 4, 5),
        Cause::Unknown => ('?', 0, 0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cause_has_its_place_and_a_letter_and_a_look_of_its_own() {
        let mut letters: Vec<char> = classes().iter().map(|class| class.letter).collect();
        letters.sort_unstable();
        letters.dedup();
        assert_eq!(letters.len(), Cause::ALL.len());
        let mut looks: Vec<String> =
            classes().iter().map(|class| format!("{:?} {}", class.tone, class.texture)).collect();
        looks.sort_unstable();
        looks.dedup();
        assert_eq!(looks.len(), Cause::ALL.len());
        assert!(Cause::ALL.into_iter().enumerate().all(|(at, cause)| cause as usize == at));
    }
}
