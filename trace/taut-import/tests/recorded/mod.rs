//! What a recording holds, for tests: stamps with the names of their points, and histograms.
#![allow(dead_code, reason = "each test file uses a part")]

use std::{
    collections::{BTreeMap, HashMap},
    path::Path,
};

use taut_import::{Error, Imported};
use taut_recording::{Ending, Histogram, Kind, Record};

/// All of a recording.
pub struct Recorded {
    pub rows: Vec<Row>,
    pub histograms: Vec<Histogram>,
    /// By tid.
    pub threads: HashMap<i32, String>,
    pub ending: Ending,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub kind: Kind,
    pub point: String,
    pub id: u64,
    pub time_ns: u64,
    pub value: u64,
    pub tid: i32,
}

/// (id, time) by point.
pub type Stamps = BTreeMap<String, Vec<(u64, u64)>>;

/// Reads a recording; it is whole.
pub fn recorded(run: &Path) -> Recorded {
    let (mut names, mut batches) = (HashMap::new(), Vec::new());
    let (mut histograms, mut threads) = (Vec::new(), HashMap::new());
    let contents = taut_recording::read(&std::fs::read(run).unwrap(), &mut |record| match record {
        Record::Name(name) => drop(names.insert(name.id, name.name)),
        Record::Thread(thread) => drop(threads.insert(thread.tid, thread.comm)),
        Record::Histogram(histogram) => histograms.push(histogram),
        Record::Stamps(batch) => batches.push(batch),
        _ => {}
    });
    let contents = contents.unwrap();
    assert_eq!(contents.damage, []);
    let mut rows = Vec::new();
    for batch in batches {
        rows.extend((0..batch.ticks.len()).map(|at| Row {
            kind: Kind::from_number(batch.kind[at]).unwrap(),
            point: names.get(&batch.point[at]).cloned().unwrap_or_default(),
            id: batch.message_id[at],
            time_ns: batch.ticks[at],
            value: batch.value[at],
            tid: batch.tid,
        }));
    }
    rows.sort_by_key(|row| (row.time_ns, row.id));
    let name = |id: u64| names.get(&(id as u32)).cloned().unwrap_or_default();
    for row in rows.iter_mut().filter(|row| row.kind == Kind::Outcome) {
        row.point = format!("{} {}", row.point, name(row.value));
    }
    Recorded { rows, histograms, threads, ending: contents.ending.unwrap() }
}

impl Recorded {
    pub fn stamps(&self) -> Stamps {
        let mut stamps = Stamps::new();
        for row in self.rows.iter().filter(|row| row.kind == Kind::Stamp) {
            stamps.entry(row.point.clone()).or_default().push((row.id, row.time_ns));
        }
        stamps.values_mut().for_each(|times| times.sort_unstable());
        stamps
    }

    /// "kind point@time" of all rows of these kinds, in order of time.
    pub fn told(&self, kinds: &[Kind]) -> Vec<String> {
        let wanted = self.rows.iter().filter(|row| kinds.contains(&row.kind));
        wanted.map(|row| format!("{:?} {}@{}", row.kind, row.point, row.time_ns)).collect()
    }
}

/// Runs an importer; on an error nothing is left.
pub fn imported(import: impl FnOnce(&Path) -> Result<Imported, Error>) -> Result<(Imported, Recorded), Error> {
    let folder = tempfile::tempdir().unwrap();
    let to = folder.path().join("run.mcap");
    let imported = import(&to);
    assert_eq!(imported.is_ok(), to.exists());
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        usize::from(imported.is_ok()),
        "nothing half-written"
    );
    let imported = imported?;
    let recorded = recorded(&to);
    assert_eq!(recorded.rows.len() as u64, imported.stamps);
    assert_eq!(recorded.histograms.len() as u64, imported.histograms);
    Ok((imported, recorded))
}

/// The one line that an error is.
pub fn refused(result: Result<(Imported, Recorded), Error>) -> String {
    let error = result.err().expect("is refused").to_string();
    assert_eq!(error.lines().count(), 1, "{error}");
    error
}

pub fn says(imported: &Imported, text: &str) -> bool {
    imported.notes.iter().any(|note| note.contains(text))
}
