//! Counts what each thread allocates. For tests and benchmarks only: a program that links this has its allocator.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
};

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

/// How often this thread has allocated so far, reallocations counted.
pub fn allocations() -> u64 {
    ALLOCATIONS.with(Cell::get)
}

/// How often it does while `run` runs.
pub fn allocations_in(run: impl FnOnce()) -> u64 {
    let before = allocations();
    run();
    allocations() - before
}

struct Counting;

// SAFETY: everything is left to the system's allocator; counting touches a thread-local without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_box_is_seen_and_nothing_is_nothing() {
        assert_eq!(allocations_in(|| drop(std::hint::black_box(Box::new(1)))), 1);
        assert_eq!(allocations_in(|| ()), 0);
        let mut grown = Vec::with_capacity(1);
        assert_eq!(allocations_in(|| grown.extend([1_u64; 64])), 1);
    }
}
