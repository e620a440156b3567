//! Which tracepoints a ROS 2 node calls, by the symbols of the libraries that it has loaded, beside those that the preloaded library
//! answers: what an unknown distribution, or one without tracepoints, leaves out is said.

use std::{collections::BTreeSet, fs, path::Path};

use object::{Object as _, ObjectSymbol as _};

use crate::{preload::Preload, proc};

const PREFIX: &str = "ros_trace_";
/// Not tracepoints, but questions about one, or about all.
const QUESTIONS: [&str; 4] = ["enabled_", "do_", "compile_status", "runtime_status"];
/// Which each release has from Humble on, and without which there is no chain.
const ALWAYS_THERE: [&str; 9] = [
    "callback_end",
    "callback_start",
    "rcl_init",
    "rcl_node_init",
    "rcl_publish",
    "rcl_publisher_init",
    "rcl_subscription_init",
    "rmw_publish",
    "rmw_take",
];
/// Libraries with tracepoints have a tenth of it.
const MOST_BYTES: u64 = 32 << 20;

/// What of a node is not recorded, after its name; nothing where all is, or where its libraries cannot be read.
pub fn not_recorded(pid: i32, preload: Preload) -> Option<String> {
    let calls = of_library(pid, "librcl.so", |symbol| symbol.is_undefined())?;
    if calls.is_empty() {
        return Some(
            "is a ROS 2 node whose librcl.so was built without tracepoints (TRACETOOLS_DISABLED), so its ROS 2 events are not recorded; \
             kernel events show its loops and wake chains; for chains take the packages of a distribution, or build ROS 2 without that \
             option"
                .to_owned(),
        );
    }
    let defined = of_library(pid, "libtracetools.so", |symbol| symbol.is_definition())?;
    let answered = tracepoints(preload.bytes, |symbol| symbol.is_definition())?;
    let unknown: Vec<&str> = defined.difference(&answered).map(String::as_str).collect();
    let lacking: Vec<&str> = ALWAYS_THERE.into_iter().filter(|name| !defined.contains(*name)).collect();
    let sentences = [
        (unknown, "has tracepoints that this taut does not know"),
        (lacking, "lacks tracepoints of each release from Humble on"),
    ];
    let said: Vec<String> = sentences
        .into_iter()
        .filter(|(names, _)| !names.is_empty())
        .map(|(names, what)| format!("{what}: {PREFIX}{}", names.join(&format!(", {PREFIX}"))))
        .collect();
    (!said.is_empty()).then(|| format!("is a node of a ROS 2 that {}; all else is recorded", said.join("; and ")))
}

/// Of a library that a process has loaded.
fn of_library(pid: i32, name: &str, is_it: fn(&object::Symbol<'_, '_>) -> bool) -> Option<BTreeSet<String>> {
    let path = format!("/proc/{pid}/root{}", proc::mapped(pid, name)?);
    let path = Path::new(&path);
    let length = fs::metadata(path).ok()?.len();
    if length > MOST_BYTES {
        return None;
    }
    tracepoints(&fs::read(path).ok()?, is_it)
}

/// Names of tracepoints among a library's symbols.
fn tracepoints(bytes: &[u8], is_it: fn(&object::Symbol<'_, '_>) -> bool) -> Option<BTreeSet<String>> {
    let file = object::File::parse(bytes).ok()?;
    let symbols = file.dynamic_symbols().filter(is_it);
    let names = symbols.filter_map(|symbol| symbol.name().ok()?.strip_prefix(PREFIX).map(str::to_owned));
    Some(names.filter(|name| !QUESTIONS.iter().any(|question| name.starts_with(question))).collect())
}
