//! Builds `libtaut_ros2.so` for the target with its C compiler; `src/lib.rs` carries the bytes.

use std::{env, fs, path::PathBuf};

/// The library is linked without any other: the C library of the process serves (`src/preload.c`).
const FLAGS: [&str; 18] = [
    "-std=gnu11",
    "-O2",
    "-g0",
    "-s",
    "-Wall",
    "-Wextra",
    "-fPIC",
    "-shared",
    "-nostdlib",
    "-fvisibility=hidden",
    // It is there when a process starts: its threads' state needs no call to be found.
    "-ftls-model=initial-exec",
    "-fno-stack-protector",
    "-U_FORTIFY_SOURCE",
    "-Wl,-soname,libtaut_ros2.so",
    "-Wl,--version-script=src/exports.map",
    // A function that an old C library lacks is found missing where it is called, if ever.
    "-Wl,-z,lazy",
    "-Wl,-z,noexecstack",
    "-Wl,--hash-style=both",
];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("Cargo says where to build"));
    for file in [
        "preload.c",
        "events.h",
        "objects.h",
        "real.h",
        "calls.h",
        "groups.h",
        "python.h",
        "services.h",
        "callbacks.py",
        "taut.h",
        "exports.map",
    ] {
        println!("cargo::rerun-if-changed=src/{file}");
    }
    let script = fs::read("src/callbacks.py").expect("src/callbacks.py");
    let numbers: Vec<String> = script.iter().map(u8::to_string).collect();
    fs::write(out.join("callbacks.inc"), numbers.join(",")).expect("a file in OUT_DIR");
    let library = out.join("libtaut_ros2.so");
    let compiler = cc::Build::new().opt_level(2).debug(false).get_compiler();
    let mut command = compiler.to_command();
    command.args(FLAGS).arg("-I").arg(&out).arg("src/preload.c").arg("-o").arg(&library);
    if env::var("CARGO_CFG_TARGET_ARCH").is_ok_and(|architecture| architecture == "aarch64") {
        // Atomics in line: the functions that gcc calls instead are in a library.
        command.arg("-mno-outline-atomics");
    }
    let status = command.status();
    match status {
        Ok(status) if status.success() => {}
        other => panic!(
            "libtaut_ros2.so cannot be built ({other:?}): a C compiler for the target is needed, e.g. gcc; {command:?}"
        ),
    }
    let built = fs::metadata(&library).map(|file| file.len()).unwrap_or(0);
    assert!(built > 0, "{} is empty", library.display());
}
