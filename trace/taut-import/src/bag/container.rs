//! What kind of file it is, by its first bytes.

use std::io::Read;

use crate::Error;

/// The first bytes of a zstd frame.
pub const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Container {
    Mcap,
    Sqlite,
    /// One of the others, compressed as a whole.
    Zstd,
}

impl Container {
    /// Reads a few bytes.
    ///
    /// # Errors
    /// It is something else; the error says what, and what to do with it.
    pub fn of(source: &mut impl Read) -> Result<Container, Error> {
        let mut bytes = Vec::new();
        source.take(16).read_to_end(&mut bytes)?;
        let instead = |sentence: &str| Err(Error::Instead(sentence.to_owned()));
        match bytes.as_slice() {
            [0x89, b'M', b'C', b'A', b'P', b'0', b'\r', b'\n', ..] => Ok(Container::Mcap),
            [0x89, b'M', b'C', b'A', b'P', version, ..] => {
                Err(Error::Unknown { at: 5, what: format!("the MCAP version {:?}", char::from(*version)) })
            }
            bytes if bytes.starts_with(b"SQLite format 3\0") => Ok(Container::Sqlite),
            bytes if bytes.starts_with(&ZSTD) => Ok(Container::Zstd),
            bytes if bytes.starts_with(b"#ROSBAG") => instead(
                "is a bag of ROS 1; make an MCAP file of it (`mcap convert IN.bag OUT.mcap`, or `rosbags-convert`)",
            ),
            bytes if bytes.starts_with(b"rosbag2_bagfile") => {
                instead("lists a bag's files; name the folder that it stands in")
            }
            _ => Err(Error::Foreign {
                kind: "bag",
                why: "it begins like neither MCAP nor SQLite3".to_owned(),
                writer: "rosbag2, or any writer of MCAP,",
            }),
        }
    }
}
