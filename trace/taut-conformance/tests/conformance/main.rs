//! Every producer of `docs/reference/protocol.md` against the one consumer: the same script must give the same
//! stamps, exactly. C11, C++17 and Rust; C once more under AddressSanitizer and UBSan.

mod build;
mod compiling;
mod racing;
mod run;
mod scenarios;
