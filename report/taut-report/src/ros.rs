//! Topics, callbacks and executors of a recording with ROS 2 events: tables, and JSON.

use schemars::JsonSchema;
use serde::Serialize;
use taut_analysis::{Durations, RosFigures};
use taut_document::{Cell, Section, Table};

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

/// Mean, min, max and standard deviation, in seconds as `ros2 topic hz` and `delay` print them.
fn figures(of: &Durations) -> [Cell; 4] {
    let seconds = |ns: f64| Cell::Printed(format!("{:.3}s", ns / 1e9));
    match of.n {
        0 => std::array::from_fn(|_| Cell::Missing),
        _ => {
            let deviation = Cell::Printed(format!("{:.5}s", of.deviation_ns / 1e9));
            [seconds(of.mean_ns), seconds(of.min_ns as f64), seconds(of.max_ns as f64), deviation]
        }
    }
}

/// What a report shows, without tables that have no row.
pub(crate) fn sections(ros: &RosFigures) -> Vec<Section> {
    let section = |title: &str, tables: [Table; 2]| {
        let blocks = tables.into_iter().filter(|table| !table.rows.is_empty()).map(Into::into).collect();
        Section::new(1, title, blocks)
    };
    let sections =
        [section("Topics", [published(ros), taken(ros)]), section("Callbacks", [callbacks(ros), executors(ros)])];
    sections.into_iter().filter(|section| !section.blocks.is_empty()).collect()
}

fn captioned<const N: usize>(caption: &str, head: [&str; N]) -> Table {
    Table { caption: caption.into(), ..Table::new(head) }
}

fn published(ros: &RosFigures) -> Table {
    let head = ["published", "n", "average rate", "min", "max", "std dev"];
    let mut table = captioned("Rate and period of publication, as ros2 topic hz prints them", head);
    for topic in ros.topics.iter().filter(|topic| topic.published > 0) {
        let [_, min, max, deviation] = figures(&topic.period);
        let rate = rate_hz(&topic.period).map_or(Cell::Missing, |hz| Cell::Printed(format!("{hz:.3}")));
        table.row([Cell::text(topic.name.as_str()), Cell::Count(topic.published), rate, min, max, deviation]);
    }
    table
}

fn taken(ros: &RosFigures) -> Table {
    let head = ["taken by", "n", "average delay", "min", "max", "std dev", "overwritten", "not taken", "depth"];
    let caption = "From publication to the begin of the callback, as ros2 topic delay prints it; and messages that no callback \
                   received";
    let mut table = captioned(caption, head).priorities([0, 5, 0, 3, 0, 2, 0, 0, 1]);
    for of in ros.topics.iter().flat_map(|topic| &topic.subscriptions) {
        let depth = if of.depth == 0 { Cell::Missing } else { Cell::Count(of.depth) };
        let first = [Cell::text(of.callback.as_str()), Cell::Count(of.taken)].into_iter();
        let last = [Cell::Count(of.overwritten), Cell::Count(of.not_taken), depth];
        table.add(first.chain(figures(&of.delay)).chain(last));
    }
    table
}

fn callbacks(ros: &RosFigures) -> Table {
    let mut table = captioned("From the begin of a callback to its end", ["duration of", "n", "p50", "max"]);
    for of in &ros.callbacks {
        let [p50, max] = [of.duration.p50_ns, of.duration.max_ns].map(Cell::Time);
        table.row([Cell::text(of.name.as_str()), Cell::Count(of.duration.n), p50, max]);
    }
    table
}

fn executors(ros: &RosFigures) -> Table {
    let caption = "Share of the time from the first to the last callback of a thread that it spent in callbacks";
    let mut table = captioned(caption, ["executor's thread", "callbacks", "in callbacks"]);
    for of in &ros.executors {
        table.row([Cell::text(of.thread.as_str()), Cell::Count(of.callbacks), Cell::Share(of.busy)]);
    }
    table
}

#[cfg(test)]
mod tests {
    use taut_analysis::{CallbackFigures, ExecutorFigures, SubscriptionFigures, TopicFigures};
    use taut_document::{Document, Style, markdown, terminal};

    use super::*;

    fn shown(ros: &RosFigures) -> Document {
        Document { sections: sections(ros), ..Document::default() }
    }

    fn camera_and_detector() -> RosFigures {
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
        RosFigures { topics: vec![topic], callbacks, executors }
    }

    #[test]
    fn rates_and_delays_read_as_ros2_topic_prints_them() {
        let text = terminal(&shown(&camera_and_detector()), Style { width: 120, ..Style::default() });
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
        let document = shown(&camera_and_detector());
        let text = markdown(&document);
        assert_eq!(text.matches("|:").count() + text.matches("| --- |").count(), 4, "{text}");
        assert!(text.contains("| /image | 100 | 30.000 | 0.031s | 0.041s | 0.00123s |"), "{text}");
        assert_eq!(taut_document::html(&document, None).matches("<table").count(), 4);
    }

    #[test]
    fn without_events_of_ros_there_is_no_table() {
        assert!(sections(&RosFigures::default()).is_empty());
    }
}
