//! For the fuzzer: the bytes that the kernel hands over, as foreign bytes.

use super::{
    Depth,
    format::Format,
    perf_ring::record_at,
    sub_buffer::{PageLayout, read_page},
    tracepoints::{self, Decoder},
};

/// Symbol tables of a recorded program's files, and maps of addresses.
pub fn symbol_tables(bytes: &[u8]) {
    crate::profile::fuzz_symbols(bytes);
}

/// As every kernel so far has it.
const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
const EVENT: &str = "name: sys_enter\nID: 1\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
    \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\
    \tfield:long id;\toffset:8;\tsize:8;\tsigned:1;\n\tfield:unsigned long args[6];\toffset:16;\tsize:48;\tsigned:0;\n";

/// A page of ftrace, a ring of perf, and a description of either.
pub fn kernel_events(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let described = [Format::parse(EVENT), Format::parse(&text)];
    let layouts = [PageLayout::parse(HEADER_PAGE), PageLayout::parse(&text)];
    PageLayout::knows_event_header(&text);
    let mut decoder = Decoder::default();
    for format in described.iter().flatten() {
        for tracepoint in tracepoints::of_tree_raw(Depth::All).iter().chain(&tracepoints::of_tree_by_name(Depth::Sched))
        {
            decoder.add(tracepoint, format);
        }
    }
    for layout in layouts.iter().flatten() {
        let end = read_page(layout, bytes, |time_ns, record| {
            decoder.row(time_ns, record);
        });
        assert!(end.bytes <= bytes.len());
    }
    // A ring is made of words, and whatever lies in it begins at one; the first says where.
    let ring = &bytes[..bytes.len() / 8 * 8];
    let (mut at, mut whole) = (u64::from(bytes.first().copied().unwrap_or(0)) * 8, Vec::new());
    let until = at + ring.len() as u64;
    while let Some(record) = (!ring.is_empty()).then(|| record_at(ring, at, until, &mut whole)).flatten() {
        crate::profile::fuzzing(&record);
        at += record.body.len() as u64 + 8;
    }
    assert!(at <= until);
}
