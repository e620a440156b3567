//! Reads the SQLite3 database that rosbag2 recorded to before it took MCAP: its topics, then its messages in the order
//! in which they were written, one at a time.

use std::{collections::HashMap, path::Path};

use rusqlite::{Connection, ErrorCode, OpenFlags};
use taut_recording::printable;

use super::{
    schema::{self, Format},
    topics::{Seen, Topics},
};
use crate::Error;

/// The version that rosbag2 has had since 2023, with the messages' definitions.
const NEWEST: i64 = 4;
/// How often progress is reported.
const TOLD_BYTES: u64 = 1 << 20;

/// Takes in a database.
///
/// # Errors
/// It is none of rosbag2's, or the recording cannot be written.
pub fn read(path: &Path, topics: &mut Topics, progress: &mut dyn FnMut(u64)) -> Result<(), Error> {
    let database =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX);
    let database = database.map_err(foreign)?;
    let numbers = describe(&database, topics)?;
    messages(&database, &numbers, topics, progress)
}

/// The topics, by their number in the database.
fn describe(database: &Connection, topics: &mut Topics) -> Result<HashMap<i64, usize>, Error> {
    for (table, needed) in [
        ("topics", &["id", "name", "type", "serialization_format"][..]),
        ("messages", &["topic_id", "timestamp", "data"]),
    ] {
        let columns = columns(database, table).map_err(foreign)?;
        if let Some(missing) = needed.iter().find(|name| !columns.iter().any(|column| column == *name)) {
            return Err(Error::Foreign {
                kind: "rosbag2 database",
                why: format!("it has no table {table:?} with a column {missing:?}"),
                writer: "rosbag2",
            });
        }
    }
    topics.is_rosbag2 = true;
    if !columns(database, "schema").map_err(foreign)?.is_empty()
        && let Ok(version) = database.query_row("SELECT schema_version FROM schema", [], |row| row.get::<_, i64>(0))
        && version > NEWEST
    {
        topics.note(format!(
            "the database is of version {version}, newer than the {NEWEST} that this taut knows; it was read by the names of its columns"
        ));
    }
    let mut definitions: HashMap<String, (String, String)> = HashMap::new();
    if !columns(database, "message_definitions").map_err(foreign)?.is_empty() {
        each(database, "SELECT topic_type, encoding, encoded_message_definition FROM message_definitions", |row| {
            definitions.insert(row.get(0)?, (row.get(1)?, row.get(2)?));
            Ok(())
        })
        .map_err(foreign)?;
    }
    let mut found: Vec<(i64, String, String, String)> = Vec::new();
    each(database, "SELECT id, name, type, serialization_format FROM topics ORDER BY id", |row| {
        found.push((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?));
        Ok(())
    })
    .map_err(foreign)?;
    let mut numbers = HashMap::new();
    for (id, name, type_name, format) in found {
        let (encoding, text) = definitions.get(&type_name).cloned().unwrap_or_default();
        let place = if format == "cdr" { schema::place(Format::Cdr, &type_name, &encoding, &text) } else { None };
        numbers.insert(id, topics.topic(&name, &type_name, place)?);
    }
    Ok(numbers)
}

fn messages(
    database: &Connection,
    numbers: &HashMap<i64, usize>,
    topics: &mut Topics,
    progress: &mut dyn FnMut(u64),
) -> Result<(), Error> {
    let columns = columns(database, "messages").map_err(foreign)?;
    let or_null = |name: &str| if columns.iter().any(|column| column == name) { name } else { "NULL" }.to_owned();
    let (sent, sequence) = (or_null("send_timestamp"), or_null("sequence_number"));
    // Without an order SQLite goes through the table as it lies, and keeps nothing.
    let mut rows = database
        .prepare(&format!("SELECT topic_id, timestamp, data, {sent}, {sequence} FROM messages"))
        .map_err(foreign)?;
    let mut rows = rows.query([]).map_err(foreign)?;
    let (mut n, mut bytes, mut told, mut astray) = (0_u64, 0, 0, 0_u64);
    loop {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            Err(error) => {
                topics.damage(format!(
                    "the database is damaged behind its message {n} ({}); what follows was left out",
                    said(&error)
                ));
                break;
            }
        };
        n += 1;
        let time = |column| row.get::<_, Option<i64>>(column).ok().flatten().and_then(|ns| u64::try_from(ns).ok());
        let topic = row.get::<_, i64>(0).ok().and_then(|id| numbers.get(&id));
        let data = row.get_ref(2).ok().and_then(|data| data.as_blob().ok());
        let (Some(topic), Some(log_ns), Some(data)) = (topic, time(1), data) else {
            astray += 1;
            continue;
        };
        let sequence = time(4).map_or(0, |sequence| sequence as u32);
        topics.message(*topic, Seen { log_ns, publish_ns: time(3), sequence, data })?;
        bytes += data.len() as u64;
        if bytes >= told + TOLD_BYTES {
            told = bytes;
            progress(told);
        }
    }
    if astray > 0 {
        topics.damage(format!(
            "{astray} messages have no known topic, no time since 1970 or no data; they were left out"
        ));
    }
    Ok(())
}

/// Of a table; a view has none: it may be a program without an end.
fn columns(database: &Connection, table: &str) -> rusqlite::Result<Vec<String>> {
    let mut columns = Vec::new();
    let query = format!(
        "SELECT c.name FROM sqlite_schema t, pragma_table_info(t.name) c WHERE t.type = 'table' AND t.name = '{table}'"
    );
    each(database, &query, |row| {
        columns.push(row.get(0)?);
        Ok(())
    })?;
    Ok(columns)
}

fn each(
    database: &Connection,
    query: &str,
    mut take: impl FnMut(&rusqlite::Row<'_>) -> rusqlite::Result<()>,
) -> rusqlite::Result<()> {
    let mut statement = database.prepare(query)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        take(row)?;
    }
    Ok(())
}

fn foreign(error: rusqlite::Error) -> Error {
    match error.sqlite_error_code() {
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied | ErrorCode::SystemIoFailure) => {
            Error::Read(std::io::Error::other(said(&error)))
        }
        _ => Error::Foreign { kind: "rosbag2 database", why: said(&error), writer: "rosbag2" },
    }
}

/// SQLite cites what the file says.
fn said(error: &rusqlite::Error) -> String {
    printable(error.to_string())
}
