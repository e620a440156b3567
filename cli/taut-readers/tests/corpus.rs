//! The inputs that fuzzing found worth keeping, through every reader again, without a fuzzer.

use std::{collections::BTreeSet, path::PathBuf};

use taut_readers::{READERS, named};

fn corpus() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus")
}

fn names(folder: &std::path::Path) -> BTreeSet<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

#[test]
fn what_was_kept_still_reads() {
    for reader in READERS {
        let folder = corpus().join(reader.name);
        for name in names(&folder) {
            // Shown when it fails.
            eprintln!("{}/{name}", reader.name);
            (reader.read)(&std::fs::read(folder.join(name)).unwrap());
        }
    }
}

#[test]
fn a_reader_bears_nothing_and_a_little_of_everything() {
    for reader in READERS {
        eprintln!("{}", reader.name);
        for input in [&b""[..], b"\0", b"{", b"[[", b"\xff\xff\xff\xff\xff\xff\xff\xff", &[b'a'; 300]] {
            (reader.read)(input);
        }
    }
}

#[test]
fn every_corpus_is_some_readers_and_every_reader_has_one() {
    let kept: BTreeSet<String> = names(&corpus());
    assert!(kept.iter().all(|name| named(name).is_some()), "{kept:?}");
    let missing: Vec<&str> = READERS.iter().map(|reader| reader.name).filter(|name| !kept.contains(*name)).collect();
    assert!(missing.is_empty(), "without a seed: {missing:?}");
}

#[test]
fn the_page_on_security_names_every_reader() {
    let page = std::fs::read_to_string(corpus().join("../../SECURITY.md")).unwrap();
    for reader in READERS {
        assert!(page.contains(&format!("`{}`", reader.name)), "SECURITY.md says nothing of {}", reader.name);
    }
}

/// A reader that was never fuzzed stands there as such.
#[test]
fn the_results_of_fuzzing_have_a_row_for_every_reader() {
    let page = std::fs::read_to_string(corpus().join("../results.md")).unwrap();
    for reader in READERS {
        let row = format!("\n| `{}` | ", reader.name);
        assert_eq!(
            page.matches(&row).count(),
            1,
            "fuzz/results.md has no row of {}: write it anew by fuzz/run",
            reader.name
        );
    }
}

/// A hostile database can reach no code of SQLite that no bag needs (`.cargo/config.toml`).
#[test]
fn sqlite_has_no_modules_beyond_what_bags_need() {
    let database = rusqlite::Connection::open_in_memory().unwrap();
    let listed = |pragma: &str| {
        let mut statement = database.prepare(pragma).unwrap();
        let rows = statement.query_map([], |row| row.get::<_, String>(0)).unwrap();
        rows.collect::<Result<BTreeSet<String>, _>>().unwrap()
    };
    let modules = listed("PRAGMA module_list");
    let beyond = ["fts3", "fts4", "fts5", "rtree", "json_each", "json_tree", "dbstat"];
    let found: Vec<&str> = beyond.into_iter().filter(|name| modules.contains(*name)).collect();
    assert!(found.is_empty(), "{found:?} of {modules:?}");
    let options = listed("PRAGMA compile_options");
    assert!(options.contains("OMIT_LOAD_EXTENSION"), "{options:?}");
}

/// A hostile file can reach none of zstd's decoders of frames from before its version 1.0 (`.cargo/config.toml`).
#[test]
fn zstd_knows_no_frames_older_than_its_version_1() {
    for version in 0x25..=0x27 {
        let frame = [version, 0xb5, 0x2f, 0xfd, 0, 0, 0, 0, 0, 0, 0, 0];
        let error = zstd::bulk::decompress(&frame, 64).unwrap_err();
        assert_eq!(error.to_string(), "Unknown frame descriptor", "of version 0.{}", version - 0x20);
    }
}
