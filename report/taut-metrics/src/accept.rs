//! What a scraper asks for, by its Accept header (RFC 9110 section 12.5.1).

/// A form of exposition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Length-delimited `io.prometheus.client.MetricFamily`, with native histograms.
    Protobuf,
    /// OpenMetrics 1.0.
    OpenMetrics,
    /// Prometheus's text format 0.0.4: the default.
    Text,
}

impl Form {
    /// The form of the highest weight; of equal ones the first that is named.
    pub fn of(accept: &str) -> Form {
        let mut best = (0.0, Form::Text);
        for range in accept.split(',') {
            let mut words = range.split(';').map(str::trim);
            let media = words.next().unwrap_or_default().to_ascii_lowercase();
            let parameters: Vec<(String, &str)> = words
                .filter_map(|word| word.split_once('='))
                .map(|(key, value)| (key.trim().to_ascii_lowercase(), value.trim().trim_matches('"')))
                .collect();
            let of = |key: &str| parameters.iter().find(|(known, _)| known == key).map(|(_, value)| *value);
            let form = match media.as_str() {
                "application/vnd.google.protobuf"
                    if of("proto") == Some("io.prometheus.client.MetricFamily")
                        && of("encoding") == Some("delimited") =>
                {
                    Form::Protobuf
                }
                "application/openmetrics-text" if of("version").is_none_or(|version| version.starts_with('1')) => {
                    Form::OpenMetrics
                }
                "text/plain" | "text/*" | "*/*" => Form::Text,
                _ => continue,
            };
            let weight = of("q").map_or(1.0, |q| q.parse::<f64>().unwrap_or(0.0));
            if weight > best.0 {
                best = (weight, form);
            }
        }
        best.1
    }

    /// For the answer's Content-Type.
    pub fn content_type(self) -> &'static str {
        match self {
            Form::Protobuf => {
                "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited"
            }
            Form::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
            Form::Text => "text/plain; version=0.0.4; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prometheus_with_native_histograms_gets_protobuf() {
        let accept = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited;q=0.6,\
                      application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,\
                      text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        assert_eq!(Form::of(accept), Form::Protobuf);
    }

    #[test]
    fn the_highest_weight_decides_and_unknown_forms_do_not() {
        assert_eq!(Form::of("application/openmetrics-text; version=1.0.0, text/plain;q=0.5"), Form::OpenMetrics);
        assert_eq!(Form::of("text/plain;q=0.9, application/openmetrics-text;q=0.1"), Form::Text);
        assert_eq!(Form::of("application/vnd.google.protobuf;proto=another.Message;encoding=delimited"), Form::Text);
        assert_eq!(Form::of("application/openmetrics-text;version=2.0.0"), Form::Text);
        assert_eq!(Form::of("application/openmetrics-text;q=0"), Form::Text);
        assert_eq!((Form::of(""), Form::of("text/html, */*;q=0.1")), (Form::Text, Form::Text));
    }
}
