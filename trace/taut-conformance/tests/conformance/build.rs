//! Builds the C and C++ producers, once each, into the test's scratch folder.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

/// Warnings that users' builds turn on; none may come from the header.
pub const WARNINGS: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"];

/// A program that does what a script says.
#[derive(Clone, Debug)]
pub struct Producer {
    pub program: PathBuf,
    /// For the words that only C and C++ have.
    pub plugin: Option<PathBuf>,
}

pub fn rust() -> Producer {
    Producer { program: env!("CARGO_BIN_EXE_taut-conformance-producer").into(), plugin: None }
}

pub fn c() -> Producer {
    static BUILT: OnceLock<Producer> = OnceLock::new();
    BUILT.get_or_init(|| producer("c11", &["gcc", "-std=c11", "-O2"])).clone()
}

pub fn cpp() -> Producer {
    static BUILT: OnceLock<Producer> = OnceLock::new();
    BUILT.get_or_init(|| producer("cpp17", &["g++", "-std=c++17", "-O2", "-fno-exceptions", "-x", "c++"])).clone()
}

pub fn sanitized() -> Producer {
    static BUILT: OnceLock<Producer> = OnceLock::new();
    let flags = ["clang", "-std=c11", "-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];
    BUILT.get_or_init(|| producer("sanitized", &flags)).clone()
}

fn producer(name: &str, compiler: &[&str]) -> Producer {
    let folder = scratch(name);
    let (linked, plugin, program) = (folder.join("liblinked.so"), folder.join("plugin.so"), folder.join("producer"));
    compile(compiler, &["-fPIC", "-shared", &source("linked.c"), "-o", text(&linked)]);
    compile(compiler, &["-fPIC", "-shared", &source("plugin.c"), "-o", text(&plugin)]);
    let rpath = format!("-Wl,-rpath,{}", folder.display());
    let (producer, elsewhere, search) =
        (source("producer.c"), source("elsewhere.c"), format!("-L{}", folder.display()));
    compile(compiler, &[&producer, &elsewhere, &search, "-llinked", &rpath, "-ldl", "-o", text(&program)]);
    Producer { program, plugin: Some(plugin) }
}

/// Compiles with all warnings as errors, and says how it failed.
pub fn compile(compiler: &[&str], arguments: &[&str]) {
    let mut command = Command::new(compiler[0]);
    command
        .args(&compiler[1..])
        .args(WARNINGS)
        .arg(format!("-I{}", include().display()))
        .args(arguments)
        .arg("-pthread");
    let output = command.output().unwrap_or_else(|error| {
        panic!("{}: {error}; install it: apt-get install -y gcc g++ clang libclang-rt-dev", compiler[0]);
    });
    assert!(output.status.success(), "{command:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

pub fn include() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../include")
}

pub fn source(name: &str) -> String {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("c").join(name).display().to_string()
}

/// An own folder for what one build makes.
pub fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}
