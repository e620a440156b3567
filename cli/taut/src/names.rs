//! How host names are found by a binary that has the C library in it.

use std::ffi::{CStr, c_char, c_int};

unsafe extern "C" {
    /// From glibc's `nss.h`.
    fn __nss_configure_lookup(database: *const c_char, sources: *const c_char) -> c_int;
}

/// By /etc/hosts and DNS, which are in the binary. Other sources of the machine's nsswitch.conf (mDNS, systemd-resolved) are
/// shared libraries for the machine's own C library, and this one would load both into itself.
pub fn by_files_and_dns() {
    const DATABASE: &CStr = c"hosts";
    const SOURCES: &CStr = c"files dns";
    // SAFETY: both are strings that live for ever, and no other thread is there yet to look a name up.
    unsafe { __nss_configure_lookup(DATABASE.as_ptr(), SOURCES.as_ptr()) };
}
