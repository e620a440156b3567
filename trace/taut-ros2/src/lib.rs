//! `libtaut_ros2.so`, which records unmodified ROS 2 nodes: as bytes, to be written where a node can load them.
//!
//! The library itself is C (`preload.c`), built for the target by `build.rs`. It writes the events of a node's
//! tracepoints into the session's rings; `taut-capture` reads them.

/// The library: a shared object for the machine that this taut was built for.
pub static PRELOAD: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/libtaut_ros2.so"));

/// Its file name.
pub const FILE_NAME: &str = "libtaut_ros2.so";
