//! The header and the wrapper as robots use them: built with cargo as the header says, compiled without a warning by gcc
//! and clang, run under the sanitizers and under valgrind; and the library takes nothing from the system that it should not need.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::OnceLock,
};

const WARNINGS: [&str; 6] = ["-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror"];
const SANITIZED: &[&str] = &["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

/// The library, built once, in a folder of its own: the outer cargo may hold the lock of the usual one.
fn library() -> &'static Path {
    static BUILT: OnceLock<PathBuf> = OnceLock::new();
    BUILT.get_or_init(|| {
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c-library");
        let output = Command::new(env!("CARGO"))
            .args(["rustc", "-p", "taut-guard", "--features", "c", "--crate-type", "staticlib,cdylib", "--locked"])
            .env("CARGO_TARGET_DIR", &target)
            .current_dir(root())
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        target.join("debug")
    })
}

/// Compiles, links and runs; tells what went wrong.
fn run(compiler: &str, standard: &str, flags: &[&str], source: &str, is_shared: bool) {
    let program = build(compiler, standard, flags, source, is_shared);
    let output = Command::new(&program).output().unwrap();
    let program = program.display();
    assert!(output.status.success(), "{program}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// Compiles and links.
fn build(compiler: &str, standard: &str, flags: &[&str], source: &str, is_shared: bool) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
    std::fs::create_dir_all(&folder).unwrap();
    let program =
        folder.join(format!("{compiler}{standard}{}{is_shared}", flags.concat()).replace(['=', ',', '+'], "_"));
    let mut build = Command::new(compiler);
    build.arg(standard).args(flags).args(WARNINGS);
    build.arg(format!("-I{}", root().join("include").display()));
    build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/c").join(source)).arg("-o").arg(&program);
    if is_shared {
        build.arg(format!("-L{}", library().display())).arg("-ltaut_guard");
        build.arg(format!("-Wl,-rpath,{}", library().display()));
    } else {
        build.arg(library().join("libtaut_guard.a"));
    }
    build.args(["-lpthread", "-ldl", "-lm"]);
    let output = build.output().unwrap_or_else(|error| {
        panic!("{compiler}: {error}; install it: apt-get install -y gcc g++ clang libclang-rt-dev")
    });
    assert!(output.status.success(), "{build:?}\n{}", String::from_utf8_lossy(&output.stderr));
    program
}

#[test]
fn c_compiles_without_a_warning_and_runs() {
    for compiler in ["gcc", "clang"] {
        run(compiler, "-std=c11", &["-O2"], "guard.c", compiler == "gcc");
    }
}

#[test]
fn cpp_compiles_without_a_warning_and_runs() {
    for compiler in ["g++", "clang++"] {
        run(compiler, "-std=c++17", &["-O2"], "guard.cpp", compiler == "g++");
    }
}

#[test]
fn the_sanitizers_find_nothing() {
    run("gcc", "-std=c11", SANITIZED, "guard.c", false);
    run("clang", "-std=c11", SANITIZED, "guard.c", false);
    run("clang++", "-std=c++17", SANITIZED, "guard.cpp", false);
}

/// The library itself is not sanitized, and valgrind sees all of it: no octet is read that was not written, none beyond its
/// storage.
#[test]
fn valgrind_finds_nothing() {
    let program = build("gcc", "-std=c11", &["-O1", "-g"], "guard.c", false);
    let valgrind = ["--quiet", "--error-exitcode=99", "--leak-check=full", "--track-origins=yes"];
    let output = Command::new("valgrind").args(valgrind).arg(&program).output();
    let output = output.unwrap_or_else(|error| panic!("valgrind: {error}; install it: apt-get install -y valgrind"));
    assert!(output.status.success(), "{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
}

/// The guide's C++ example is a program that compiles and runs.
#[test]
fn the_guides_example_compiles_and_runs() {
    let guide = std::fs::read_to_string(root().join("docs/reference/guard.md")).unwrap();
    let example = guide.split("```cpp\n").nth(1).unwrap().split("```").next().unwrap();
    let source = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guide.cpp");
    std::fs::write(&source, example).unwrap();
    run("g++", "-std=c++17", &["-O0"], source.to_str().unwrap(), false);
}

/// What the header declares, the library has, and the other way round.
#[test]
fn header_and_library_name_the_same_functions() {
    let header = std::fs::read_to_string(root().join("include/taut_guard.h")).unwrap();
    // A declaration begins its line with a type; its name stands before the parenthesis.
    let prototypes = header.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_lowercase()));
    let mut declared: Vec<&str> = prototypes
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("taut_"))
        .collect();
    declared.sort_unstable();
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "--format=posix"])
        .arg(library().join("libtaut_guard.so"))
        .output()
        .unwrap();
    let listed = String::from_utf8(output.stdout).unwrap();
    let mut exported: Vec<&str> =
        listed.lines().filter_map(|line| line.split(' ').next()).filter(|name| name.starts_with("taut_")).collect();
    exported.sort_unstable();
    assert_eq!(declared, exported);
}
