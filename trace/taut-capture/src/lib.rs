//! The recorder: fills a recording with what a process tree stamps (`rings`) and with kernel events (`kernel`). It runs
//! in a separate process. Only this crate uses perf, ftrace and /proc.

mod cut;
mod end;
mod error;
mod files;
mod first_line;
mod flight;
mod info;
pub mod kernel;
mod listing;
mod objects;
mod output;
mod owner;
mod pace;
mod plain;
mod preload;
mod proc;
mod profile;
mod realtime;
mod record;
mod recorders;
pub mod rings;
pub mod ros_objects;
mod ros_tracepoints;
mod samples;
mod saved;
mod saves;
mod session;
mod shared;
mod signals;
mod sockets;
mod target;
pub mod telemetry;
mod thread_times;
mod threads;
mod time_namespace;
mod tree;

pub use end::End;
pub use error::Error;
pub use flight::{Asked, Flight};
pub use kernel::Depth;
#[doc(hidden)]
pub use kernel::fuzzing;
pub use owner::namespace_of;
pub use pace::Pace;
pub use preload::Preload;
pub use proc::runs as process_runs;
pub use profile::{Profiling, Scope};
pub use record::{FirstStamp, Options, Progress, Recorded, Started, give_way, preload_folder, record};
pub use recorders::{Recorder, recorder_of, recorders};
pub use saved::{Kept, NotSaved, Saved};
pub use saves::save_now;
pub use session::check_private;
pub use target::{Target, session_of};
pub use thread_times::ThreadTimes;
pub use tree::{Subreaper, heed_children};
