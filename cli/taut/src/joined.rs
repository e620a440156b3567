//! Recordings of several hosts → one stream of records, as `taut report --join` and `taut merge` read them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Error, Result, anyhow, bail};
use memmap2::Mmap;
use taut_analysis::{Analysis, Analyzer, Config, DeclaredChain};
use taut_points::hosts::{ClocksFrom, Host, Joined, MOST_HOSTS, Renumber, Survey, host_names, join, joined_info};
use taut_recording::{Contents, Ending, Info, Lost, Record, Shown};
use taut_report::hosts_sentences;

use crate::{input, losses::Losses};

/// Recordings on one clock; no file is changed.
pub struct JoinedRecordings {
    recordings: Vec<Surveyed>,
    names: Vec<String>,
    /// What is known of the clocks.
    pub joined: Joined,
}

/// A host's recording.
struct Surveyed {
    bytes: Mmap,
    survey: Survey,
    contents: Contents,
    lost: Vec<Lost>,
}

/// Options of everything that joins.
#[derive(clap::Args, Debug)]
pub struct JoinArgs {
    /// Names of the hosts, in the recordings' order [default: as recorded].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Take clock offsets from messages, or trust CLOCK_REALTIME [default: messages, except within one boot].
    #[arg(long, value_name = "SOURCE")]
    pub clocks: Option<Clocks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Clocks {
    Messages,
    Realtime,
}

impl Clocks {
    /// The same for those who align.
    pub fn source(self) -> ClocksFrom {
        match self {
            Clocks::Messages => ClocksFrom::Messages,
            Clocks::Realtime => ClocksFrom::Realtime,
        }
    }
}

impl JoinedRecordings {
    /// Reads all as far as the alignment needs it. Declared chains tell the order of their points.
    pub fn read(paths: &[PathBuf], args: &JoinArgs, config: &Config) -> Result<JoinedRecordings> {
        if !(2..=MOST_HOSTS).contains(&paths.len()) {
            bail!("joining takes 2 to {MOST_HOSTS} recordings, one of each host; {} given", paths.len());
        }
        let earlier = |at: usize| paths[..at].iter().find(|path| input::is_one_file(path, &paths[at]));
        if let Some(path) = (1..paths.len()).find_map(earlier) {
            bail!("{}: is given twice; name the other host's recording", path.shown());
        }
        let recordings = paths.iter().map(|path| surveyed(path)).collect::<Result<Vec<Surveyed>>>()?;
        for (at, recording) in recordings.iter().enumerate() {
            if let Some(same) = recordings[..at].iter().position(|one| one.bytes[..] == recording.bytes[..]) {
                let (a, b) = (paths[same].shown(), paths[at].shown());
                bail!("{a} and {b}: have the same content; name the other host's recording");
            }
        }
        if let Some(at) = recordings.iter().position(|of| !of.contents.info.hosts().is_empty()) {
            bail!("{}: is a joined recording; name the hosts' own recordings", paths[at].shown());
        }
        let infos: Vec<&Info> = recordings.iter().map(|of| &of.contents.info).collect();
        let names = host_names(&infos, &args.hosts).map_err(Error::msg)?;
        let of_chain = |chain: &DeclaredChain| chain.points.clone();
        let chains: Vec<Vec<String>> = config.chains.iter().map(of_chain).collect();
        let joined = join(&hosts(&recordings, &names), &chains, args.clocks.map(Clocks::source));
        let mut joined = joined.map_err(|(of, why)| {
            let files: Vec<String> = of.iter().map(|host| paths[*host].shown()).collect();
            match files.as_slice() {
                [alone] => anyhow!("{alone}: {why}"),
                several => anyhow!("{}: {why}", several.join(" and ")),
            }
        })?;
        if args.clocks == Some(Clocks::Realtime) {
            joined.by_realtime();
        }
        Ok(JoinedRecordings { recordings, names, joined })
    }

    /// Every record of all, on the first host's clock.
    pub fn records(&self, sink: &mut dyn FnMut(Record)) -> Result<()> {
        let hosts = hosts(&self.recordings, &self.names);
        for (number, recording) in (0..).zip(&self.recordings) {
            let renumber = Renumber::new(number, &hosts, &self.joined);
            taut_recording::read(&recording.bytes, &mut |record| {
                renumber.record(record).into_iter().for_each(&mut *sink);
            })?;
        }
        Ok(())
    }

    /// Of all hosts; the first is the reference.
    pub fn names(&self) -> Vec<&str> {
        self.names.iter().map(String::as_str).collect()
    }

    fn contents(&self) -> impl Iterator<Item = (&str, &Contents)> {
        self.names.iter().map(String::as_str).zip(self.recordings.iter().map(|of| &of.contents))
    }

    /// The first recording's, with all hosts' names and what is known of their clocks.
    pub fn info(&self) -> Info {
        joined_info(&hosts(&self.recordings, &self.names), &self.joined)
    }

    /// What all said at their ends, and what is known of the clocks.
    pub fn ending(&self) -> Ending {
        let mut ending = Ending { reason: "merged".to_owned(), exit_code: Some(0), ..Ending::default() };
        ending.notes = hosts_sentences(&self.joined, &self.names());
        for (host, (name, contents)) in self.contents().enumerate() {
            let Some(own) = &contents.ending else {
                ending.notes.push(format!("{name}: the recorder was killed: this is what it had written until then"));
                continue;
            };
            let end_ns = own.end_monotonic_ns;
            let end_ns = if host == 0 { end_ns } else { self.joined.time_of_monotonic(host, end_ns) };
            ending.end_monotonic_ns = ending.end_monotonic_ns.max(end_ns);
            ending.add(own);
            if ending.exit_code == Some(0) && own.exit_code.is_some_and(|code| code != 0) {
                (ending.exit_code, ending.reason) = (own.exit_code, own.reason.clone());
            }
            ending.notes.extend(own.notes.iter().map(|note| format!("{name}: {note}")));
        }
        ending
    }

    /// What could not be read of any, a sentence each.
    pub fn damage(&self) -> Vec<String> {
        let of_host = |(name, contents): (&str, &Contents)| -> Vec<String> {
            contents.damage.iter().map(|damage| format!("{name}: {damage}")).collect()
        };
        self.contents().flat_map(of_host).collect()
    }

    /// What all recordings together say of their losses.
    pub fn losses(&self) -> Losses {
        self.recordings.iter().flat_map(|of| &of.lost).collect()
    }

    /// The analysis of all.
    pub fn analyse(&self, config: &Config) -> Result<Analysis> {
        let mut analyzer = Analyzer::new(config.clone());
        self.records(&mut |record| analyzer.record(&record))?;
        let bytes = self.recordings.iter().map(|of| of.bytes.len() as u64).sum();
        Ok(analyzer.finish(self.info(), Some(self.ending()), self.damage(), bytes)?)
    }
}

fn hosts<'a>(recordings: &'a [Surveyed], names: &'a [String]) -> Vec<Host<'a>> {
    let host = |(of, name): (&'a Surveyed, &'a String)| Host { name, survey: &of.survey, info: &of.contents.info };
    recordings.iter().zip(names).map(host).collect()
}

fn surveyed(path: &Path) -> Result<Surveyed> {
    let read = || -> Result<Surveyed> {
        let bytes = input::map(path)?;
        let (mut survey, mut lost) = (Survey::default(), Vec::new());
        let contents = taut_recording::read(&bytes, &mut |record| {
            survey.record(&record);
            if let Record::Lost(some) = record {
                lost.push(some);
            }
        })?;
        Ok(Surveyed { bytes, survey, contents, lost })
    };
    read().with_context(|| path.shown())
}
