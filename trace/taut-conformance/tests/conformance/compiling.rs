//! The header compiles without a warning wherever a robot's code may include it.

use std::{path::Path, process::Command};

use crate::build::{compile, scratch, source};

const C: [&str; 4] = ["-std=c11", "-std=gnu11", "-std=c17", "-std=c2x"];
const CPP: [&str; 3] = ["-std=c++17", "-std=gnu++17", "-std=c++20"];
/// Which warnings there are depends on the optimiser, and hardly on the standard.
const USUAL: &[&str] = &["-O2"];
const OTHERS: [&[&str]; 5] =
    [&["-O0"], &["-O2", "-fPIC"], &["-O2", "-fno-exceptions"], &["-O2", "-DTAUT_OFF"], &["-O0", "-DTAUT_OFF", "-fPIC"]];

#[test]
fn gcc_has_no_complaint() {
    matrix("gcc", &C, &[]);
    matrix("g++", &CPP, &["-x", "c++"]);
}

#[test]
fn clang_has_no_complaint() {
    matrix("clang", &C, &[]);
    matrix("clang++", &CPP, &["-x", "c++"]);
}

fn matrix(compiler: &str, standards: &[&str], language: &[&str]) {
    let object = scratch("matrix").join(format!("{compiler}.o"));
    let usual = standards.iter().map(|standard| (*standard, USUAL));
    for (standard, mode) in usual.chain(OTHERS.map(|mode| (standards[0], mode))) {
        let command = [&[compiler, standard], mode, language].concat();
        compile(&command, &["-c", &source("every_call.c"), "-o", object.to_str().unwrap()]);
    }
}

/// Includes before the header are the users' business, in any mode but strict C.
#[test]
fn the_order_of_includes_does_not_matter() {
    let folder = scratch("order");
    let file = folder.join("late.c");
    std::fs::write(&file, "#include <stdio.h>\n#include <pthread.h>\n#include \"taut.h\"\nvoid f(void);\nvoid f(void) { TAUT_STAMP(\"a\", 1); }\n").unwrap();
    let object = folder.join("late.o");
    for compiler in
        [&["gcc"][..], &["gcc", "-std=gnu11"], &["gcc", "-std=c11", "-D_GNU_SOURCE"], &["clang"], &["g++", "-x", "c++"]]
    {
        compile(compiler, &["-c", file.to_str().unwrap(), "-o", object.to_str().unwrap()]);
    }
}

/// Somebody may make a file between the look for its name and the naming.
#[test]
fn a_file_never_takes_the_name_of_another() {
    let folder = scratch("publish");
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let main = "#include \"taut.h\"\nint main(int n, char **v) { return n == 3 ? taut_publish_(v[1], v[2]) : 255; }\n";
    std::fs::write(at("publish.c"), main).unwrap();
    compile(&["gcc"], &[&at("publish.c"), "-o", &at("publish"), "-pthread", "-ldl"]);
    let publish = || Command::new(at("publish")).args([at("tmp"), at("named")]).status().unwrap().code();
    let _ = std::fs::remove_file(at("named"));
    std::fs::write(at("tmp"), "first").unwrap();
    assert_eq!(publish(), Some(0));
    std::fs::write(at("tmp"), "second").unwrap();
    assert_eq!(publish(), Some(libc::EEXIST));
    assert_eq!(std::fs::read_to_string(at("named")).unwrap(), "first");
}

/// The name comes first, as everywhere. Swapped they would name four bytes of text as a lock.
#[test]
fn a_lock_and_its_name_swapped_do_not_compile() {
    let folder = scratch("swapped");
    let compiles = |compiler: &[&str], call: &str| {
        let file = folder.join("swapped.c");
        let text = format!(
            "#include \"taut.h\"\n#include <semaphore.h>\n\
             static pthread_mutex_t mutex; static sem_t sem; static uint32_t word; static const char *name = \"sdk\";\n\
             void *f(void);\nvoid *f(void) {{ char made[4] = \"sdk\"; {call}; return made[0] ? &word : (void *)name; }}\n\
             sem_t *g(void);\nsem_t *g(void) {{ return &mutex.__data.__owner ? &sem : 0; }}\n"
        );
        std::fs::write(&file, text).unwrap();
        let include = format!("-I{}", crate::build::include().display());
        let arguments = [compiler, &["-w", "-fsyntax-only", &include, file.to_str().unwrap()]].concat();
        Command::new(arguments[0]).args(&arguments[1..]).output().unwrap().status.success()
    };
    for compiler in [&["gcc", "-std=gnu11"][..], &["clang"], &["g++", "-x", "c++"], &["clang++", "-x", "c++"]] {
        for mode in [&[][..], &["-DTAUT_OFF", "-include", "pthread.h"]] {
            let compiler = [compiler, mode].concat();
            for good in ["\"sdk\", &mutex", "name, &sem", "made, &word"] {
                assert!(compiles(&compiler, &format!("TAUT_NAME_LOCK({good})")), "{compiler:?} {good}");
            }
            for bad in ["&mutex, \"sdk\"", "&sem, name", "&word, made", "\"sdk\", \"lock\"", "name, made"] {
                assert!(!compiles(&compiler, &format!("TAUT_NAME_LOCK({bad})")), "{compiler:?} {bad}");
            }
        }
    }
}

/// A `char` is signed on x86 and unsigned on Arm, and compilers have switches for it.
#[test]
fn a_char_is_what_the_compiler_takes_it_for() {
    let folder = scratch("char");
    let at = |name: &str| folder.join(name).to_str().unwrap().to_owned();
    let main = "#include \"taut.h\"\ntypedef struct { char one, many[3]; } letters_t;\n\
                TAUT_DESCRIBE(letters_t, TAUT_FIELD(one, \"\"), TAUT_FIELD(many, \"\"), TAUT_ELEMENTS(many, char, \"\"));\n\
                int main(void) { int i; for (i = 0; i < 3; i++) puts(letters_t_taut_()->fields[i].kind); return 0; }\n";
    std::fs::write(at("char.c"), main).unwrap();
    for (switch, kind) in [("-fsigned-char", "int8"), ("-funsigned-char", "uint8")] {
        for compiler in [&["gcc", "-std=c11"][..], &["clang", "-std=c11"], &["g++", "-std=c++17", "-x", "c++"]] {
            compile(&[compiler, &[switch]].concat(), &[&at("char.c"), "-o", &at("char")]);
            let said = Command::new(at("char")).output().unwrap().stdout;
            assert_eq!(String::from_utf8(said).unwrap(), format!("{kind}\ntext\n{kind}\n"), "{compiler:?} {switch}");
        }
    }
}

/// With -DTAUT_OFF nothing is left: no symbol of ours, none that we would need.
#[test]
fn switched_off_it_leaves_nothing() {
    let symbols = |mode: &[&str], name: &str| {
        let object = scratch("off").join(name);
        compile(
            &[&["gcc", "-std=c11", "-O2"], mode].concat(),
            &["-c", &source("every_call.c"), "-o", object.to_str().unwrap()],
        );
        names_in(&object)
    };
    assert_eq!(symbols(&["-DTAUT_OFF"], "off.o"), ["main"]);
    assert!(symbols(&[], "on.o").iter().any(|name| name.starts_with("taut_process_")));
}

fn names_in(object: &Path) -> Vec<String> {
    let output = Command::new("nm").args(["--format=posix"]).arg(object).output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    text.lines().filter_map(|line| line.split(' ').next()).map(str::to_owned).collect()
}
