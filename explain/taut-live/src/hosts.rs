//! The last seconds of several hosts → one stream on the first one's clock. What is known of the clocks follows anew in each turn, from
//! the messages of those seconds.

use taut_analysis::{Analyzer, DeclaredChain};
use taut_points::hosts::{ClocksFrom, Host, Joined, Renumber, Survey, join, joined_info};
use taut_recording::Info;

use crate::{state::Clocks, window::Window};

/// Hosts with their names, in the order of the recordings.
pub struct Hosts {
    names: Vec<String>,
    by: Option<ClocksFrom>,
    /// Of the last seconds.
    surveys: Vec<Survey>,
    /// Of this turn's messages, or of the last ones that were of use.
    joined: Option<Joined>,
}

impl Hosts {
    /// `by`: what the user wants to take for the clocks.
    pub fn new(names: Vec<String>, by: Option<ClocksFrom>) -> Hosts {
        Hosts { names, by, surveys: Vec::new(), joined: None }
    }

    /// What the host of that number is called.
    pub fn name(&self, host: usize) -> &str {
        &self.names[host]
    }

    /// Aligns the clocks by what the windows hold. Chains tell the order of their points.
    ///
    /// # Errors
    /// The messages are of no use, nor were those of any turn before: why.
    pub fn align(&mut self, windows: &[Window], infos: &[&Info], chains: &[DeclaredChain]) -> Result<(), String> {
        let survey = |window: &Window| {
            let mut survey = Survey::default();
            window.records(&mut |record| survey.record(record));
            survey
        };
        self.surveys = windows.iter().map(survey).collect();
        let chains: Vec<Vec<String>> = chains.iter().map(|chain| chain.points.clone()).collect();
        let joined = join(&self.hosts(infos), &chains, self.by);
        match joined {
            Ok(mut joined) => {
                if self.by == Some(ClocksFrom::Realtime) {
                    joined.by_realtime();
                }
                self.joined = Some(joined);
                Ok(())
            }
            // Seconds without a message; the clocks go on as they went.
            Err(_) if self.joined.is_some() => Ok(()),
            Err((_, why)) => Err(why.to_string()),
        }
    }

    /// CLOCK_MONOTONIC of the first host when this one's shows `time_ns`; `None`: nothing is known of the clocks yet.
    pub fn time(&self, host: usize, time_ns: u64) -> Option<u64> {
        let joined = self.joined.as_ref()?;
        Some(if host == 0 { time_ns } else { joined.time_of_monotonic(host, time_ns) })
    }

    /// Of all hosts.
    pub fn info(&self, infos: &[&Info]) -> Option<Info> {
        Some(joined_info(&self.hosts(infos), self.joined.as_ref()?))
    }

    /// Gives everything to an analyzer.
    pub fn feed(&self, windows: &[Window], infos: &[&Info], analyzer: &mut Analyzer) {
        let Some(joined) = &self.joined else { return };
        let hosts = self.hosts(infos);
        for (number, window) in (0..).zip(windows) {
            let renumber = Renumber::new(number, &hosts, joined);
            window.records(&mut |record| {
                renumber.record(record.clone()).iter().for_each(|record| analyzer.record(record));
            });
        }
    }

    /// What is known of the clocks of each two hosts, the first one's first.
    pub fn clocks(&self) -> Vec<Clocks> {
        let Some(joined) = &self.joined else { return Vec::new() };
        let all = self.names.len();
        let clocks = |(a, b): (usize, usize)| {
            let between = joined.between(a, b);
            let pair = joined.pairs.iter().find(|pair| pair.hosts == (a, b));
            Clocks {
                hosts: [a, b].map(|host| self.names[host].clone()),
                from: between.clocks_from,
                offset_ns: between.offset_ns(),
                bound_ns: between.bounds_ns().map(|(typical_ns, _)| typical_ns),
                messages: pair.map_or([0; 2], |pair| pair.alignment.used),
            }
        };
        (0..all).flat_map(|a| (a + 1..all).map(move |b| (a, b))).map(clocks).collect()
    }

    fn hosts<'a>(&'a self, infos: &'a [&Info]) -> Vec<Host<'a>> {
        let all = self.names.iter().zip(&self.surveys).zip(infos);
        all.map(|((name, survey), info)| Host { name, survey, info }).collect()
    }
}
