//! Bags: any MCAP file, and what rosbag2 records, in MCAP or SQLite3. Per topic a chain: when the message was stamped
//! (its header), published, and logged. Nothing needs to be instrumented for that.
//!
//! `container` tells what a file is; `folder` reads a rosbag2 folder's list of files; `mcap` and `sqlite` read one
//! file each; `schema` finds where a type has its stamp, `cdr` reads it; `topics` makes stamps of it all.

mod cdr;
mod container;
mod folder;
mod mcap;
mod schema;
mod sqlite;
mod topics;

use std::{fs::File, io::Read, path::Path};

use taut_recording::Output;

use crate::{Error, Imported};
use container::Container;
use topics::Topics;

/// Imports the bag at `path`, a file or a rosbag2 folder, into a recording at `to`. `progress` gets the bytes done.
///
/// # Errors
/// It is no bag, has parts that are not known, or the recording cannot be written. Then there is no recording.
pub fn import(path: &Path, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
    let mut topics = Topics::new(to);
    let files = if path.is_dir() { folder::files(path, &mut topics)? } else { vec![path.to_owned()] };
    let mut done = 0;
    for path in &files {
        let named = |error: Error| if files.len() > 1 { error.of_file(path) } else { error };
        file(path, to, &mut topics, &mut |bytes| progress(done + bytes)).map_err(named)?;
        done += std::fs::metadata(path)?.len();
    }
    topics.finish()
}

/// Imports an MCAP file from its bytes.
///
/// # Errors
/// As [`import`].
pub fn import_mcap(source: impl Read, to: &Path, progress: &mut dyn FnMut(u64)) -> Result<Imported, Error> {
    let mut topics = Topics::new(to);
    mcap::read(source, &mut topics, progress)?;
    topics.finish()
}

fn file(path: &Path, to: &Path, topics: &mut Topics, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
    match Container::of(&mut File::open(path)?)? {
        Container::Mcap => mcap::read(File::open(path)?, topics, progress),
        Container::Sqlite => sqlite::read(path, topics, progress),
        Container::Zstd => {
            let mut packed = zstd::Decoder::new(File::open(path)?)?;
            match Container::of(&mut packed)? {
                Container::Mcap => mcap::read(zstd::Decoder::new(File::open(path)?)?, topics, progress),
                Container::Sqlite => sqlite::read(unpacked(path, to)?.path(), topics, progress),
                Container::Zstd => Err(Error::Instead("is compressed twice; unpack it once with zstd -d".to_owned())),
            }
        }
    }
}

/// A database is read here and there, so one that is compressed is unpacked beside the recording until it is read. What never
/// takes its place goes.
fn unpacked(path: &Path, to: &Path) -> Result<Output, Error> {
    let mut name = to.as_os_str().to_owned();
    name.push(".db3");
    let output = Output::open(Path::new(&name))?;
    let mut into = File::create(output.path())?;
    std::io::copy(&mut zstd::Decoder::new(File::open(path)?)?, &mut into)?;
    Ok(output)
}
