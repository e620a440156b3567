//! What a fleet answers, for people. The figures are Python's (`python/taut/fleet`); here they are shown, and their schema is held.

mod document;
#[cfg(test)]
pub(crate) mod sample;
mod sentences;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::escape::{Form, escaped};

pub use document::fleet_document;

/// One of three answers; `kind` says which.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(tag = "kind")]
pub enum Answer {
    /// Of `taut fleet report`.
    #[serde(rename = "fleet-report")]
    Report(Report),
    /// Of `taut fleet worst`.
    #[serde(rename = "fleet-worst")]
    Worst(Worst),
    /// Of `taut fleet compare`.
    #[serde(rename = "fleet-compare")]
    Compare(Compare),
}

/// What was asked.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct About {
    /// Version of this schema.
    pub schema_version: u32,
    /// The folder, or the server's table.
    pub place: String,
    /// Who added up: duckdb, clickhouse or spark.
    pub engine: String,
    /// First day asked for, if not all.
    pub since: Option<String>,
    /// Last day asked for, if not all.
    pub until: Option<String>,
    /// The only revision asked for, if not all.
    pub revision: Option<String>,
    /// Files that could not be read: the figures are without them.
    #[serde(default)]
    pub set_aside: Vec<SetAside>,
}

/// A file of a fleet that cannot be read.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct SetAside {
    /// Its path.
    pub file: String,
    /// What the engine says of it.
    pub why: String,
}

impl Answer {
    /// Reads what Python printed. Names come from files of others, and are made printable here.
    ///
    /// # Errors
    /// It is no answer.
    pub fn read(json: &[u8]) -> serde_json::Result<Answer> {
        let mut answer = serde_json::from_slice(json)?;
        make_printable(&mut answer);
        serde_json::from_value(answer)
    }

    /// What was asked.
    pub fn about(&self) -> &About {
        match self {
            Answer::Report(of) => &of.about,
            Answer::Worst(of) => &of.about,
            Answer::Compare(of) => &of.about,
        }
    }
}

/// How much there was.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Extent {
    /// Robots.
    pub robots: u64,
    /// Messages that went all the way through their chain.
    pub messages: u64,
    /// First day; of a merged fleet the first of its period.
    pub first: String,
    /// Last day; the same.
    pub last: String,
}

/// A bucket: the figure lies in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
pub struct Bounds {
    /// It is above this.
    pub above_ns: u64,
    /// And at most this.
    pub up_to_ns: u64,
}

/// A distribution. A quantile is null when fewer than ten messages lie beyond it.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct FleetFigures {
    /// Messages; of a cause, those that lost time to it.
    pub n: u64,
    /// Median.
    pub p50: Option<Bounds>,
    /// 90th percentile.
    pub p90: Option<Bounds>,
    /// 99th percentile.
    pub p99: Option<Bounds>,
    /// 99.9th percentile.
    pub p999: Option<Bounds>,
    /// The largest.
    pub max: Option<Bounds>,
}

/// `taut fleet report`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Report {
    /// What was asked.
    #[serde(flatten)]
    pub about: About,
    /// All chains together.
    #[serde(flatten)]
    pub extent: Extent,
    /// The busiest first.
    pub chains: Vec<Chain>,
}

/// A chain over all robots.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Chain {
    /// Its name.
    pub chain: String,
    /// Of this chain.
    #[serde(flatten)]
    pub extent: Extent,
    /// The oldest first.
    pub revisions: Vec<Revision>,
    /// How far robots are apart.
    pub robots_p99: Spread,
    /// The whole way, then hop by hop.
    pub places: Vec<Place>,
}

/// A revision's whole way.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Revision {
    /// Its name.
    pub revision: String,
    /// Of this revision.
    #[serde(flatten)]
    pub extent: Extent,
    /// The whole way.
    pub figures: FleetFigures,
}

/// The robots' own p99 of the whole way.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Spread {
    /// Robots whose data carry one.
    pub robots: u64,
    /// Robots whose data do not.
    pub too_few: u64,
    /// Of the best robot.
    pub best: Option<Bounds>,
    /// Of the median robot.
    pub median: Option<Bounds>,
    /// The worst robots first.
    pub worst: Vec<Robot>,
}

/// A robot's whole way.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Robot {
    /// Its name.
    pub robot: String,
    /// The whole way.
    pub figures: FleetFigures,
}

/// The whole way, or a hop.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Place {
    /// 0 for the whole way, from 1 the hop's place in its chain.
    pub position: u32,
    /// "from → to"; "" for the whole way.
    pub hop: String,
    /// Its share of the whole way's time (0..1).
    pub time_share: Option<f64>,
    /// Over all robots and days.
    pub figures: FleetFigures,
    /// Mean; shown, never used to decide.
    pub mean_ns: f64,
    /// Week by week.
    pub weeks: Vec<Week>,
    /// What the time was spent on, most of it first.
    pub causes: Vec<CauseOf>,
}

/// A cause at a place.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct CauseOf {
    /// A word of causes.md.
    pub cause: String,
    /// Its share of the place's time (0..1).
    pub time_share: Option<f64>,
    /// Of the messages that lost time to it.
    pub figures: FleetFigures,
    /// Time a message of the place, with those that lost none.
    pub mean_ns: f64,
    /// Week by week.
    pub weeks: Vec<Week>,
}

/// A week.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Week {
    /// Its Monday.
    pub week: String,
    /// Time a message of the place.
    pub mean_ns: f64,
    /// Over all robots.
    pub figures: FleetFigures,
}

/// `taut fleet worst`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Worst {
    /// What was asked.
    #[serde(flatten)]
    pub about: About,
    /// Robots that have what is ranked.
    pub robots: u64,
    /// First day.
    pub first: String,
    /// Last day.
    pub last: String,
    /// The chain.
    pub chain: String,
    /// The hop that ranks; "" for the whole way.
    pub hop: String,
    /// The cause that ranks; "" for all time.
    pub cause: String,
    /// The figure that ranks: p50, p90, p99 or p999.
    pub figure: String,
    /// Robots whose data do not carry it, and which are not ranked.
    pub too_few: u64,
    /// Of the median robot.
    pub median: Option<Bounds>,
    /// The worst first.
    pub ranked: Vec<Ranked>,
}

/// A robot, and what is special about it.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Ranked {
    /// Its name.
    pub robot: String,
    /// What ran there.
    pub revisions: Vec<String>,
    /// First day.
    pub first: String,
    /// Last day.
    pub last: String,
    /// Of what ranks.
    pub figures: FleetFigures,
    /// The hop whose figure is farthest above the fleet's; null if none is.
    pub stands_out_by_hop: Option<HopOut>,
    /// The cause that takes more time a message than in the fleet, by most; null if none does.
    pub stands_out_by_cause: Option<CauseOut>,
}

/// A hop that is later than usual.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct HopOut {
    /// "from → to".
    pub hop: String,
    /// The figure that ranks, of this robot.
    pub robot: Bounds,
    /// Of all robots together.
    pub fleet: Bounds,
}

/// A cause that takes more than usual.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct CauseOut {
    /// A word of causes.md.
    pub cause: String,
    /// Time a message, of this robot.
    pub robot_mean_ns: f64,
    /// Of all robots together.
    pub fleet_mean_ns: f64,
}

/// `taut fleet compare`.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Compare {
    /// What was asked.
    #[serde(flatten)]
    pub about: About,
    /// What A and B are: "revision" or "robot".
    pub by: String,
    /// The one.
    pub a: String,
    /// The other.
    pub b: String,
    /// Those that both have, the busiest first.
    pub chains: Vec<ComparedChain>,
}

/// A chain on both sides.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct ComparedChain {
    /// Its name.
    pub chain: String,
    /// How much there was of A.
    pub a: Extent,
    /// How much there was of B.
    pub b: Extent,
    /// The whole way, then hop by hop.
    pub places: Vec<ComparedPlace>,
}

/// A place on both sides.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct ComparedPlace {
    /// As in a report.
    pub position: u32,
    /// As in a report.
    pub hop: String,
    /// All robots of A together; null if none has it.
    pub a: Option<SideOf>,
    /// All robots of B together.
    pub b: Option<SideOf>,
    /// Change of the robots' own figures.
    pub by_robots: QuantileChanges,
    /// What the time was spent on.
    pub causes: Vec<ComparedCause>,
}

/// A cause on both sides.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct ComparedCause {
    /// A word of causes.md.
    pub cause: String,
    /// As above.
    pub a: Option<SideOf>,
    /// As above.
    pub b: Option<SideOf>,
    /// Change of the robots' own time a message.
    pub by_robots: MeanChange,
}

/// One side's figures.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct SideOf {
    /// Over all its robots.
    pub figures: FleetFigures,
    /// Time a message of the place.
    pub mean_ns: f64,
}

/// Changes of robots' quantiles.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct QuantileChanges {
    /// Median.
    pub p50: Option<Factor>,
    /// 90th percentile.
    pub p90: Option<Factor>,
    /// 99th percentile.
    pub p99: Option<Factor>,
    /// 99.9th percentile.
    pub p999: Option<Factor>,
}

/// Change of robots' time a message.
#[derive(Clone, Debug, Default, Deserialize, Serialize, JsonSchema)]
pub struct MeanChange {
    /// Mean.
    pub mean: Option<Factor>,
}

/// A change with robots as its unit: B over A.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
pub struct Factor {
    /// Of the median robot.
    pub factor: f64,
    /// 95 % interval; null with too few robots for one.
    pub low: Option<f64>,
    /// The same.
    pub high: Option<f64>,
    /// Robots of A; of pairs, how many pairs.
    pub robots_a: u64,
    /// Robots of B; the same.
    pub robots_b: u64,
    /// Each robot was compared with itself; otherwise medians of two groups.
    pub paired: bool,
}

/// What `taut fleet merge` wrote.
#[derive(Clone, Debug, Deserialize)]
pub struct Merged {
    /// One a period.
    pub files: u64,
    /// In all of them.
    pub rows: u64,
    /// First period.
    pub first: String,
    /// Last period.
    pub last: String,
    /// Files that could not be read, which no period has.
    pub set_aside: Vec<SetAside>,
}

fn make_printable(value: &mut serde_json::Value) {
    match value {
        serde_json::Value::String(text) => *text = escaped(text, Form::Terminal),
        serde_json::Value::Array(values) => values.iter_mut().for_each(make_printable),
        serde_json::Value::Object(fields) => fields.values_mut().for_each(make_printable),
        _ => {}
    }
}

/// The answer as it came, by the schema.
pub fn fleet_json(answer: &Answer) -> serde_json::Value {
    serde_json::to_value(answer).unwrap_or_default()
}

impl FleetFigures {
    fn of(&self, figure: &str) -> Option<Bounds> {
        match figure {
            "p50" => self.p50,
            "p90" => self.p90,
            "p99" => self.p99,
            "p999" => self.p999,
            _ => self.max,
        }
    }
}

impl Factor {
    /// Whether the interval has no room for "nothing changed".
    fn is_sure(&self) -> bool {
        self.low.is_some_and(|low| low > 1.0) || self.high.is_some_and(|high| high < 1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_documented_schema_is_this_one() {
        crate::json::assert_documented(&schemars::schema_for!(Answer).to_value(), "schemas/fleet.schema.json");
    }

    #[test]
    fn an_answer_is_passed_on_as_it_came() {
        for answer in sample::answers() {
            let read: Answer = serde_json::from_value(answer.clone()).unwrap();
            assert_eq!(fleet_json(&read), answer);
        }
    }
}
