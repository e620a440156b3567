//! Layout files for plotting tools, so that a recording's channels are on the screen when it is opened: for Foxglove
//! (and Lichtblick) JSON, for PlotJuggler XML. One tab or column a channel, one plot a quantity.

use std::fmt::Write;

use serde_json::{Map, Value, json};

use crate::escape::{Form, escaped};

/// More plots of a channel than this, or curves in a plot, nobody can read; the rest is in the tool's own list.
const MOST_PLOTS: usize = 6;
const MOST_CURVES: usize = 12;
/// Tableau's ten, and two greys: told apart also by people who see few colours.
const COLOURS: [&str; 12] = [
    "#4e79a7", "#f28e2b", "#e15759", "#76b7b2", "#59a14f", "#edc948", "#b07aa1", "#ff9da7", "#9c755f", "#bab0ac",
    "#444444", "#888888",
];

/// A channel, with the paths of its numbers: `joint[2].position`.
#[derive(Clone, Debug)]
pub struct ChannelPaths {
    /// E.g. "/telemetry/leg".
    pub topic: String,
    /// In the order of the schema.
    pub paths: Vec<String>,
}

/// One quantity: its name without indices, and the paths that differ in them only.
struct Plot<'a> {
    name: String,
    paths: Vec<&'a str>,
}

/// `taut.json`, to be opened in Foxglove by "Import from file".
pub fn foxglove(channels: &[ChannelPaths]) -> String {
    let mut configs = Map::new();
    let columns: Vec<Value> = channels
        .iter()
        .filter_map(|channel| {
            let panels = plots(channel).into_iter().map(|plot| {
                let id = format!("Plot!{}", configs.len() + 1);
                let paths: Vec<Value> = plot
                    .paths
                    .iter()
                    .map(|path| {
                        let value = format!("{}.{path}", quoted(&channel.topic));
                        json!({ "value": value, "enabled": true, "timestampMethod": "receiveTime" })
                    })
                    .collect();
                configs.insert(
                    id.clone(),
                    json!({
                        "title": format!("{} {}", channel.topic, plot.name),
                        "paths": paths,
                        "showXAxisLabels": true,
                        "showYAxisLabels": true,
                        "showLegend": true,
                        "legendDisplay": "floating",
                        "showPlotValuesInLegend": false,
                        "isSynced": true,
                        "xAxisVal": "timestamp",
                        "sidebarDimension": 240,
                    }),
                );
                Value::String(id)
            });
            split(panels.collect(), "column")
        })
        .collect();
    let layout = json!({
        "configById": configs,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": { "speed": 1 },
        "layout": split(columns, "row"),
    });
    format!("{layout:#}\n")
}

/// `taut.xml`, for PlotJuggler's "Load layout", or `plotjuggler -d RUN -l LAYOUT`.
pub fn plotjuggler(channels: &[ChannelPaths]) -> String {
    let mut xml = "<?xml version='1.0' encoding='UTF-8'?>\n<root>\n \
                   <tabbed_widget name=\"Main Window\" parent=\"main_window\">\n"
        .to_owned();
    for channel in channels {
        let plots = plots(channel);
        if plots.is_empty() {
            continue;
        }
        let share = vec![format!("{:.4}", 1.0 / plots.len() as f64); plots.len()].join(";");
        // Writing to a String does not fail.
        let _ = writeln!(
            xml,
            "  <Tab tab_name=\"{}\" containers=\"1\">\n   <Container>\n    \
             <DockSplitter orientation=\"-\" count=\"{}\" sizes=\"{share}\">",
            escaped(channel.topic.trim_start_matches('/'), Form::Markup),
            plots.len()
        );
        for plot in plots {
            let _ = writeln!(
                xml,
                "     <DockArea name=\"{}\">\n      <plot mode=\"TimeSeries\" style=\"Lines\">",
                escaped(&plot.name, Form::Markup)
            );
            for (path, colour) in plot.paths.iter().zip(COLOURS) {
                let series = format!("{}/{}", channel.topic, path.replace('.', "/"));
                let _ = writeln!(xml, "       <curve name=\"{}\" color=\"{colour}\"/>", escaped(&series, Form::Markup));
            }
            xml.push_str("      </plot>\n     </DockArea>\n");
        }
        xml.push_str("    </DockSplitter>\n   </Container>\n  </Tab>\n");
    }
    xml.push_str(
        "  <currentTabIndex index=\"0\"/>\n </tabbed_widget>\n <use_relative_time_offset enabled=\"1\"/>\n</root>\n",
    );
    xml
}

/// Paths that differ only in indices belong together.
fn plots(channel: &ChannelPaths) -> Vec<Plot<'_>> {
    let mut plots: Vec<Plot<'_>> = Vec::new();
    for path in &channel.paths {
        let name = without_indices(path);
        match plots.iter().position(|plot| plot.name == name) {
            Some(at) if plots[at].paths.len() < MOST_CURVES => plots[at].paths.push(path),
            Some(_) => {}
            None if plots.len() < MOST_PLOTS => plots.push(Plot { name, paths: vec![path] }),
            None => {}
        }
    }
    plots
}

fn without_indices(path: &str) -> String {
    let mut name = String::new();
    let mut depth = 0;
    for c in path.chars() {
        match c {
            '[' => depth += 1,
            ']' => depth -= 1,
            c if depth == 0 => name.push(c),
            _ => {}
        }
    }
    name
}

/// Panels side by side or on top of each other, as Foxglove nests them: in pairs.
fn split(mut panels: Vec<Value>, direction: &str) -> Option<Value> {
    let mut joined = panels.pop()?;
    let mut count = 1.0_f64;
    while let Some(panel) = panels.pop() {
        count += 1.0;
        joined = json!({
            "first": panel, "second": joined, "direction": direction, "splitPercentage": (1000.0 / count).round() / 10.0,
        });
    }
    Some(joined)
}

/// A topic as Foxglove's message paths have it: in quotes if anything else than letters, digits, `_`, `-` and `/` is in it.
fn quoted(topic: &str) -> String {
    if topic.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '/')) {
        return topic.to_owned();
    }
    format!("\"{}\"", topic.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use taut_recording::{Ending, Info, Writer, log::Log, ros2msg::Schema, telemetry::StructLayout};

    use super::*;

    /// A struct with everything that telemetry has, as a producer describes it.
    const LEG: &str = "name\tleg\n\
        type\tjoint\t16\n\
        constant\tmode\tSTOPPED\t0\nconstant\tmode\tPOSITION\t10\n\
        field\tposition\tfloat64\t0\t0\trad\n\
        field\ttorque\tfloat32\t0\t8\tN·m\n\
        field\tmode\tuint8\t0\t12\t\n\
        type\tleg\t64\n\
        field\tcycle\tuint64\t0\t0\t\n\
        field\tjoint\tstruct joint\t2\t8\t\n\
        field\tcontact\tbool\t4\t40\t\n\
        field\tstate\ttext8\t0\t44\t\n\
        field\tforce\tint16\t3\t52\tN\n";

    /// What `report/web/test/foxglove.test.mjs` reads by Foxglove's own parsers: 100 messages of a struct, a signal with
    /// dots in its name, and the layout.
    #[test]
    fn the_sample_recording_for_foxglove_s_parsers_is_written() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/sample-telemetry.mcap");
        let info = Info { start_realtime_ns: 1_700_000_000_000_000_000, ..Info::default() };
        let mut writer = Writer::create(path.as_ref(), &info).unwrap();
        let leg = StructLayout::parse(LEG, 64).unwrap();
        let channel = writer.channel("/telemetry/leg", &leg.schema_name, &leg.schema).unwrap();
        let value = StructLayout::parse("name\tknee\ntype\tvalue\t8\nfield\tvalue\tfloat64\t0\t0\t\n", 8).unwrap();
        let dotted = writer.channel("/value/leg1.knee", &value.schema_name, &value.schema).unwrap();
        for cycle in 0..100_u64 {
            let mut bytes = [0; 64];
            bytes[..8].copy_from_slice(&cycle.to_le_bytes());
            bytes[24..32].copy_from_slice(&(cycle as f64 / 4.0).to_le_bytes());
            bytes[32..36].copy_from_slice(&(cycle as f32 / 8.0).to_le_bytes());
            bytes[36] = 10;
            bytes[40] = u8::from(cycle % 2 == 1);
            bytes[44..48].copy_from_slice(b"trot");
            bytes[56..58].copy_from_slice(&(-(cycle as i16)).to_le_bytes());
            let time_ns = cycle * 2_500_000;
            writer.message(channel, time_ns, cycle as u32, |out| leg.encode(&bytes, out)).unwrap();
            let knee = (cycle as f64).to_le_bytes();
            writer.message(dotted, time_ns, cycle as u32, |out| value.encode(&knee, out)).unwrap();
            writer.flush_due(time_ns).unwrap();
        }
        writer.finish(&Ending::default()).unwrap();
        let log = Log::open(std::fs::File::open(path).unwrap()).unwrap();
        let paths = |schema: &str| Schema::parse(schema).unwrap().numbers(100);
        let channels: Vec<ChannelPaths> = log
            .channels()
            .into_iter()
            .map(|channel| ChannelPaths { topic: channel.topic.clone(), paths: paths(&channel.schema) })
            .collect();
        assert_eq!(channels.len(), 2);
        std::fs::write(std::path::Path::new(path).with_extension("foxglove.json"), foxglove(&channels)).unwrap();
        std::fs::write(std::path::Path::new(path).with_extension("plotjuggler.xml"), plotjuggler(&channels)).unwrap();
    }

    #[test]
    fn a_topic_with_dots_is_quoted_for_foxglove() {
        assert_eq!(quoted("/telemetry/leg_1-a"), "/telemetry/leg_1-a");
        assert_eq!(quoted("/value/leg1.knee"), "\"/value/leg1.knee\"");
        assert_eq!(quoted("/a\"b\\"), "\"/a\\\"b\\\\\"");
    }

    fn channels() -> Vec<ChannelPaths> {
        let paths = ["time_s", "joint[0].position", "joint[0].torque", "joint[1].position", "joint[1].torque"];
        vec![ChannelPaths { topic: "/telemetry/leg".into(), paths: paths.map(str::to_owned).into() }]
    }

    #[test]
    fn foxglove_gets_a_plot_for_each_quantity() {
        let layout: Value = serde_json::from_str(&foxglove(&channels())).unwrap();
        let paths = &layout["configById"]["Plot!2"]["paths"];
        assert_eq!(paths[0]["value"], "/telemetry/leg.joint[0].position");
        assert_eq!(paths[1]["value"], "/telemetry/leg.joint[1].position");
        assert_eq!(layout["layout"]["first"], "Plot!1");
        assert_eq!(layout["layout"]["second"]["direction"], "column");
    }

    #[test]
    fn plotjuggler_gets_a_tab_for_each_channel() {
        let xml = plotjuggler(&channels());
        assert!(xml.contains("<Tab tab_name=\"telemetry/leg\""), "{xml}");
        assert!(xml.contains("<curve name=\"/telemetry/leg/joint[1]/torque\" color=\"#f28e2b\"/>"), "{xml}");
        assert_eq!(xml.matches("<DockArea").count(), 3);
    }

    #[test]
    fn without_channels_a_layout_is_empty_and_whole() {
        let layout: Value = serde_json::from_str(&foxglove(&[])).unwrap();
        assert_eq!(layout["layout"], Value::Null);
        assert!(plotjuggler(&[]).ends_with("</root>\n"));
    }

    #[test]
    fn what_xml_cannot_hold_is_escaped() {
        let channel = ChannelPaths { topic: "/a<b&\"c\"".into(), paths: vec!["x".into()] };
        assert!(plotjuggler(&[channel]).contains("a&lt;b&amp;&quot;c&quot;"));
    }
}
