//! Compression of the recorded messages, chunk by chunk, as a recording has them; and what reading a part costs.

use std::{
    cell::Cell,
    fs::File,
    io::{Read, Seek, SeekFrom},
    ops::ControlFlow,
    path::Path,
    rc::Rc,
    time::Instant,
};

use taut_recording::{Record, log::Log};

/// Uncompressed bytes of a chunk.
const CHUNK: usize = 1 << 19;

pub struct Sizes {
    /// Name, ratio, MB/s in, MB/s out.
    pub compressors: Vec<(&'static str, f64, f64, f64)>,
    pub file_bytes: u64,
    pub reads: Vec<Reading>,
}

/// What was read, bytes of the file, milliseconds.
pub type Reading = (&'static str, u64, f64);

type Compress = fn(&[u8]) -> Vec<u8>;
type Decompress = fn(&[u8], usize) -> Vec<u8>;

const COMPRESSORS: [(&str, Compress, Decompress); 7] = [
    ("none", |bytes| bytes.to_vec(), |bytes, _| bytes.to_vec()),
    ("zstd, level -4 (taut)", zstd_at::<-4>, of_zstd),
    ("zstd, level -1", zstd_at::<-1>, of_zstd),
    ("zstd, level 1", zstd_at::<1>, of_zstd),
    ("zstd, level 3", zstd_at::<3>, of_zstd),
    ("lz4 (lz4_flex)", lz4_flex::block::compress, |bytes, size| {
        lz4_flex::block::decompress(bytes, size).expect("it was compressed")
    }),
    (
        "snappy",
        |bytes| snap::raw::Encoder::new().compress_vec(bytes).expect("it compresses"),
        |bytes, _| snap::raw::Decoder::new().decompress_vec(bytes).expect("it was compressed"),
    ),
];

fn zstd_at<const LEVEL: i32>(bytes: &[u8]) -> Vec<u8> {
    zstd::bulk::compress(bytes, LEVEL).expect("it compresses")
}

fn of_zstd(bytes: &[u8], size: usize) -> Vec<u8> {
    zstd::bulk::decompress(bytes, size).expect("it was compressed")
}

pub fn measure(recording: &Path) -> Result<Sizes, Box<dyn std::error::Error>> {
    let mut all = Vec::new();
    taut_recording::read(&std::fs::read(recording)?, &mut |record| {
        if let Record::Message(message) = record {
            all.extend(message.data);
        }
    })?;
    let chunks: Vec<&[u8]> = all.chunks(CHUNK).collect();
    let compressors = COMPRESSORS.map(|(name, compress, decompress)| {
        let mb = |took: f64| all.len() as f64 / 1e6 / took;
        // The best of three: what the machine does besides only adds.
        let mut best = (f64::INFINITY, f64::INFINITY);
        let mut compressed: Vec<Vec<u8>> = Vec::new();
        for _ in 0..3 {
            let began = Instant::now();
            compressed = chunks.iter().map(|chunk| compress(chunk)).collect();
            best.0 = began.elapsed().as_secs_f64().min(best.0);
            let began = Instant::now();
            for (packed, chunk) in compressed.iter().zip(&chunks) {
                assert_eq!(decompress(packed, chunk.len()).len(), chunk.len());
            }
            best.1 = began.elapsed().as_secs_f64().min(best.1);
        }
        let packed: usize = compressed.iter().map(Vec::len).sum();
        (name, all.len() as f64 / packed as f64, mb(best.0), mb(best.1))
    });
    Ok(Sizes {
        compressors: compressors.into(),
        file_bytes: std::fs::metadata(recording)?.len(),
        reads: reads(recording)?,
    })
}

fn reads(recording: &Path) -> Result<Vec<Reading>, Box<dyn std::error::Error>> {
    let read = Rc::new(Cell::new(0));
    let mut done = Vec::new();
    let began = Instant::now();
    let mut log = Log::open(Counting { inner: File::open(recording)?, read: read.clone() })?;
    let mut note =
        |what, began: Instant, read: &Cell<u64>| done.push((what, read.take(), began.elapsed().as_secs_f64() * 1e3));
    note("open: which channels are there", began, &read);
    let channel = log.channels().into_iter().find(|c| c.topic == "/telemetry/all").ok_or("no telemetry")?.number;
    let middle = log.span().start.midpoint(log.span().end);
    let began = Instant::now();
    let mut all = |_: taut_recording::log::Message<'_>| ControlFlow::Continue(());
    log.read(channel, middle..middle + 100_000_000, &mut all)?;
    note("100 ms from the middle", began, &read);
    let began = Instant::now();
    log.state_at(middle, &mut |_| {})?;
    note("the state at a moment, all channels", began, &read);
    let began = Instant::now();
    log.read_back(channel, 0..u64::MAX, &mut |_| ControlFlow::Break(()))?;
    note("the last message", began, &read);
    Ok(done)
}

struct Counting {
    inner: File,
    read: Rc<Cell<u64>>,
}

impl Read for Counting {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(into)?;
        self.read.set(self.read.get() + n as u64);
        Ok(n)
    }
}

impl Seek for Counting {
    fn seek(&mut self, to: SeekFrom) -> std::io::Result<u64> {
        self.inner.seek(to)
    }
}
