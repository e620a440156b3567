//! Topics, callbacks and executors of a recording with ROS 2 events: tables for terminal, Markdown and page, and JSON.

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis::{Analysis, Durations, RosFigures};

use crate::{
    Style,
    console::{indent, table},
    words,
};

/// Topics, callbacks and executors.
#[derive(Serialize, JsonSchema)]
pub struct Ros {
    /// By name, without those that every node has.
    topics: Vec<Topic>,
    /// By name.
    callbacks: Vec<Callback>,
    /// Threads that ran callbacks.
    executors: Vec<Executor>,
}

#[derive(Serialize, JsonSchema)]
struct Topic {
    name: String,
    /// Nodes that publish it.
    publishers: Vec<String>,
    /// Messages published in the recording.
    published: u64,
    /// Publications a second, as `ros2 topic hz`; null with fewer than two.
    rate_hz: Option<f64>,
    /// From each publication to the next.
    period: Spread,
    subscriptions: Vec<Subscription>,
}

#[derive(Serialize, JsonSchema)]
struct Subscription {
    callback: String,
    /// Messages that its queue holds; 0: as many as the middleware likes.
    depth: u64,
    taken: u64,
    /// Newer ones took their place in the queue.
    overwritten: u64,
    /// Others that it did not take.
    not_taken: u64,
    /// From publication to the begin of the callback.
    delay: Spread,
}

#[derive(Serialize, JsonSchema)]
struct Callback {
    name: String,
    /// From begin to end, each step of a coroutine by itself.
    duration: Spread,
}

#[derive(Serialize, JsonSchema)]
struct Executor {
    /// "comm/tid".
    thread: String,
    callbacks: u64,
    /// Share (0..1) of the time from its first to its last callback that it was in callbacks.
    busy: f64,
}

/// Some durations; null where there are none.
#[derive(Serialize, JsonSchema)]
struct Spread {
    n: u64,
    mean_ns: Option<f64>,
    min_ns: Option<u64>,
    p50_ns: Option<u64>,
    max_ns: Option<u64>,
    std_dev_ns: Option<f64>,
}

fn spread(of: &Durations) -> Spread {
    let is_any = of.n > 0;
    Spread {
        n: of.n,
        mean_ns: is_any.then_some(of.mean_ns),
        min_ns: is_any.then_some(of.min_ns),
        p50_ns: is_any.then_some(of.p50_ns),
        max_ns: is_any.then_some(of.max_ns),
        std_dev_ns: is_any.then_some(of.deviation_ns),
    }
}

fn rate_hz(period: &Durations) -> Option<f64> {
    (period.mean_ns > 0.0).then(|| 1e9 / period.mean_ns)
}

/// The JSON form.
pub(crate) fn json(ros: &RosFigures) -> Ros {
    let topics = ros.topics.iter().map(|topic| Topic {
        name: topic.name.clone(),
        publishers: topic.publishers.clone(),
        published: topic.published,
        rate_hz: rate_hz(&topic.period),
        period: spread(&topic.period),
        subscriptions: topic
            .subscriptions
            .iter()
            .map(|of| Subscription {
                callback: of.callback.clone(),
                depth: of.depth,
                taken: of.taken,
                overwritten: of.overwritten,
                not_taken: of.not_taken,
                delay: spread(&of.delay),
            })
            .collect(),
    });
    let callback =
        |of: &taut_analysis::CallbackFigures| Callback { name: of.name.clone(), duration: spread(&of.duration) };
    let executor = |of: &taut_analysis::ExecutorFigures| Executor {
        thread: of.thread.clone(),
        callbacks: of.callbacks,
        busy: of.busy,
    };
    Ros {
        topics: topics.collect(),
        callbacks: ros.callbacks.iter().map(callback).collect(),
        executors: ros.executors.iter().map(executor).collect(),
    }
}

/// Seconds as `ros2 topic hz` and `delay` print them.
fn seconds(ns: f64) -> String {
    format!("{:.3}s", ns / 1e9)
}

/// Mean, min, max and standard deviation in seconds.
fn figures(of: &Durations) -> [String; 4] {
    match of.n {
        0 => std::array::from_fn(|_| "–".to_owned()),
        _ => [
            seconds(of.mean_ns),
            seconds(of.min_ns as f64),
            seconds(of.max_ns as f64),
            format!("{:.5}s", of.deviation_ns / 1e9),
        ],
    }
}

/// Names in the first column, figures in the others.
#[derive(Serialize)]
pub(crate) struct RosTable {
    /// The heading above it, or above the table before it.
    section: &'static str,
    /// On a page.
    caption: &'static str,
    pub header: &'static [&'static str],
    pub rows: Vec<Vec<String>>,
}

/// What each form shows, without tables that have no row.
pub(crate) fn tables(ros: &RosFigures) -> Vec<RosTable> {
    let published = ros.topics.iter().filter(|topic| topic.published > 0).map(|topic| {
        let [_, min, max, deviation] = figures(&topic.period);
        let rate = rate_hz(&topic.period).map_or("–".to_owned(), |hz| format!("{hz:.3}"));
        vec![topic.name.clone(), words::count(topic.published), rate, min, max, deviation]
    });
    let taken = ros.topics.iter().flat_map(|topic| &topic.subscriptions).map(|of| {
        let depth = if of.depth == 0 { "–".to_owned() } else { of.depth.to_string() };
        let counts = [words::count(of.overwritten), words::count(of.not_taken), depth];
        [of.callback.clone(), words::count(of.taken)].into_iter().chain(figures(&of.delay)).chain(counts).collect()
    });
    let durations = ros.callbacks.iter().map(|of| {
        let [p50, max] = [of.duration.p50_ns, of.duration.max_ns].map(|ns| words::milliseconds(Some(ns)));
        vec![of.name.clone(), words::count(of.duration.n), p50, max]
    });
    let executors =
        ros.executors.iter().map(|of| vec![of.thread.clone(), words::count(of.callbacks), words::percent(of.busy)]);
    let tables = [
        RosTable {
            section: "Topics",
            caption: "Rate and period of publication, as ros2 topic hz prints them",
            header: &["published", "n", "average rate", "min", "max", "std dev"],
            rows: published.collect(),
        },
        RosTable {
            section: "Topics",
            caption: "From publication to the begin of the callback, as ros2 topic delay prints it; and messages that no callback received",
            header: &["taken by", "n", "average delay", "min", "max", "std dev", "overwritten", "not taken", "depth"],
            rows: taken.collect(),
        },
        RosTable {
            section: "Callbacks",
            caption: "From the begin of a callback to its end",
            header: &["duration (ms) of", "n", "p50", "max"],
            rows: durations.collect(),
        },
        RosTable {
            section: "Callbacks",
            caption: "Share of the time from the first to the last callback of a thread that it spent in callbacks",
            header: &["executor's thread", "callbacks", "in callbacks"],
            rows: executors.collect(),
        },
    ];
    tables.into_iter().filter(|table| !table.rows.is_empty()).collect()
}

/// Of the terminal form; nothing without ROS 2 events.
pub(crate) fn terminal(analysis: &Analysis, style: Style) -> String {
    let mut out = String::new();
    let mut above = "";
    for of in analysis.ros.iter().flat_map(tables) {
        if above != of.section {
            above = of.section;
            out += &format!("\n{}\n", style.bold(above));
        }
        let mut drawn = table(of.header);
        for row in of.rows {
            drawn.add_row(row);
        }
        out += &format!("\n{}", indent(&drawn));
    }
    out
}

#[cfg(test)]
mod tests {
    use taut_analysis::{CallbackFigures, ExecutorFigures, SubscriptionFigures, TopicFigures};

    use super::*;

    fn camera_and_detector() -> Analysis {
        let period = Durations {
            n: 99,
            mean_ns: 33_333_333.3,
            min_ns: 31_000_000,
            max_ns: 41_000_000,
            deviation_ns: 1_234_567.0,
            p50_ns: 33_000_000,
        };
        let delay = Durations { n: 98, mean_ns: 4e6, min_ns: 1_000_000, max_ns: 9_000_000, ..Durations::default() };
        let subscription = SubscriptionFigures {
            callback: "/detector callback /image".into(),
            depth: 1,
            taken: 98,
            overwritten: 2,
            not_taken: 0,
            delay,
        };
        let topic = TopicFigures {
            name: "/image".into(),
            publishers: vec!["/camera".into()],
            published: 100,
            period,
            subscriptions: vec![subscription],
        };
        let callbacks = vec![CallbackFigures { name: "/detector callback /image".into(), duration: delay }];
        let executors = vec![ExecutorFigures { thread: "python/7".into(), callbacks: 98, busy: 0.25 }];
        let ros = RosFigures { topics: vec![topic], callbacks, executors };
        Analysis { ros: Some(ros), ..Analysis::default() }
    }

    #[test]
    fn rates_and_delays_read_as_ros2_topic_prints_them() {
        let text = terminal(&camera_and_detector(), Style::default());
        let words: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        for line in [
            "/image 100 30.000 0.031s 0.041s 0.00123s",
            "/detector callback /image 98 0.004s 0.001s 0.009s 0.00000s 2 0 1",
            "python/7 98 25.0 %",
        ] {
            assert!(words.iter().any(|found| found == line), "{line} is not in\n{text}");
        }
    }

    #[test]
    fn each_form_has_the_tables_of_the_others() {
        let mut analysis = camera_and_detector();
        analysis.ros.as_mut().unwrap().executors[0].thread = "a|b<c>/7".into();
        let text = crate::markdown::ros(&analysis);
        let tables = tables(analysis.ros.as_ref().unwrap());
        assert_eq!(tables.len(), 4);
        for table in &tables {
            assert!(text.contains(&format!("| {} |", table.header.join(" | "))), "{text}");
        }
        assert!(text.contains("| /image | 100 | 30.000 | 0.031s | 0.041s | 0.00123s |"), "{text}");
        assert!(!text.contains("<c>") && !text.contains("a|b"), "{text}");
    }

    #[test]
    fn without_events_of_ros_there_is_no_table() {
        let analysis = Analysis { ros: Some(RosFigures::default()), ..Analysis::default() };
        assert_eq!(terminal(&analysis, Style::default()) + &crate::markdown::ros(&analysis), "");
    }
}
