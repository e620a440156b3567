//! Where things lie in a ring file: `docs/reference/protocol.md`, version 1, as types.

use core::sync::atomic::{AtomicU32, AtomicU64};

pub const MAGIC: [u8; 8] = *b"TAUTRING";
pub const VERSION: u32 = 1;
pub const SLOT_COUNT: u32 = 64;
pub const NAME_CAPACITY: u32 = 2048;
pub const NAME_BYTES: usize = 120;
pub const NAMES_OFFSET: usize = 4096;
pub const SLOTS_OFFSET: usize = NAMES_OFFSET + NAME_CAPACITY as usize * size_of::<NameEntry>();
pub const RINGS_OFFSET: usize = SLOTS_OFFSET + SLOT_COUNT as usize * size_of::<Slot>();
pub const DEFAULT_RING_RECORDS: u32 = 131_072;

/// States of a slot.
pub const FREE: u32 = 0;
pub const OPEN: u32 = 1;
pub const CLOSED: u32 = 2;

#[repr(C)]
pub struct Header {
    pub magic: [u8; 8],
    pub version: u32,
    pub counter: u32,
    pub pid: u32,
    pub slot_count: u32,
    pub ring_records: u32,
    pub name_capacity: u32,
    pub start_time: u64,
    pub pid_namespace: u64,
    pub names_offset: u64,
    pub slots_offset: u64,
    pub rings_offset: u64,
    pub ring_stride: u64,
    _pad0: [u8; 48],
    pub name_count: AtomicU32,
    _pad1: [u8; 60],
    pub lost_without_slot: AtomicU64,
    pub lost_names: AtomicU64,
    pub lost_telemetry: AtomicU64,
}

#[repr(C)]
pub struct NameEntry {
    pub length: AtomicU32,
    _reserved: u32,
    pub bytes: core::cell::UnsafeCell<[u8; NAME_BYTES]>,
}

#[repr(C)]
pub struct Slot {
    pub state: AtomicU32,
    pub tid: AtomicU32,
    pub generation: AtomicU32,
    _pad0: u32,
    pub opened_ns: AtomicU64,
    _pad1: [u8; 40],
    pub head: AtomicU64,
    pub lost: AtomicU64,
    _pad2: [u8; 48],
    pub tail: AtomicU64,
    _pad3: [u8; 120],
}

/// One record of a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C, align(32))]
pub struct Record {
    pub ticks: u64,
    pub message_id: u64,
    pub point: u32,
    pub kind: u32,
    pub value: u64,
}

const _: () = {
    assert!(core::mem::offset_of!(Header, name_count) == 128);
    assert!(core::mem::offset_of!(Header, lost_without_slot) == 192);
    assert!(core::mem::offset_of!(Slot, head) == 64);
    assert!(core::mem::offset_of!(Slot, tail) == 128);
    assert!(size_of::<Slot>() == 256 && size_of::<NameEntry>() == 128 && size_of::<Record>() == 32);
    assert!(RINGS_OFFSET.is_multiple_of(4096));
};
