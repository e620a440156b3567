//! A recording analysed: the report as JSON, and its tables, which go to data frames through Arrow's C stream interface
//! without being copied.

use std::{
    collections::HashMap,
    fs::File,
    ops::ControlFlow,
    path::{Path, PathBuf},
    sync::Arc,
};

use arrow_array::{
    Array, ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int32Array, Int64Array, RecordBatch,
    RecordBatchIterator, StringArray, UInt64Array, ffi_stream::FFI_ArrowArrayStream, types::Int32Type,
};
use arrow_schema::{ArrowError, DataType, Field, Schema};
use memmap2::Mmap;
use pyo3::{
    exceptions::{PyKeyError, PyValueError},
    prelude::*,
    types::{PyBytes, PyCapsule},
};
use taut_analysis::{Analysis, Analyzer, Config, DeclaredChain, Row};
use taut_recording::{log::Log, ros2msg};
use taut_report::Named;
use taut_tables::{Tables, Values};

/// A declared chain: its name, its points, its deadline in nanoseconds.
type Declared = (String, Vec<String>, Option<u64>);

/// Reads and analyses the recording. Gives the report as JSON (docs/report.schema.json); messages, hops, causes and
/// thread states; and CLOCK_MONOTONIC at the recording's start.
#[pyfunction]
pub fn analyse(py: Python<'_>, path: PathBuf, chains: Vec<Declared>) -> PyResult<(String, Vec<Table>, u64)> {
    let name = path.display().to_string();
    // Others may run meanwhile: nothing of Python is touched.
    py.detach(|| -> Result<_, Failed> {
        let bytes = map(&path)?;
        let declared = |(name, points, deadline_ns)| DeclaredChain { name, points, deadline_ns };
        let mut config = Config { chains: chains.into_iter().map(declared).collect(), ..Config::default() };
        config.explain.worst = 0;
        let mut analyzer = Analyzer::new(config);
        let contents = taut_recording::read(&bytes, &mut |record| analyzer.record(&record)).map_err(said)?;
        let damage = contents.damage.iter().map(ToString::to_string).collect();
        let mut tables = Tables::default();
        let analysis = analyzer
            .finish_by_row(contents.info, contents.ending, damage, bytes.len() as u64, &mut |row: Row<'_>| {
                tables.take(row);
            })
            .map_err(said)?;
        let report = taut_report::json(&[Named { name: &name, analysis: &analysis }]).to_string();
        Ok((report, arrow(tables, &analysis).map_err(said)?, analysis.info.start_monotonic_ns))
    })
    .map_err(|failed| failed.error(&path))
}

/// More numbers than this in a message are no telemetry, but images and maps.
const MOST_NUMBERS: usize = 10_000;

/// A channel of plain messages as a table: when (CLOCK_MONOTONIC), and a column for each number, by its path.
#[pyfunction]
pub fn telemetry(py: Python<'_>, path: PathBuf, topic: &str) -> PyResult<Table> {
    py.detach(|| -> Result<Table, Failed> {
        let info = taut_recording::info(&map(&path)?).map_err(said)?;
        let mut log = Log::open(File::open(&path)?).map_err(said)?;
        let topics = || log.channels().iter().map(|c| c.topic.clone()).collect::<Vec<_>>().join(", ");
        let channel = log.channels().into_iter().find(|channel| channel.topic == topic).cloned();
        let channel =
            channel.ok_or_else(|| Failed::Missing(format!("no channel {topic:?}; there are {}", topics())))?;
        let schema = ros2msg::Schema::parse(&channel.schema).map_err(Failed::Said)?;
        let paths = schema.numbers(MOST_NUMBERS);
        if paths.len() == MOST_NUMBERS {
            let text = format!("{topic} has {MOST_NUMBERS} numbers a message or more; read it with the `mcap` package");
            return Err(Failed::Said(text));
        }
        // `joint[2].position` is /joint/2/position in JSON.
        let place = |path: &String| format!("/{}", path.replace(['[', '.'], "/").replace(']', ""));
        let places: Vec<String> = paths.iter().map(place).collect();
        let mut times: Vec<i64> = Vec::new();
        let mut columns: Vec<Vec<f64>> = vec![Vec::new(); paths.len()];
        let mut foreign = 0;
        log.read(channel.number, 0..u64::MAX, &mut |message| {
            match schema.decode(message.data) {
                None => foreign += 1,
                Some(value) => {
                    let since_start = message.log_time_ns.wrapping_sub(info.start_realtime_ns);
                    times.push(info.start_monotonic_ns.wrapping_add(since_start) as i64);
                    for (column, place) in columns.iter_mut().zip(&places) {
                        column.push(number(value.pointer(place)));
                    }
                }
            }
            ControlFlow::Continue(())
        })
        .map_err(said)?;
        if foreign > 0 {
            return Err(Failed::Said(format!(
                "{foreign} messages of {topic} are not of its schema; try `taut recover`"
            )));
        }
        let mut fields = vec![Field::new("time_ns", DataType::Int64, false)];
        fields.extend(paths.iter().map(|path| Field::new(path, DataType::Float64, false)));
        let mut arrays: Vec<ArrayRef> = vec![Arc::new(Int64Array::from(times))];
        arrays.extend(columns.into_iter().map(|column| Arc::new(Float64Array::from(column)) as ArrayRef));
        let batch = RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map_err(said)?;
        Ok(Table { name: channel.topic, batch })
    })
    .map_err(|failed| failed.error(&path))
}

/// NaN where there is no number, as where the robot wrote one.
fn number(value: Option<&serde_json::Value>) -> f64 {
    let value = value.and_then(|value| value.as_f64().or_else(|| value.as_bool().map(|yes| f64::from(u8::from(yes)))));
    value.unwrap_or(f64::NAN)
}

fn map(path: &Path) -> Result<Mmap, Failed> {
    let file = File::open(path)?;
    if file.metadata()?.len() == 0 {
        return Err(Failed::Said("is empty; record again, or name another file".to_owned()));
    }
    // SAFETY: the map is read-only, and every read of it is checked (lengths, and CRCs where the file has them) before use; a
    // writer that truncates the file under us could still raise SIGBUS, as with every mapped file.
    Ok(unsafe { Mmap::map(&file)? })
}

/// Why there is nothing to give.
enum Failed {
    Io(std::io::Error),
    Said(String),
    Missing(String),
}

impl Failed {
    fn error(self, path: &Path) -> PyErr {
        let of_file = |text: String| format!("{}: {text}", path.display());
        match self {
            Failed::Io(error) => error.into(),
            Failed::Said(text) => PyValueError::new_err(of_file(text)),
            Failed::Missing(text) => PyKeyError::new_err(of_file(text)),
        }
    }
}

impl From<std::io::Error> for Failed {
    fn from(error: std::io::Error) -> Failed {
        Failed::Io(error)
    }
}

fn said(error: impl std::fmt::Display) -> Failed {
    Failed::Said(error.to_string())
}

/// One table, as Arrow holds it.
#[pyclass(frozen)]
pub struct Table {
    #[pyo3(get)]
    name: String,
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    /// The columns' names, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.batch.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// What a column says, a sentence each.
    #[getter]
    fn descriptions(&self) -> HashMap<String, String> {
        let described = |field: &Arc<Field>| Some((field.name().clone(), field.metadata().get(DESCRIPTION)?.clone()));
        self.batch.schema().fields().iter().filter_map(described).collect()
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    /// Arrow's PyCapsule interface: what polars, pandas, pyarrow and DuckDB take tables by. Nothing is copied.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A wish, not an order: "the producer may ignore it".
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        let stream = FFI_ArrowArrayStream::new(Box::new(batches));
        PyCapsule::new_with_value(py, stream, c"arrow_array_stream")
    }

    /// A column for numpy: its dtype, its bytes, and of texts the words that the numbers mean; −1 is none.
    fn buffer<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Column<'py>> {
        let missing = || PyKeyError::new_err(format!("no column {name:?}; there are {}", self.columns().join(", ")));
        let column = self.batch.column_by_name(name).ok_or_else(missing)?.as_any();
        let mut words = None;
        let (kind, bytes): (_, Vec<u8>) = if let Some(all) = column.downcast_ref::<Int64Array>() {
            match all.null_count() {
                0 => ("i8", all.values().iter().flat_map(|v| v.to_ne_bytes()).collect()),
                // Where some are not known: as pandas does, NaN.
                _ => ("f8", all.iter().flat_map(|v| v.map_or(f64::NAN, |v| v as f64).to_ne_bytes()).collect()),
            }
        } else if let Some(all) = column.downcast_ref::<Float64Array>() {
            ("f8", all.values().iter().flat_map(|v| v.to_ne_bytes()).collect())
        } else if let Some(all) = column.downcast_ref::<UInt64Array>() {
            ("u8", all.values().iter().flat_map(|v| v.to_ne_bytes()).collect())
        } else if let Some(all) = column.downcast_ref::<Int32Array>() {
            ("i4", all.values().iter().flat_map(|v| v.to_ne_bytes()).collect())
        } else if let Some(all) = column.downcast_ref::<BooleanArray>() {
            ("?", all.values().iter().map(u8::from).collect())
        } else if let Some(all) = column.downcast_ref::<DictionaryArray<Int32Type>>() {
            let texts = all.values().as_any().downcast_ref::<StringArray>();
            words = texts.map(|texts| texts.iter().flatten().map(str::to_owned).collect());
            ("i4", all.keys().iter().flat_map(|key| key.unwrap_or(-1).to_ne_bytes()).collect())
        } else {
            return Err(missing());
        };
        Ok((kind, PyBytes::new(py, &bytes), words))
    }
}

/// dtype, bytes, words.
type Column<'py> = (&'static str, Bound<'py, PyBytes>, Option<Vec<String>>);

/// Key of a field's metadata.
const DESCRIPTION: &str = "description";

/// The tables' columns are moved, not copied.
fn arrow(tables: Tables, analysis: &Analysis) -> Result<Vec<Table>, ArrowError> {
    let about: HashMap<String, String> = [
        ("taut.version", analysis.info.taut_version.clone()),
        ("taut.start_monotonic_ns", analysis.info.start_monotonic_ns.to_string()),
        ("taut.start_realtime_ns", analysis.info.start_realtime_ns.to_string()),
    ]
    .map(|(key, value)| (key.to_owned(), value))
    .into();
    let table = |table: taut_tables::Table| -> Result<Table, ArrowError> {
        let mut fields = Vec::new();
        let mut arrays = Vec::new();
        for column in table.columns {
            let may_be_null = matches!(column.values, Values::Maybe(_) | Values::Text(_));
            let array = array(column.values)?;
            let description = HashMap::from([(DESCRIPTION.to_owned(), column.says.to_owned())]);
            fields.push(Field::new(column.name, array.data_type().clone(), may_be_null).with_metadata(description));
            arrays.push(array);
        }
        let schema = Schema::new_with_metadata(fields, about.clone());
        Ok(Table { name: table.name.to_owned(), batch: RecordBatch::try_new(Arc::new(schema), arrays)? })
    };
    tables.into_all().into_iter().map(table).collect()
}

fn array(values: Values) -> Result<ArrayRef, ArrowError> {
    let array: ArrayRef = match values {
        Values::Int(all) => Arc::new(Int64Array::from(all)),
        Values::Maybe(all) => Arc::new(Int64Array::from(all)),
        Values::Id(all) => Arc::new(UInt64Array::from(all)),
        Values::Number(all) => Arc::new(Int32Array::from(all)),
        Values::Flag(all) => Arc::new(BooleanArray::from(all)),
        Values::Day(all) => Arc::new(Date32Array::from(all)),
        Values::Text(texts) | Values::Word(texts) => {
            let words = Arc::new(StringArray::from(texts.words));
            Arc::new(DictionaryArray::<Int32Type>::try_new(Int32Array::from(texts.keys), words)?)
        }
    };
    Ok(array)
}
