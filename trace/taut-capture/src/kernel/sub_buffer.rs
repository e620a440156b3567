//! One page of ftrace's ring buffer, as `trace_pipe_raw` gives it: compressed times and raw records.
//! The layout is the kernel's include/linux/ring_buffer.h; sizes come from `events/header_page`.

use super::format::Field;

/// Bits of the commit word above the size (kernel/trace/ring_buffer.c: RB_MISSED_EVENTS, RB_MISSED_STORED).
const MISSED_EVENTS: u64 = 1 << 31;
const MISSED_STORED: u64 = 1 << 30;
const COMMIT_SIZE: u64 = (1 << 27) - 1;

/// `type_len` values that are no lengths.
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that an event header carries besides its own word.
const DELTA_BITS: u32 = 27;
/// An absolute time stamp holds 59 bits; the page's time holds the others.
const ABSOLUTE_BITS: u64 = (1 << 59) - 1;

/// Where things lie in a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageLayout {
    commit: Field,
    data_offset: usize,
    /// Bytes of a whole page, header included: what one read must ask for.
    pub page_size: usize,
}

impl PageLayout {
    /// Reads `events/header_page`; `None` when a field is missing or has an unknown size.
    pub fn parse(header_page: &str) -> Option<PageLayout> {
        let field = |name: &str| header_page.lines().filter_map(Field::parse).find(|field| field.name == name);
        let (time, commit, data) = (field("timestamp")?, field("commit")?, field("data")?);
        let known = (time.offset, time.size) == (0, 8) && matches!(commit.size, 4 | 8);
        let page_size = data.offset.checked_add(data.size)?;
        (known && page_size <= 1 << 24).then_some(PageLayout { commit, data_offset: data.offset, page_size })
    }

    /// Whether `events/header_event` describes the event headers that this parser reads.
    pub fn knows_event_header(header_event: &str) -> bool {
        let says = |name: &str, value: &str| {
            header_event.lines().any(|line| {
                line.split_once([':', '=']).is_some_and(|(key, _)| key.trim() == name) && line.contains(value)
            })
        };
        says("type_len", " 5 bits")
            && says("time_delta", " 27 bits")
            && says("array", " 32 bits")
            && says("data max type_len", " 28")
    }
}

/// What a page says besides its events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageEnd {
    /// Bytes of events, headers of events included.
    pub bytes: usize,
    /// Events lost just before this page: at least 1 when only the flag is set.
    pub missed: u64,
    /// The page did not make sense to its end.
    pub torn: bool,
}

/// Calls `on_record` with the time in nanoseconds and the raw record of every event of the page.
pub fn read_page(layout: &PageLayout, page: &[u8], mut on_record: impl FnMut(u64, &[u8])) -> PageEnd {
    let (Some(mut time_ns), Some(commit)) = (word64(page, 0), layout.commit.read(page)) else {
        return PageEnd { torn: true, ..PageEnd::default() };
    };
    let commit = commit as u64;
    let size = (commit & COMMIT_SIZE) as usize;
    let Some(data) = layout.data_offset.checked_add(size).and_then(|end| page.get(layout.data_offset..end)) else {
        return PageEnd { torn: true, ..PageEnd::default() };
    };
    let stored = || word64(page, layout.data_offset + size);
    let missed = match (commit & MISSED_EVENTS != 0, commit & MISSED_STORED != 0) {
        (false, _) => 0,
        (true, true) => stored().unwrap_or(1).max(1),
        (true, false) => 1,
    };
    let torn = read_events(data, &mut time_ns, &mut on_record).is_none();
    PageEnd { bytes: size, missed, torn }
}

/// `None` when an event does not fit.
fn read_events(data: &[u8], time_ns: &mut u64, on_record: &mut impl FnMut(u64, &[u8])) -> Option<()> {
    let page_time_ns = *time_ns;
    let mut at = 0;
    while at < data.len() {
        let header = word32(data, at)?;
        let (type_len, delta) = (header & 31, u64::from(header >> 5));
        at += 4;
        match type_len {
            PADDING if delta == 0 => return Some(()),
            PADDING => {
                // A discarded event keeps its place and, unless its delta is 1, its share of time.
                if delta != 1 {
                    *time_ns = time_ns.wrapping_add(delta);
                }
                at = at.checked_add(word32(data, at)? as usize)?;
            }
            TIME_EXTEND => {
                *time_ns = time_ns.wrapping_add(delta | u64::from(word32(data, at)?) << DELTA_BITS);
                at += 4;
            }
            TIME_STAMP => {
                let low = delta | u64::from(word32(data, at)?) << DELTA_BITS;
                *time_ns = low & ABSOLUTE_BITS | page_time_ns & !ABSOLUTE_BITS;
                at += 4;
            }
            _ => {
                *time_ns = time_ns.wrapping_add(delta);
                let (start, length) = match type_len {
                    0 => (at + 4, (word32(data, at)? as usize).checked_sub(4)?),
                    words => (at, words as usize * 4),
                };
                let record = data.get(start..start.checked_add(length)?)?;
                on_record(*time_ns, record);
                // A long record's length counts its own word, and the ring pads to four bytes.
                at = start + length.next_multiple_of(4);
            }
        }
    }
    Some(())
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(bytes.get(at..at.checked_add(4)?)?.try_into().ok()?))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(bytes.get(at..at.checked_add(8)?)?.try_into().ok()?))
}

#[cfg(test)]
pub mod tests {
    use proptest::prelude::*;

    use super::*;

    pub const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
        \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
        \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
        \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";

    fn page(time_ns: u64, commit_flags: u64, data: &[u8], after: &[u8]) -> Vec<u8> {
        let mut page = time_ns.to_le_bytes().to_vec();
        page.extend((data.len() as u64 | commit_flags).to_le_bytes());
        page.extend_from_slice(data);
        page.extend_from_slice(after);
        page.resize(4096, 0);
        page
    }

    fn words(words: &[u32]) -> Vec<u8> {
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn events(page: &[u8]) -> (Vec<(u64, usize)>, PageEnd) {
        let mut seen = Vec::new();
        let end =
            read_page(&PageLayout::parse(HEADER_PAGE).unwrap(), page, |time, record| seen.push((time, record.len())));
        (seen, end)
    }

    #[test]
    fn times_add_up_over_short_long_and_extended_events() {
        let data = words(&[
            2 | 7 << 5,
            0,
            0, // 8 bytes, 7 ns later
            30 | 5 << 5,
            2, // 5 + 2 << 27 ns
            11 << 5,
            12,
            0,
            0, // long form: length word 12 holds 8 bytes of data
            31 | 9 << 5,
            3, // absolute: 9 + 3 << 27
            1,
            0,
        ]);
        let (seen, end) = events(&page(1000, 0, &data, &[]));
        let extended = 1007 + 5 + (2 << 27) + 11;
        assert_eq!(seen, [(1007, 8), (extended, 8), (9 + (3 << 27), 4)]);
        assert_eq!(end, PageEnd { bytes: data.len(), missed: 0, torn: false });
    }

    #[test]
    fn discarded_events_are_skipped_and_null_padding_ends_the_page() {
        let data = words(&[29 | 4 << 5, 8, 0, 1 | 2 << 5, 0, 29, 0, 1, 0]);
        let (seen, end) = events(&page(0, 0, &data, &[]));
        assert_eq!(seen, [(6, 4)]);
        assert!(!end.torn);
    }

    #[test]
    fn missed_events_are_counted_from_the_flag_and_from_the_stored_number() {
        let data = words(&[1, 0]);
        assert_eq!(events(&page(0, MISSED_EVENTS, &data, &[])).1.missed, 1);
        assert_eq!(events(&page(0, MISSED_EVENTS | MISSED_STORED, &data, &77u64.to_le_bytes())).1.missed, 77);
    }

    #[test]
    fn a_cut_page_gives_what_is_whole_and_says_so() {
        let whole = page(0, 0, &words(&[1 | 1 << 5, 0, 20 | 1 << 5, 0]), &[]);
        let (seen, end) = events(&whole);
        assert_eq!((seen.len(), end.torn), (1, true));
        assert!(events(&whole[..20]).1.torn);
        assert!(events(&[]).1.torn);
    }

    #[test]
    fn the_headers_of_this_kernel_generation_are_known() {
        assert_eq!(PageLayout::parse(HEADER_PAGE).unwrap().page_size, 4096);
        let header = "# compressed entry header\n\ttype_len    :    5 bits\n\ttime_delta  :   27 bits\n\tarray       :   32 bits\n\n\
            \tpadding     : type == 29\n\ttime_extend : type == 30\n\ttime_stamp : type == 31\n\tdata max type_len  == 28\n";
        assert!(PageLayout::knows_event_header(header));
        assert!(!PageLayout::knows_event_header(&header.replace("27 bits", "26 bits")));
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..5000), size in 0u16..5000) {
            let mut bytes = bytes;
            if bytes.len() >= 16 {
                // A plausible commit word, so that the events are read and not just the header refused.
                bytes[8..16].copy_from_slice(&u64::from(size).to_le_bytes());
            }
            events(&bytes);
        }
    }
}
