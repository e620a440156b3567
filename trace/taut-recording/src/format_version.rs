//! The format's number.

/// Version of the format; raised when an old reader would misread a new file.
pub const FORMAT_VERSION: u32 = 1;
