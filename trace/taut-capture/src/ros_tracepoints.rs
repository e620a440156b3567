//! Which tracepoints a ROS 2 node calls, by the symbols of the libraries that it has loaded, beside those that the preloaded library
//! answers: what an unknown distribution, or one without tracepoints, leaves out is reported.

use std::{
    collections::{BTreeSet, HashSet},
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use object::{Object as _, ObjectSymbol as _};

use crate::{preload::Preload, proc::Mapped};

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

/// Libraries whose symbols were read already: the nodes of one installation have the same, and one of them speaks for all.
#[derive(Default)]
pub struct Installations(HashSet<[Option<(u64, u64)>; 2]>);

impl Installations {
    /// What of a node is not recorded, after its name; nothing where all is, where its libraries cannot be read, or where another node
    /// with them was looked at before.
    pub fn not_recorded(&mut self, pid: i32, mapped: &Mapped, preload: Preload) -> Option<String> {
        let path = |name: &str| Some(PathBuf::from(format!("/proc/{pid}/root{}", mapped.path(name)?)));
        let libraries = ["librcl.so", "libtracetools.so"].map(path);
        let identity = |path: &Option<PathBuf>| fs::metadata(path.as_ref()?).ok().map(|file| (file.dev(), file.ino()));
        let [rcl, tracetools] = &libraries;
        let is_new = self.0.insert(libraries.each_ref().map(identity));
        is_new.then(|| not_recorded(rcl.as_ref()?, tracetools.as_deref(), preload))?
    }
}

fn not_recorded(rcl: &Path, tracetools: Option<&Path>, preload: Preload) -> Option<String> {
    let calls = of_library(rcl, |symbol| symbol.is_undefined())?;
    if calls.is_empty() {
        return Some(
            "is a ROS 2 node with a librcl.so built without tracepoints (TRACETOOLS_DISABLED), so its ROS 2 events are not recorded; \
             kernel events show its loops and wake chains; for chains take the packages of a distribution, or build ROS 2 without that \
             option"
                .to_owned(),
        );
    }
    let defined = of_library(tracetools?, |symbol| symbol.is_definition())?;
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
fn of_library(path: &Path, is_it: fn(&object::Symbol<'_, '_>) -> bool) -> Option<BTreeSet<String>> {
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
