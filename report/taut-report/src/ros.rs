//! Topics, callbacks and executors of a recording with ROS 2 events, as tables.

use taut_analysis::{Durations, RosFigures};
use taut_document::{Cell, Section, Table};

/// Mean, min, max and standard deviation, in seconds as `ros2 topic hz` and `delay` print them.
fn figures(of: &Durations) -> [Cell; 4] {
    let printed = |ns: Option<f64>, digits: usize| {
        ns.map_or(Cell::Missing, |ns| Cell::Printed(format!("{:.digits$}s", ns / 1e9)))
    };
    let [min, max] = [of.min_ns, of.max_ns].map(|ns| printed(ns.map(|ns| ns as f64), 3));
    [printed(of.mean_ns, 3), min, max, printed(of.deviation_ns, 5)]
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
        let rate = topic.rate_hz.map_or(Cell::Missing, |hz| Cell::Printed(format!("{hz:.3}")));
        table.row([Cell::text(topic.name.as_str()), Cell::Count(topic.published), rate, min, max, deviation]);
    }
    table
}

fn taken(ros: &RosFigures) -> Table {
    let head = ["taken by", "n", "average delay", "min", "max", "std dev", "overwritten", "not taken", "depth"];
    let caption = "From publication to the start of the callback; and messages that no callback received";
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
    const CAPTION: &str =
        "From the begin of a callback to its end; of a coroutine all its steps together, without what it awaited";
    let mut table = captioned(CAPTION, ["duration of", "function", "n", "p50", "max"]).priorities([0, 1, 0, 0, 0]);
    for of in &ros.callbacks {
        let [p50, max] = [of.duration.p50_ns, of.duration.max_ns].map(Cell::time);
        let function = of.function.as_deref().map_or(Cell::Missing, Cell::text);
        table.row([Cell::text(of.name.as_str()), function, Cell::Count(of.duration.n), p50, max]);
    }
    table.without_missing();
    table
}

fn executors(ros: &RosFigures) -> Table {
    let caption =
        "Share of the time from a thread's first callback to the last event of its process that it spent in callbacks";
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
            mean_ns: Some(33_333_333.3),
            min_ns: Some(31_000_000),
            p50_ns: Some(33_000_000),
            max_ns: Some(41_000_000),
            deviation_ns: Some(1_234_567.0),
        };
        let delay = Durations {
            n: 98,
            mean_ns: Some(4e6),
            min_ns: Some(1_000_000),
            p50_ns: Some(4_000_000),
            max_ns: Some(9_000_000),
            deviation_ns: Some(0.0),
        };
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
            rate_hz: Some(30.0),
            period,
            subscriptions: vec![subscription],
        };
        let callbacks = vec![CallbackFigures {
            name: "/detector callback /image".into(),
            function: Some("Detector::on_image".into()),
            duration: delay,
        }];
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
            "/detector callback /image Detector::on_image 98 4.00 9.00",
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
