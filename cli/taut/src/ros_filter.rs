//! `--topic` and `--node`: of a recording with ROS 2 nodes only what passes through these.

use anyhow::{Result, bail};
use taut_analysis::{Analysis, Chain, SourceKind};

/// Only the chains through these topics and nodes.
#[derive(clap::Args, Clone, Debug, Default)]
pub struct RosFilter {
    /// ROS 2: only chains through this topic or service; repeatable.
    #[arg(long, value_name = "NAME")]
    topic: Vec<String>,
    /// ROS 2: only chains through this node; repeatable.
    #[arg(long, value_name = "NAME")]
    node: Vec<String>,
}

impl RosFilter {
    /// Whether everything is wanted.
    pub fn is_empty(&self) -> bool {
        self.topic.is_empty() && self.node.is_empty()
    }

    /// Leaves out what passes through none of them; a name that is nowhere is a mistake.
    pub fn apply(&self, analysis: &mut Analysis) -> Result<()> {
        if self.is_empty() {
            return Ok(());
        }
        let (topics, nodes) = (absolute(&self.topic), absolute(&self.node));
        check("topic", &topics, &analysis.chains, names_of_topics)?;
        check("node", &nodes, &analysis.chains, names_of_nodes)?;
        self.retain(&mut analysis.chains);
        if analysis.chains.is_empty() {
            bail!("no chain passes through both {} and {}", topics.join(" or "), nodes.join(" or "));
        }
        (analysis.loops, analysis.waking, analysis.points) = Default::default();
        if let Some(ros) = &mut analysis.ros {
            let of_node =
                |name: &str| nodes.is_empty() || nodes.iter().any(|node| name.split(' ').next() == Some(node));
            ros.topics.retain(|topic| {
                let is_of_node = || {
                    topic.publishers.iter().any(|node| of_node(node))
                        || topic.subscriptions.iter().any(|subscription| of_node(&subscription.callback))
                };
                (topics.is_empty() || topics.contains(&topic.name)) && is_of_node()
            });
            let of_topic =
                |name: &str| topics.is_empty() || topics.iter().any(|topic| name.split(' ').any(|word| word == topic));
            ros.callbacks.retain(|callback| of_node(&callback.name) && of_topic(&callback.name));
        }
        Ok(())
    }
}

impl RosFilter {
    /// The same of chains alone, where a name may be one that is still to come.
    pub fn retain(&self, chains: &mut Vec<Chain>) {
        chains.retain(|chain| {
            let is_of_ros = chain.source == SourceKind::Ros;
            let points: Vec<&str> = chain.points.iter().map(|point| point.name.as_str()).collect();
            self.is_empty() || is_of_ros && self.wants(&points)
        });
    }

    /// Whether a chain of ROS 2 through these points is wanted.
    pub fn wants(&self, points: &[&str]) -> bool {
        let passes = |wanted: &[String], is_it: &dyn Fn(&str, &str) -> bool| {
            let wanted = absolute(wanted);
            wanted.is_empty() || wanted.iter().any(|name| points.iter().any(|point| is_it(point, name)))
        };
        passes(&self.topic, &|point, name| topics_of(point).any(|topic| is_called(topic, name)))
            && passes(&self.node, &|point, name| node_of(point).is_some_and(|node| is_called(node, name)))
    }

    /// As it was given, with a space before each.
    pub fn words(&self) -> String {
        let [topics, nodes] = [("topic", &self.topic), ("node", &self.node)]
            .map(|(what, names)| names.iter().map(move |name| format!(" --{what} {name}")).collect::<String>());
        topics + &nodes
    }
}

/// Names as ROS 2 writes them: a slash in front.
fn absolute(names: &[String]) -> Vec<String> {
    names.iter().map(|name| if name.starts_with('/') { name.clone() } else { format!("/{name}") }).collect()
}

/// Of a long name a point has the beginning and the end.
fn is_called(shown: &str, name: &str) -> bool {
    match shown.split_once('…') {
        Some((begin, end)) => name.starts_with(begin) && name.ends_with(end) && name.len() > shown.len(),
        None => shown == name,
    }
}

/// Points are called "/node publish /topic".
fn node_of(point: &str) -> Option<&str> {
    point.split(' ').next()
}

fn topics_of(point: &str) -> impl Iterator<Item = &str> {
    point.split(' ').skip(1).filter(|word| word.starts_with('/'))
}

fn names_of_nodes(chain: &Chain) -> impl Iterator<Item = &str> {
    let of_ros = chain.points.iter().filter(|_| chain.source == SourceKind::Ros);
    of_ros.filter_map(|point| node_of(&point.name))
}

fn names_of_topics(chain: &Chain) -> impl Iterator<Item = &str> {
    let of_ros = chain.points.iter().filter(|_| chain.source == SourceKind::Ros);
    of_ros.flat_map(|point| topics_of(&point.name))
}

fn check<'a, I: Iterator<Item = &'a str>>(
    what: &str,
    wanted: &[String],
    chains: &'a [Chain],
    names: impl Fn(&'a Chain) -> I,
) -> Result<()> {
    let mut known: Vec<&str> = chains.iter().flat_map(names).collect();
    known.sort_unstable();
    known.dedup();
    match wanted.iter().find(|name| !known.iter().any(|shown| is_called(shown, name))) {
        Some(name) if known.is_empty() => bail!("--{what} {name}: the recording has no chain of ROS 2 nodes"),
        Some(name) => bail!("--{what} {name}: no chain passes through it; there are {}", known.join(", ")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use taut_analysis::Point;

    use super::*;

    fn analysis() -> Analysis {
        let chain = |points: &[&str]| Chain {
            source: SourceKind::Ros,
            points: points.iter().map(|name| Point { name: (*name).into(), ..Point::default() }).collect(),
            ..Chain::default()
        };
        let chains = vec![
            chain(&["/camera timer 33 ms", "/camera publish /image", "/detector callback /image"]),
            chain(&["/laser timer 50 ms", "/laser publish /scan", "/detector callback /scan"]),
        ];
        Analysis { chains, ..Analysis::default() }
    }

    fn left(topic: &[&str], node: &[&str]) -> Result<usize, String> {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let mut analysis = analysis();
        let filter = RosFilter { topic: names(topic), node: names(node) };
        filter.apply(&mut analysis).map(|()| analysis.chains.len()).map_err(|error| error.to_string())
    }

    #[test]
    fn chains_are_left_that_pass_through_a_topic_and_a_node() {
        assert_eq!(left(&[], &[]), Ok(2));
        assert_eq!(left(&["/scan"], &[]), Ok(1));
        assert_eq!(left(&["scan", "/image"], &[]), Ok(2));
        assert_eq!(left(&[], &["/detector"]), Ok(2));
        assert_eq!(left(&["/scan"], &["camera"]), Err("no chain passes through both /scan and /camera".into()));
        let unknown = "--topic /imag: no chain passes through it; there are /image, /scan";
        assert_eq!(left(&["/imag"], &[]), Err(unknown.into()));
    }

    #[test]
    fn a_live_chain_is_wanted_by_its_points() {
        let filter = |topic: &str, node: &str| {
            let of = |name: &str| if name.is_empty() { Vec::new() } else { vec![name.to_owned()] };
            RosFilter { topic: of(topic), node: of(node) }
        };
        let points = ["/camera publish /image", "/detector callback /image"];
        assert!(filter("image", "").wants(&points) && filter("", "/detector").wants(&points));
        assert!(!filter("/scan", "/camera").wants(&points) && !filter("/camera", "").wants(&points));
        let long = format!("/front/{}/image", "a".repeat(200));
        let cut = format!("/camera publish {}…{}", &long[..40], &long[150..]);
        assert!(filter(&long, "").wants(&[&cut]) && !filter("/front/b/image", "").wants(&[&cut]));
        assert!(!filter("/image", "").wants(&["image.put", "image.taken"]), "points of stamps are of no topic");
        assert_eq!(filter("/image", "/camera").words(), " --topic /image --node /camera");
    }
}
