//! The kernel's two ways of writing a set of CPUs: lists ("0-3,8") and masks ("ff,00000001").

/// More CPUs than any kernel is built for (NR_CPUS of x86 is 8192 at most): beyond it a text is not a CPU list.
const MOST: u32 = 8192;

/// The CPUs of a list, ascending; an empty text or "(null)" is no CPU. `None` where it is no list.
pub fn list(text: &str) -> Option<Vec<u32>> {
    let text = text.trim();
    if text.is_empty() || text == "(null)" {
        return Some(Vec::new());
    }
    let mut cpus = Vec::new();
    for part in text.split(',') {
        let (from, to) = match part.split_once('-') {
            Some((from, to)) => (from.trim().parse().ok()?, to.trim().parse().ok()?),
            None => {
                let one: u32 = part.trim().parse().ok()?;
                (one, one)
            }
        };
        if from > to || to >= MOST {
            return None;
        }
        cpus.extend(from..=to);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// The CPUs of a hexadecimal mask, whose groups of 32 are separated by commas.
pub(crate) fn mask(text: &str) -> Option<Vec<u32>> {
    let digits: String = text.trim().split(',').collect();
    if digits.is_empty() || digits.len() > MOST as usize / 4 {
        return None;
    }
    let mut cpus = Vec::new();
    for (i, digit) in digits.chars().rev().enumerate() {
        let bits = digit.to_digit(16)?;
        cpus.extend((0..4).filter(|bit| bits >> bit & 1 == 1).map(|bit| i as u32 * 4 + bit));
    }
    Some(cpus)
}

/// "0-3,8".
pub fn text(cpus: &[u32]) -> String {
    let mut parts: Vec<(u32, u32)> = Vec::new();
    for cpu in cpus {
        match parts.last_mut() {
            Some((_, to)) if *to + 1 == *cpu => *to = *cpu,
            _ => parts.push((*cpu, *cpu)),
        }
    }
    let part = |(from, to): &(u32, u32)| if from == to { from.to_string() } else { format!("{from}-{to}") };
    parts.iter().map(part).collect::<Vec<_>>().join(",")
}

/// As the kernel writes a mask: groups of eight digits.
pub(crate) fn mask_text(cpus: &[u32]) -> String {
    let groups = cpus.iter().max().map_or(1, |most| most / 32 + 1);
    let mut words = vec![0u32; groups as usize];
    for cpu in cpus {
        words[(cpu / 32) as usize] |= 1 << (cpu % 32);
    }
    let mut text = String::new();
    for (i, word) in words.iter().rev().enumerate() {
        text += &if i == 0 { format!("{word:x}") } else { format!(",{word:08x}") };
    }
    text
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn lists_and_masks_are_each_others_inverse(mut cpus in proptest::collection::vec(0..MOST, 0..40)) {
            cpus.sort_unstable();
            cpus.dedup();
            prop_assert_eq!(list(&text(&cpus)), Some(cpus.clone()));
            prop_assert_eq!(mask(&mask_text(&cpus)), Some(cpus));
        }

        #[test]
        fn any_text_is_read_or_refused(text in any::<String>(), numbers in "[0-9a-f,-]{0,30}") {
            for text in [&text, &numbers] {
                let _ = (list(text), mask(text));
            }
        }
    }

    #[test]
    fn lists_and_masks_are_read_as_the_kernel_writes_them() {
        assert_eq!(list("0-3,8\n"), Some(vec![0, 1, 2, 3, 8]));
        assert_eq!(list("(null)\n"), Some(vec![]));
        assert_eq!(list("managed_irq"), None);
        assert_eq!(list("0-4294967295"), None);
        assert_eq!(mask("00000001,00000003"), Some(vec![0, 1, 32]));
        assert_eq!(mask("x"), None);
    }

    #[test]
    fn what_is_written_reads_back() {
        let cpus = vec![0, 2, 3, 4, 40];
        assert_eq!(text(&cpus), "0,2-4,40");
        assert_eq!(list(&text(&cpus)), Some(cpus.clone()));
        assert_eq!(mask(&mask_text(&cpus)), Some(cpus));
        assert_eq!(mask_text(&[]), "0");
    }
}
