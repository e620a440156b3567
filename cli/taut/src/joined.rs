//! Recordings of two hosts → one stream of records, as `taut report --join` and `taut merge` read them.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use memmap2::Mmap;
use taut_analysis::{Analysis, Analyzer, Config, DeclaredChain};
use taut_points::hosts::{Joined, Renumber, Survey, is_one_machine, join};
use taut_recording::{Contents, Ending, Info, Record, Shown};
use taut_report::{hosts_facts, hosts_sentences};

use crate::input;

/// Two recordings on one clock; neither file is changed.
pub struct JoinedRecordings {
    bytes: [Mmap; 2],
    surveys: [Survey; 2],
    contents: [Contents; 2],
    names: [String; 2],
    /// What is known of the clocks.
    pub joined: Joined,
}

/// Options of everything that joins.
#[derive(clap::Args, Debug)]
pub struct JoinArgs {
    /// Names of the two hosts, in the order of the recordings [default: as recorded, see record --host-name].
    #[arg(long, value_name = "A,B", value_delimiter = ',')]
    pub hosts: Vec<String>,
    /// Where the offset of the clocks comes from [default: the messages, or none where both recordings are of one boot of one machine].
    #[arg(long, value_name = "SOURCE")]
    pub clocks: Option<Clocks>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Clocks {
    /// The messages, also where both recordings are of one machine.
    Messages,
    /// CLOCK_REALTIME of both hosts is taken for one clock: nothing is aligned.
    Realtime,
}

impl JoinedRecordings {
    /// Reads both as far as the alignment needs it. Declared chains tell the order of their points.
    pub fn read(paths: &[PathBuf], args: &JoinArgs, config: &Config) -> Result<JoinedRecordings> {
        let [a, b] = paths else {
            bail!("joining takes two recordings, one of each host; {} given", paths.len());
        };
        if input::is_one_file(a, b) {
            bail!("{}: is given twice; name the other host's recording", a.shown());
        }
        let (of_a, of_b) = (surveyed(a)?, surveyed(b)?);
        if of_a.0[..] == of_b.0[..] {
            bail!("{} and {}: have the same content; name the other host's recording", a.shown(), b.shown());
        }
        let infos = [&of_a.2.info, &of_b.2.info];
        let names = names(infos, args)?;
        let files = || format!("{} and {}", a.shown(), b.shown());
        let of_chain = |chain: &DeclaredChain| chain.points.clone();
        let chains: Vec<Vec<String>> = config.chains.iter().map(of_chain).collect();
        let is_one_machine = args.clocks.is_none() && is_one_machine(infos);
        let mut joined =
            join([&of_a.1, &of_b.1], infos, [&names[0], &names[1]], &chains, is_one_machine).with_context(files)?;
        if args.clocks == Some(Clocks::Realtime) {
            joined.by_realtime();
        }
        let [(bytes_a, survey_a, contents_a), (bytes_b, survey_b, contents_b)] = [of_a, of_b];
        let (bytes, surveys, contents) = ([bytes_a, bytes_b], [survey_a, survey_b], [contents_a, contents_b]);
        Ok(JoinedRecordings { bytes, surveys, contents, names, joined })
    }

    /// Every record of both, on the first host's clock.
    pub fn records(&self, sink: &mut dyn FnMut(Record)) -> Result<()> {
        let surveys = [&self.surveys[0], &self.surveys[1]];
        let infos = [&self.contents[0].info, &self.contents[1].info];
        for host in 0..2 {
            let renumber = Renumber::new(host, surveys, &self.joined, infos, self.names());
            taut_recording::read(&self.bytes[usize::from(host)], &mut |record| {
                renumber.record(record).into_iter().for_each(&mut *sink);
            })?;
        }
        Ok(())
    }

    /// Of both hosts; the first is the reference.
    pub fn names(&self) -> [&str; 2] {
        [&self.names[0], &self.names[1]]
    }

    /// The first recording's, with both hosts' names and what is known of their clocks.
    pub fn info(&self) -> Info {
        let mut info = self.contents[0].info.clone();
        info.host = self.names.join(" + ");
        let (other, name) = (&self.contents[1].info, &self.names[1]);
        let cpus = other.cpus.to_string();
        let own = [
            ("kernel", &other.kernel),
            ("cpu", &other.cpu),
            ("cpus", &cpus),
            ("system_calls", &other.system_calls),
            ("git_revision", &other.git_revision),
            ("command", &other.command.join(" ")),
        ];
        let own = own.into_iter().map(|(key, value)| (key, value.as_str()));
        let facts = other.facts.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        info.facts.extend(own.chain(facts).map(|(key, value)| (format!("{name}.{key}"), value.to_owned())));
        // What is missing in one of them is missing in the whole.
        let recovered = other.facts.iter().filter(|(key, _)| key == "recovered_by" && info.fact(key).is_empty());
        let recovered: Vec<_> = recovered.cloned().collect();
        info.facts.extend(recovered);
        info.facts.push(("hosts".to_owned(), self.names.join(",")));
        info.facts.extend(hosts_facts(&self.joined));
        info.facts.sort();
        let reasons = self.contents.iter().zip(&self.names).filter(|(of, _)| !of.info.tier_reason.is_empty());
        let reasons = reasons.map(|(of, name)| format!("{name}: {}", of.info.tier_reason));
        info.tier_reason = reasons.collect::<Vec<String>>().join("; ");
        info
    }

    /// What both said at their ends, and what is known of the clocks.
    pub fn ending(&self) -> Ending {
        let mut ending = Ending { reason: "merged".to_owned(), exit_code: Some(0), ..Ending::default() };
        ending.notes = hosts_sentences(&self.joined, self.names());
        for (host, (contents, name)) in self.contents.iter().zip(&self.names).enumerate() {
            let Some(own) = &contents.ending else {
                ending.notes.push(format!("{name}: the recorder was killed: this is what it had written until then"));
                continue;
            };
            let end_ns = own.end_monotonic_ns;
            let end_ns = if host == 0 { end_ns } else { self.joined.time_of_monotonic(end_ns) };
            ending.end_monotonic_ns = ending.end_monotonic_ns.max(end_ns);
            ending.add(own);
            if ending.exit_code == Some(0) && own.exit_code.is_some_and(|code| code != 0) {
                (ending.exit_code, ending.reason) = (own.exit_code, own.reason.clone());
            }
            ending.notes.extend(own.notes.iter().map(|note| format!("{name}: {note}")));
        }
        ending
    }

    /// What could not be read of either, a sentence each.
    pub fn damage(&self) -> Vec<String> {
        let of_host = |(contents, name): (&Contents, &String)| -> Vec<String> {
            contents.damage.iter().map(|damage| format!("{name}: {damage}")).collect()
        };
        self.contents.iter().zip(&self.names).flat_map(of_host).collect()
    }

    /// The analysis of both.
    pub fn analyse(&self, config: &Config) -> Result<Analysis> {
        let mut analyzer = Analyzer::new(config.clone());
        self.records(&mut |record| analyzer.record(&record))?;
        let bytes = self.bytes.iter().map(|bytes| bytes.len() as u64).sum();
        Ok(analyzer.finish(self.info(), Some(self.ending()), self.damage(), bytes)?)
    }
}

fn surveyed(path: &Path) -> Result<(Mmap, Survey, Contents)> {
    let read = || -> Result<(Mmap, Survey, Contents)> {
        let bytes = input::map(path)?;
        let mut survey = Survey::default();
        let contents = taut_recording::read(&bytes, &mut |record| survey.record(&record))?;
        Ok((bytes, survey, contents))
    };
    read().with_context(|| path.shown())
}

/// The hosts' names, which must differ.
fn names(infos: [&Info; 2], args: &JoinArgs) -> Result<[String; 2]> {
    if !args.hosts.is_empty() && args.hosts.len() != 2 {
        bail!("--hosts {}: takes two names, one of each recording's host", args.hosts.join(","));
    }
    if let [a, b] = args.hosts.as_slice() {
        if a == b || [a, b].iter().any(|name| name.is_empty() || name.contains([':', '/'])) {
            bail!("--hosts {a},{b}: takes two different names without : and /");
        }
        return Ok([a.clone(), b.clone()]);
    }
    let [a, b] = infos.map(|info| info.host.replace([':', '/'], "_"));
    if a != b && !a.is_empty() && !b.is_empty() {
        return Ok([a, b]);
    }
    let [one, other] = infos.map(|info| info.fact("boot_id"));
    match (one.is_empty() || other.is_empty(), one != other) {
        (false, true) => bail!(
            "both recordings are of host \"{a}\", which rebooted in between (or two hosts have one name): name two hosts with --hosts A,B if so"
        ),
        _ => {
            bail!("both recordings are of a host named \"{a}\": name them with --hosts A,B, or record with --host-name")
        }
    }
}
