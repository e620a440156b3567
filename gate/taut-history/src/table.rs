//! One row for each figure of each trial, and the same as Parquet.

use std::{
    io::{self, Read},
    panic,
    sync::Arc,
};

use bytes::{Buf, Bytes, buf};
use parquet::{
    data_type::{ByteArray, ByteArrayType, DoubleType},
    errors::ParquetError,
    file::{
        properties::WriterProperties,
        reader::{ChunkReader, FileReader, Length, SerializedFileReader},
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    record::RowAccessor,
    schema::parser::parse_message_type,
};
use taut_gate::{Side, Statistic, Subject, Trial};

use crate::thrift;

/// Of the file: the length of the footer, and "PAR1".
const TAIL: usize = 8;

/// What docs/reference/gate.md documents; columns may be added, never renamed.
const SCHEMA: &str = "message history {
    REQUIRED DOUBLE time_unix_s;
    REQUIRED BYTE_ARRAY revision (UTF8);
    REQUIRED BYTE_ARRAY machine (UTF8);
    REQUIRED BYTE_ARRAY chain (UTF8);
    REQUIRED BYTE_ARRAY hop (UTF8);
    REQUIRED BYTE_ARRAY figure (UTF8);
    REQUIRED DOUBLE value;
}";

/// A file that is no history.
#[derive(Debug, thiserror::Error)]
#[error("is no history of taut gate: {0}")]
pub struct Error(#[from] ParquetError);

/// One figure of one trial.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// When the trial began, seconds since 1970.
    pub time_unix_s: f64,
    /// What ran.
    pub revision: String,
    /// The kind of machine: number of CPUs, CPU, kernel.
    pub machine: String,
    /// The chain.
    pub chain: String,
    /// "from → to"; "" for the whole way.
    pub hop: String,
    /// "own.p50", "total.p99", "missed" …
    pub figure: String,
    /// In ns, or as a share.
    pub value: f64,
}

/// The rows of a revision's trials; void ones have none.
pub fn rows(revision: &str, trials: &[Trial]) -> Vec<Row> {
    trials.iter().filter(|trial| trial.void.is_none()).flat_map(|trial| of_trial(revision, trial)).collect()
}

fn of_trial(revision: &str, trial: &Trial) -> Vec<Row> {
    let host = &trial.host;
    let row = |hop: String, figure: String, value: f64| Row {
        time_unix_s: trial.started_unix_s,
        revision: revision.to_owned(),
        machine: format!("{} × {}, Linux {}", host.cpus, host.cpu, host.kernel),
        chain: trial.chain.clone(),
        hop,
        figure,
        value,
    };
    let mut rows = Vec::new();
    for side in [Side::Total, Side::Own, Side::Work, Side::Machine] {
        for statistic in Statistic::ALL {
            let figure = || format!("{}.{}", side.word(), statistic.word());
            let whole = Subject::Chain { side, statistic }.number(trial);
            rows.extend(whole.map(|value| row(String::new(), figure(), value)));
            for (at, hop) in trial.hops.iter().enumerate() {
                let value = Subject::Hop { hop: at, side, statistic }.number(trial);
                rows.extend(value.map(|value| row(format!("{} → {}", hop.from, hop.to), figure(), value)));
            }
        }
    }
    for (figure, value) in [("missed", trial.missed), ("dropped", Some(trial.dropped))] {
        rows.extend(value.map(|value| row(String::new(), figure.into(), value)));
    }
    rows
}

/// Rows as a Parquet file.
pub fn write(rows: &[Row]) -> Result<Vec<u8>, Error> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let mut file = SerializedFileWriter::new(Vec::new(), schema, Arc::new(WriterProperties::default()))?;
    let mut group = file.next_row_group()?;
    numbers(&mut group, rows, |row| row.time_unix_s)?;
    for column in [
        (|row| &row.revision) as fn(&Row) -> &String,
        |row| &row.machine,
        |row| &row.chain,
        |row| &row.hop,
        |row| &row.figure,
    ] {
        texts(&mut group, rows, column)?;
    }
    numbers(&mut group, rows, |row| row.value)?;
    group.close()?;
    Ok(file.into_inner()?)
}

type Group<'a> = SerializedRowGroupWriter<'a, Vec<u8>>;

fn numbers(group: &mut Group<'_>, rows: &[Row], of: fn(&Row) -> f64) -> Result<(), ParquetError> {
    let values: Vec<f64> = rows.iter().map(of).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<DoubleType>().write_batch(&values, None, None)?;
        column.close()?;
    }
    Ok(())
}

fn texts(group: &mut Group<'_>, rows: &[Row], of: fn(&Row) -> &String) -> Result<(), ParquetError> {
    let values: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(of(row).as_str())).collect();
    if let Some(mut column) = group.next_column()? {
        column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
        column.close()?;
    }
    Ok(())
}

/// The rows of a Parquet file.
///
/// # Errors
/// It is no such file, or damaged.
pub fn read(bytes: Vec<u8>) -> Result<Vec<Row>, Error> {
    if !has_sound_footer(&bytes) {
        return Err(ParquetError::General("its footer is damaged".into()).into());
    }
    // The crate parquet (60) panics at some values in a footer that is well formed: then its own words are on stderr, and this is the error.
    panic::catch_unwind(|| decode(bytes))
        .unwrap_or_else(|_| Err(ParquetError::General("its footer is damaged".into()).into()))
}

fn has_sound_footer(bytes: &[u8]) -> bool {
    footer_start(bytes).is_some_and(|from| thrift::is_sound(&bytes[from..bytes.len() - TAIL]))
}

/// Where the footer begins; `None` where the file is too short for the one that it names.
fn footer_start(bytes: &[u8]) -> Option<usize> {
    let (rest, tail) = bytes.split_last_chunk::<TAIL>()?;
    let length = u32::from_le_bytes([tail[0], tail[1], tail[2], tail[3]]) as usize;
    rest.len().checked_sub(length)
}

fn decode(bytes: Vec<u8>) -> Result<Vec<Row>, Error> {
    let file = SerializedFileReader::new(Whole(bytes.into()))?;
    let schema = parse_message_type(SCHEMA)?;
    let mut rows = Vec::new();
    for row in file.get_row_iter(Some(schema))? {
        let row = row?;
        let text = |at: usize| row.get_string(at).cloned();
        rows.push(Row {
            time_unix_s: row.get_double(0)?,
            revision: text(1)?,
            machine: text(2)?,
            chain: text(3)?,
            hop: text(4)?,
            figure: text(5)?,
            value: row.get_double(6)?,
        });
    }
    Ok(rows)
}

/// A file in memory, whose end is an error to whoever reads on: the crate parquet (60) skips what a header says there is,
/// takes an end for having skipped it, and would so go through lists of 2³¹ elements, and lists of those.
struct Whole(Bytes);

impl Length for Whole {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }
}

impl ChunkReader for Whole {
    type T = Strict;

    fn get_read(&self, start: u64) -> Result<Strict, ParquetError> {
        let start = usize::try_from(start).ok().filter(|start| *start <= self.0.len());
        let start = start.ok_or_else(|| ParquetError::EOF("a page begins behind its end".into()))?;
        // What is read from before the footer is a page's header; the footer has been looked at.
        if footer_start(&self.0).is_some_and(|footer| start < footer) && !thrift::is_sound(&self.0[start..]) {
            return Err(ParquetError::General("a page's header is damaged".into()));
        }
        Ok(Strict(self.0.slice(start..).reader()))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        self.0.get_bytes(start, length)
    }
}

struct Strict(buf::Reader<Bytes>);

impl Read for Strict {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        match self.0.read(out)? {
            0 if !out.is_empty() => Err(io::ErrorKind::UnexpectedEof.into()),
            length => Ok(length),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(revision: &str, value: f64) -> Row {
        Row {
            time_unix_s: 1.5,
            revision: revision.into(),
            machine: "2 × a CPU, Linux 6".into(),
            chain: "arm".into(),
            hop: "a → b".into(),
            figure: "own.p50".into(),
            value,
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let rows: Vec<Row> = (0..1000).map(|at| row(&format!("r{at}"), f64::from(at) * 0.5)).collect();
        assert_eq!(read(write(&rows).unwrap()).unwrap(), rows);
        assert_eq!(read(write(&[]).unwrap()).unwrap(), []);
        // Footers of many lengths: their length's first byte must not be taken for a page's header.
        for length in 1..300 {
            let rows = [row(&"r".repeat(length), 1.0)];
            assert_eq!(read(write(&rows).unwrap()).unwrap(), rows, "{length}");
        }
    }

    #[test]
    fn another_file_is_refused_and_does_not_panic() {
        for bytes in [&b""[..], b"PAR1", b"hello, this is no such file at all PAR1"] {
            let error = read(bytes.to_vec()).unwrap_err().to_string();
            assert!(error.starts_with("is no history of taut gate"), "{error}");
        }
    }

    /// Neither panics nor goes on for ever, without a thread or a hook: any byte of a file, and of its footer twice, becomes any other.
    #[test]
    fn damaged_files_are_refused_or_read_in_time() {
        let sound = write(&(0..9).map(|at| row(&format!("r{at}"), 1.0)).collect::<Vec<_>>()).unwrap();
        let mut state = 1u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize
        };
        let footer =
            sound.len() - TAIL - u32::from_le_bytes(sound[sound.len() - TAIL..][..4].try_into().unwrap()) as usize;
        for round in 0..4000 {
            let mut bytes = sound.clone();
            let from = if round % 2 == 0 { 0 } else { footer };
            for _ in 0..=round % 3 {
                let at = from + random() % (bytes.len() - from);
                bytes[at] = random() as u8;
            }
            let _ = read(bytes);
        }
    }
}
