//! Prometheus's protobuf exposition: `io.prometheus.client.MetricFamily`, each with its length before it, histograms
//! native and classic at once. Field numbers: prometheus/client_model, `io/prometheus/client/metrics.proto`.

use prost::Message;
use taut_live::{BUCKETS, Spread};

use crate::{Family, Values, families::Labels, text::CLASSIC};

/// What lies below every bucket: durations are whole nanoseconds, so only 0 does.
const ZERO_THRESHOLD_NS: f64 = 0.5;

#[derive(Clone, PartialEq, Message)]
struct MetricFamily {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    help: Option<String>,
    /// 0 counter, 1 gauge, 4 histogram.
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
    #[prost(message, repeated, tag = "4")]
    metric: Vec<Metric>,
    #[prost(string, optional, tag = "5")]
    unit: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(message, repeated, tag = "1")]
    label: Vec<Label>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<Number>,
    #[prost(message, optional, tag = "3")]
    counter: Option<Number>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<Histogram>,
}

#[derive(Clone, PartialEq, Message)]
struct Label {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

/// A gauge's or a counter's value.
#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
struct Histogram {
    #[prost(uint64, optional, tag = "1")]
    sample_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    sample_sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    bucket: Vec<Bucket>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(uint64, optional, tag = "7")]
    zero_count: Option<u64>,
    #[prost(message, repeated, tag = "12")]
    positive_span: Vec<Span>,
    /// Each count less the one before it.
    #[prost(sint64, repeated, packed = "false", tag = "13")]
    positive_delta: Vec<i64>,
}

#[derive(Clone, PartialEq, Message)]
struct Bucket {
    #[prost(uint64, optional, tag = "1")]
    cumulative_count: Option<u64>,
    #[prost(double, optional, tag = "2")]
    upper_bound: Option<f64>,
}

/// Buckets in a row.
#[derive(Clone, PartialEq, Message)]
struct Span {
    /// The first one's index; of later spans, how many buckets lie between.
    #[prost(sint32, optional, tag = "1")]
    offset: Option<i32>,
    #[prost(uint32, optional, tag = "2")]
    length: Option<u32>,
}

/// The families, one after the other.
pub fn native(families: &[Family]) -> Vec<u8> {
    families.iter().flat_map(|family| message(family).encode_length_delimited_to_vec()).collect()
}

fn message(family: &Family) -> MetricFamily {
    let number = |value: f64| Some(Number { value: Some(value) });
    let (kind, metric) = match &family.values {
        Values::Counter(series) => (0, all(series, |value, to| to.counter = number(*value as f64))),
        Values::Gauge(series) => (1, all(series, |value, to| to.gauge = number(*value))),
        Values::Histogram(series) => (4, all(series, |spread, to| to.histogram = Some(histogram(spread)))),
    };
    // Here samples have no names of their own.
    let total = if kind == 0 { "_total" } else { "" };
    MetricFamily {
        name: Some(format!("{}{total}", family.name)),
        help: Some(family.help.to_owned()),
        kind: Some(kind),
        metric,
        unit: Some(family.unit.to_owned()).filter(|unit| !unit.is_empty()),
    }
}

fn all<T>(series: &[(Labels, T)], fill: impl Fn(&T, &mut Metric)) -> Vec<Metric> {
    let one = |(labels, value): &(Labels, T)| {
        let label = |(name, value): &(&str, String)| Label { name: Some((*name).into()), value: Some(value.clone()) };
        let mut metric = Metric { label: labels.iter().map(label).collect(), ..Metric::default() };
        fill(value, &mut metric);
        metric
    };
    series.iter().map(one).collect()
}

fn histogram(spread: &Spread) -> Histogram {
    let classic = CLASSIC
        .iter()
        .map(|bound| Bucket { cumulative_count: Some(spread.up_to(*bound)), upper_bound: Some(*bound as f64) });
    let mut histogram = Histogram {
        sample_count: Some(spread.count()),
        sample_sum: Some(spread.sum_ns() as f64),
        bucket: classic.collect(),
        schema: Some(BUCKETS.scale() as i32),
        zero_threshold: Some(ZERO_THRESHOLD_NS),
        zero_count: Some(spread.zeros()),
        ..Histogram::default()
    };
    let mut next = None;
    let mut before = 0;
    for (index, count) in spread.buckets() {
        // OpenTelemetry's bucket i, which ours are, is Prometheus's i + 1.
        let index = index + 1;
        match (next, histogram.positive_span.last_mut()) {
            (Some(next), Some(Span { length: Some(length), .. })) if next == index => *length += 1,
            _ => histogram.positive_span.push(Span { offset: Some(index - next.unwrap_or(0)), length: Some(1) }),
        }
        histogram.positive_delta.push(count as i64 - before);
        (next, before) = (Some(index + 1), count as i64);
    }
    histogram
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_and_deltas_read_back_as_the_buckets() {
        let mut spread = Spread::default();
        [0, 1, 1_000, 1_000, 1_015, 5_000_000, 5_000_000, 5_000_000].into_iter().for_each(|ns| spread.record(ns));
        let histogram = histogram(&spread);
        let (mut index, mut count, mut read) = (0, 0, Vec::new());
        let mut deltas = histogram.positive_delta.iter();
        for span in &histogram.positive_span {
            index += span.offset();
            for _ in 0..span.length() {
                count += deltas.next().unwrap();
                read.push((index - 1, count as u64));
                index += 1;
            }
        }
        assert_eq!(deltas.next(), None);
        assert_eq!(read, spread.buckets().collect::<Vec<_>>());
        assert!(histogram.positive_span.len() >= 3, "neighbours share a span, others do not");
        assert_eq!((histogram.zero_count(), histogram.sample_count()), (1, 8));
        assert!(histogram.zero_threshold() < BUCKETS.bounds(-1).0, "0 and nothing else is below the buckets");
    }
}
