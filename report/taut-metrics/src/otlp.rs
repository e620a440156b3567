//! OTLP: `ExportMetricsServiceRequest` with exponential histograms, all sums since the recording's start. Field
//! numbers: open-telemetry/opentelemetry-proto 1.x, `metrics/v1/metrics.proto` and its neighbours.

use prost::{Message, Oneof};
use taut_live::{BUCKETS, Spread, State};
use taut_recording::Info;

use crate::{Family, Values, families, families::Labels};

/// AGGREGATION_TEMPORALITY_CUMULATIVE.
const CUMULATIVE: i32 = 2;

#[derive(Clone, PartialEq, Message)]
struct Request {
    #[prost(message, repeated, tag = "1")]
    resource_metrics: Vec<ResourceMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct ResourceMetrics {
    #[prost(message, optional, tag = "1")]
    resource: Option<Resource>,
    #[prost(message, repeated, tag = "2")]
    scope_metrics: Vec<ScopeMetrics>,
}

#[derive(Clone, PartialEq, Message)]
struct Resource {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    key: String,
    #[prost(message, optional, tag = "2")]
    value: Option<AnyValue>,
}

#[derive(Clone, PartialEq, Message)]
struct AnyValue {
    #[prost(string, optional, tag = "1")]
    string_value: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
struct ScopeMetrics {
    #[prost(message, optional, tag = "1")]
    scope: Option<Scope>,
    #[prost(message, repeated, tag = "2")]
    metrics: Vec<Metric>,
}

#[derive(Clone, PartialEq, Message)]
struct Scope {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    version: String,
}

#[derive(Clone, PartialEq, Message)]
struct Metric {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(string, tag = "2")]
    description: String,
    #[prost(string, tag = "3")]
    unit: String,
    #[prost(oneof = "Data", tags = "5, 7, 10")]
    data: Option<Data>,
}

#[derive(Clone, PartialEq, Oneof)]
enum Data {
    #[prost(message, tag = "5")]
    Gauge(Gauge),
    #[prost(message, tag = "7")]
    Sum(Sum),
    #[prost(message, tag = "10")]
    ExponentialHistogram(ExponentialHistogram),
}

#[derive(Clone, PartialEq, Message)]
struct Gauge {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<Number>,
}

#[derive(Clone, PartialEq, Message)]
struct Sum {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<Number>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
    #[prost(bool, tag = "3")]
    is_monotonic: bool,
}

#[derive(Clone, PartialEq, Message)]
struct Number {
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(oneof = "Value", tags = "4, 6")]
    value: Option<Value>,
    #[prost(message, repeated, tag = "7")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, Copy, PartialEq, Oneof)]
enum Value {
    #[prost(double, tag = "4")]
    Double(f64),
    #[prost(sfixed64, tag = "6")]
    Int(i64),
}

#[derive(Clone, PartialEq, Message)]
struct ExponentialHistogram {
    #[prost(message, repeated, tag = "1")]
    data_points: Vec<HistogramPoint>,
    #[prost(int32, tag = "2")]
    aggregation_temporality: i32,
}

#[derive(Clone, PartialEq, Message)]
struct HistogramPoint {
    #[prost(message, repeated, tag = "1")]
    attributes: Vec<Attribute>,
    #[prost(fixed64, tag = "2")]
    start_time_unix_nano: u64,
    #[prost(fixed64, tag = "3")]
    time_unix_nano: u64,
    #[prost(fixed64, tag = "4")]
    count: u64,
    #[prost(double, optional, tag = "5")]
    sum: Option<f64>,
    #[prost(sint32, tag = "6")]
    scale: i32,
    #[prost(fixed64, tag = "7")]
    zero_count: u64,
    #[prost(message, optional, tag = "8")]
    positive: Option<Buckets>,
    #[prost(double, optional, tag = "12")]
    min: Option<f64>,
    #[prost(double, optional, tag = "13")]
    max: Option<f64>,
}

/// All buckets from the first to the last that hold something.
#[derive(Clone, PartialEq, Message)]
struct Buckets {
    #[prost(sint32, tag = "1")]
    offset: i32,
    #[prost(uint64, repeated, tag = "2")]
    bucket_counts: Vec<u64>,
}

/// The body of a push; `None` while nothing is known yet.
pub fn otlp(state: &State) -> Option<Vec<u8>> {
    let info = state.info.as_ref()?;
    let times = Times {
        start_ns: info.start_realtime_ns,
        now_ns: info.start_realtime_ns + state.until_ns.saturating_sub(info.start_monotonic_ns),
    };
    let metrics = families(state).iter().map(|family| times.metric(family)).collect();
    let scope = Scope { name: "taut".to_owned(), version: env!("CARGO_PKG_VERSION").to_owned() };
    let scope_metrics = vec![ScopeMetrics { scope: Some(scope), metrics }];
    let resource = Some(Resource { attributes: resource(info) });
    Some(Request { resource_metrics: vec![ResourceMetrics { resource, scope_metrics }] }.encode_to_vec())
}

fn resource(info: &Info) -> Vec<Attribute> {
    let command = info.command.join(" ");
    let facts = [
        ("service.name", "taut"),
        ("service.version", &info.taut_version),
        ("host.name", &info.host),
        ("process.command_line", &command),
    ];
    facts.into_iter().filter(|(_, value)| !value.is_empty()).map(|(key, value)| attribute(key, value)).collect()
}

fn attribute(key: &str, value: &str) -> Attribute {
    Attribute { key: key.to_owned(), value: Some(AnyValue { string_value: Some(value.to_owned()) }) }
}

fn attributes(labels: &Labels) -> Vec<Attribute> {
    labels.iter().map(|(key, value)| attribute(key, value)).collect()
}

/// CLOCK_REALTIME, ns since 1970.
struct Times {
    start_ns: u64,
    now_ns: u64,
}

impl Times {
    fn metric(&self, family: &Family) -> Metric {
        let data = match &family.values {
            Values::Counter(series) => Data::Sum(Sum {
                data_points: series.iter().map(|(l, value)| self.number(l, Value::Int(*value as i64))).collect(),
                aggregation_temporality: CUMULATIVE,
                is_monotonic: true,
            }),
            Values::Gauge(series) => Data::Gauge(Gauge {
                data_points: series.iter().map(|(labels, value)| self.number(labels, Value::Double(*value))).collect(),
            }),
            Values::Histogram(series) => Data::ExponentialHistogram(ExponentialHistogram {
                data_points: series.iter().map(|(labels, spread)| self.histogram(labels, spread)).collect(),
                aggregation_temporality: CUMULATIVE,
            }),
        };
        // UCUM's words for units, and names without them.
        let (suffix, unit) = if family.unit.is_empty() { ("", "1") } else { ("_nanoseconds", "ns") };
        let name = family.name.strip_suffix(suffix).unwrap_or(family.name).replace('_', ".");
        Metric { name, description: family.help.to_owned(), unit: unit.to_owned(), data: Some(data) }
    }

    fn number(&self, labels: &Labels, value: Value) -> Number {
        Number {
            start_time_unix_nano: self.start_ns,
            time_unix_nano: self.now_ns,
            value: Some(value),
            attributes: attributes(labels),
        }
    }

    fn histogram(&self, labels: &Labels, spread: &Spread) -> HistogramPoint {
        let offset = spread.buckets().next().map_or(0, |(index, _)| index);
        let mut bucket_counts = Vec::new();
        for (index, count) in spread.buckets() {
            bucket_counts.resize((index - offset) as usize, 0);
            bucket_counts.push(count);
        }
        HistogramPoint {
            attributes: attributes(labels),
            start_time_unix_nano: self.start_ns,
            time_unix_nano: self.now_ns,
            count: spread.count(),
            sum: Some(spread.sum_ns() as f64),
            scale: BUCKETS.scale() as i32,
            zero_count: spread.zeros(),
            positive: Some(Buckets { offset, bucket_counts }),
            min: spread.min_ns().map(|ns| ns as f64),
            max: spread.max_ns().map(|ns| ns as f64),
        }
    }
}
