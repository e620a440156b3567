//! A rosbag2 folder: `metadata.yaml` lists the files that the recording was split in.
//!
//! Of that file two plain entries are wanted, `version` and the list `relative_file_paths`; rosbag2 writes each on
//! lines of their own, in every version. A parser of all of YAML would be the larger part of this importer.

use std::{
    fs,
    path::{Path, PathBuf},
};

use super::topics::Topics;
use crate::Error;

const LIST: &str = "metadata.yaml";
/// The version of `metadata.yaml` that rosbag2 has had since 2024.
const NEWEST: u64 = 9;

/// The files of the bag, in the order of recording.
///
/// # Errors
/// The folder holds no bag.
pub fn files(folder: &Path, topics: &mut Topics) -> Result<Vec<PathBuf>, Error> {
    let Ok(text) = fs::read_to_string(folder.join(LIST)) else {
        let found = by_name(folder)?;
        if found.is_empty() {
            return Err(Error::Foreign {
                kind: "bag",
                why: format!("the folder has neither {LIST} nor a file ending in .mcap or .db3"),
                writer: "rosbag2",
            });
        }
        topics.note(format!(
            "the bag has no {LIST}: its recorder did not end; every .mcap and .db3 of the folder was read"
        ));
        return Ok(found);
    };
    let Listed { version, files } = listed(&text);
    topics.is_rosbag2 = true;
    if let Some(version) = version.filter(|version| *version > NEWEST) {
        topics.note(format!("{LIST} is of version {version}, newer than the {NEWEST} that this taut knows"));
    }
    if files.is_empty() {
        return Err(Error::Foreign { kind: "bag", why: format!("{LIST} lists no files"), writer: "rosbag2" });
    }
    let mut found = Vec::new();
    for name in files {
        // The first versions wrote the folder's name before the file's; a list leads nowhere else.
        let Some(name) = Path::new(&name).file_name() else { continue };
        let path = folder.join(name);
        if path.is_file() {
            found.push(path);
        } else {
            topics.damage(format!("{} is listed in {LIST} and missing", name.display()));
        }
    }
    if found.is_empty() {
        return Err(Error::Empty(format!("none of the files that {LIST} lists is there")));
    }
    Ok(found)
}

#[derive(Debug, Default, PartialEq)]
struct Listed {
    version: Option<u64>,
    files: Vec<String>,
}

fn listed(text: &str) -> Listed {
    let mut listed = Listed::default();
    let mut lines = text.lines().map(str::trim).peekable();
    while let Some(line) = lines.next() {
        if let Some(version) = line.strip_prefix("version:") {
            listed.version = listed.version.or(version.trim().parse().ok());
        } else if let Some(rest) = line.strip_prefix("relative_file_paths:") {
            // `[a, b]` on the line itself, or an item a line.
            let within = rest.trim().trim_start_matches('[').trim_end_matches(']');
            listed.files.extend(within.split(',').filter_map(scalar));
            while let Some(item) = lines.next_if(|line| line.starts_with("- ")) {
                listed.files.extend(scalar(&item[2..]));
            }
        }
    }
    listed
}

fn scalar(text: &str) -> Option<String> {
    let text = text.trim().trim_matches(['"', '\'']);
    (!text.is_empty()).then(|| text.to_owned())
}

/// What looks like a bag's files, `bag_10` behind `bag_9`.
fn by_name(folder: &Path) -> Result<Vec<PathBuf>, Error> {
    let is_of_bag = |name: &str| {
        let name = name.strip_suffix(".zstd").unwrap_or(name);
        name.ends_with(".mcap") || name.ends_with(".db3")
    };
    let mut names: Vec<String> = fs::read_dir(folder)?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| is_of_bag(name))
        .collect();
    names.sort_by_key(|name| (name.len(), name.clone()));
    Ok(names.into_iter().map(|name| folder.join(name)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_list_is_read_as_rosbag2_and_others_write_it() {
        let text = "rosbag2_bagfile_information:\n  version: 5\n  storage_identifier: mcap\n  relative_file_paths:\n    \
                    - run_0.mcap\n    - \"run_1.mcap\"\n  duration:\n    nanoseconds: 12\n  topics:\n    - a: b\n";
        let files = ["run_0.mcap", "run_1.mcap"].map(str::to_owned).to_vec();
        assert_eq!(listed(text), Listed { version: Some(5), files: files.clone() });
        assert_eq!(listed("version: 9\nrelative_file_paths: [run_0.mcap, 'run_1.mcap']\n").files, files);
        assert_eq!(listed("no list at all"), Listed::default());
    }

    #[test]
    fn files_of_a_bag_without_its_list_are_in_the_order_of_their_numbers() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["b_10.db3", "b_9.db3", "b_2.db3.zstd", "notes.txt"] {
            fs::write(folder.path().join(name), "").unwrap();
        }
        let names: Vec<String> = by_name(folder.path())
            .unwrap()
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["b_9.db3", "b_10.db3", "b_2.db3.zstd"]);
    }
}
