//! A table as a Parquet file, row group by row group, so that no more than one of them is in memory.

use std::{io::Write, sync::Arc};

use parquet::{
    basic::Compression,
    data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int32Type, Int64Type},
    errors::ParquetError,
    file::{
        metadata::KeyValue,
        properties::WriterProperties,
        writer::{SerializedFileWriter, SerializedRowGroupWriter},
    },
    schema::parser::parse_message_type,
};

use crate::{Column, Table, Texts, Values};

/// A row group of this length takes some megabytes.
pub const ROWS_A_GROUP: usize = 1 << 17;

/// A file that cannot be written.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct Error(#[from] ParquetError);

/// A table's file being written.
pub struct File<W: Write + Send>(SerializedFileWriter<W>);

impl<W: Write + Send> File<W> {
    /// Begins the file of a table of these columns; `metadata` are keys and values about the whole.
    ///
    /// # Errors
    /// `out` cannot be written to.
    pub fn start(out: W, table: &Table, metadata: &[(&str, String)]) -> Result<File<W>, Error> {
        let fields: Vec<String> = table.columns.iter().map(Column::parquet_field).collect();
        let schema = parse_message_type(&format!("message {} {{ {} }}", table.name, fields.join(" ")))?;
        let metadata = metadata.iter().map(|(key, value)| KeyValue::new((*key).to_owned(), value.clone())).collect();
        let properties = WriterProperties::builder()
            .set_compression(Compression::SNAPPY)
            .set_key_value_metadata(Some(metadata))
            .build();
        Ok(File(SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties))?))
    }

    /// Writes the table's rows as a group, and forgets them.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn group(&mut self, table: &mut Table) -> Result<(), Error> {
        if table.rows() == 0 {
            return Ok(());
        }
        let mut group = self.0.next_row_group()?;
        table.columns.iter().try_for_each(|column| write(&mut group, &column.values))?;
        group.close()?;
        table.clear();
        Ok(())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn finish(self) -> Result<W, Error> {
        Ok(self.0.into_inner()?)
    }
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn write<W: Write + Send>(group: &mut Group<'_, W>, values: &Values) -> Result<(), ParquetError> {
    match values {
        Values::Int(all) => column::<Int64Type, W>(group, all, None),
        Values::Maybe(all) => {
            let known: Vec<i64> = all.iter().flatten().copied().collect();
            column::<Int64Type, W>(group, &known, Some(&levels(all)))
        }
        Values::Id(all) => {
            // The same bits: the schema says that they have no sign.
            let bits: Vec<i64> = all.iter().map(|id| *id as i64).collect();
            column::<Int64Type, W>(group, &bits, None)
        }
        Values::Number(all) | Values::Day(all) => column::<Int32Type, W>(group, all, None),
        Values::Flag(all) => column::<BoolType, W>(group, all, None),
        Values::Text(texts) => column::<ByteArrayType, W>(group, &words(texts), Some(&levels(&texts.keys))),
        Values::Word(texts) => column::<ByteArrayType, W>(group, &words(texts), None),
    }
}

/// Of the rows that have one.
fn words(texts: &Texts) -> Vec<ByteArray> {
    let words: Vec<ByteArray> = texts.words.iter().map(|word| ByteArray::from(word.as_str())).collect();
    texts.keys.iter().flatten().map(|key| words[*key as usize].clone()).collect()
}

/// 1 where there is a value.
fn levels<T>(all: &[Option<T>]) -> Vec<i16> {
    all.iter().map(|one| i16::from(one.is_some())).collect()
}

fn column<T: DataType, W: Write + Send>(
    group: &mut Group<'_, W>,
    values: &[T::T],
    levels: Option<&[i16]>,
) -> Result<(), ParquetError> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, levels, None)?;
        column.close()?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::{
        file::reader::{FileReader, SerializedFileReader},
        record::RowAccessor,
    };

    use super::*;
    use crate::{MessageRow, Row, Tables};

    #[test]
    fn what_is_written_in_groups_is_read_in_order() {
        let mut tables = Tables::default();
        let mut file = File::start(Vec::new(), &tables.all()[0], &[("taut.version", "1".to_owned())]).unwrap();
        for nth in 0..10u64 {
            let way_ns = (nth % 3 != 0).then_some(nth);
            let outcome = if nth == 5 { "" } else { "applied" };
            let id = u64::MAX - nth;
            let row = Row::Message(MessageRow { chain: "arm", nth, id, way_ns, outcome, ..MessageRow::default() });
            let (_, table) = tables.take(row);
            if table.rows() == 4 {
                file.group(table).unwrap();
                assert_eq!(table.rows(), 0);
            }
        }
        let (_, last) = tables.take(Row::Message(MessageRow { nth: 10, ..MessageRow::default() }));
        file.group(last).unwrap();
        let bytes = file.finish().unwrap();
        let file = SerializedFileReader::new(bytes::Bytes::from(bytes)).unwrap();
        assert_eq!(file.num_row_groups(), 3);
        let metadata = file.metadata().file_metadata().key_value_metadata().unwrap();
        assert_eq!(metadata[0].value.as_deref(), Some("1"));
        let rows: Vec<_> = file.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 11);
        for (nth, row) in rows.iter().take(10).enumerate() {
            assert_eq!(row.get_int(1).unwrap(), nth as i32);
            assert_eq!(row.get_ulong(2).unwrap(), u64::MAX - nth as u64);
            assert_eq!(row.get_long(5).ok(), (nth % 3 != 0).then_some(nth as i64));
            assert_eq!(row.get_string(6).is_ok(), nth != 5);
        }
    }
}
