//! What an arm did, recorded by its controller: the servo's every step and every command it took. The truth that
//! tracking, smoothness and a guard's trips are held against.
//!
//! Two files beside each other, of little-endian records: `ARM.steps`, 1 kHz: time i64 (ns of the simulated clock), six joint
//! angles f64 (deg); `ARM.commands`: time i64, setpoint id i64, cmdT f64 (s), six target angles f64 (deg).

use std::{
    fs::File,
    io::{BufWriter, Write},
    path::Path,
};

use anyhow::{Context, Result};

use crate::arms::Joints;

/// A file's buffer: a write is due once in seconds, not at each step.
const BUFFER_BYTES: usize = 1 << 16;

pub struct Journal {
    steps: BufWriter<File>,
    commands: BufWriter<File>,
}

impl Journal {
    pub fn open(folder: &Path, arm: &str) -> Result<Journal> {
        let open = |kind: &str| {
            let path = folder.join(format!("{arm}.{kind}"));
            let file = File::create(&path).with_context(|| path.display().to_string())?;
            anyhow::Ok(BufWriter::with_capacity(BUFFER_BYTES, file))
        };
        Ok(Journal { steps: open("steps")?, commands: open("commands")? })
    }

    pub fn step(&mut self, t_ns: u64, joints_deg: &Joints) -> std::io::Result<()> {
        self.steps.write_all(&t_ns.to_le_bytes())?;
        put(&mut self.steps, joints_deg)
    }

    pub fn command(&mut self, t_ns: u64, id: i64, period_s: f64, joints_deg: &Joints) -> std::io::Result<()> {
        self.commands.write_all(&t_ns.to_le_bytes())?;
        self.commands.write_all(&id.to_le_bytes())?;
        put(&mut self.commands, &[period_s])?;
        put(&mut self.commands, joints_deg)
    }

    pub fn close(mut self) -> std::io::Result<()> {
        self.steps.flush()?;
        self.commands.flush()
    }
}

fn put(file: &mut BufWriter<File>, numbers: &[f64]) -> std::io::Result<()> {
    numbers.iter().try_for_each(|number| file.write_all(&number.to_le_bytes()))
}
