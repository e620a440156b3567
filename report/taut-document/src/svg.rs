//! Charts and lanes as still pictures. They look the same in an archive of build results, where scripts are often forbidden.

use std::collections::BTreeSet;

use crate::{
    Chart, Curve, Lanes, Mark, Tone,
    escape::{Form, escaped},
    lanes::LaneItem,
    scale::{Scale, tick},
    units,
    wrap::width,
};

const WIDTH: f64 = 1000.0;
/// Of a chart with its values upwards.
const HEIGHT: f64 = 226.0;
/// Room for ticks below; for a label of the axis.
const FOOT: f64 = 26.0;
const LABEL: f64 = 18.0;
/// Room for ticks at the left; for the names of a chart that lies on its side.
const LEFT: f64 = 74.0;
const NAMES: f64 = 330.0;
/// Columns of a name at most: its end says more than its beginning.
const NAME: usize = 38;
/// Where curves end: half of the last tick's width before the edge.
const RIGHT: f64 = WIDTH - 34.0;
/// Of a row of a chart that lies on its side; of a lane.
const ROW: f64 = 26.0;
const LANE: f64 = 34.0;
/// Of a character, at most, at the page's size of letters.
const CHARACTER: f64 = 8.0;

/// A chart; nothing where there is nothing to draw.
pub(crate) fn chart(chart: &Chart) -> String {
    let on_side = chart.is_on_its_side();
    let xs = || chart.curves.iter().flat_map(|curve| curve.xy.iter().map(|(x, _)| *x));
    let ys = chart.curves.iter().flat_map(values_of).chain(chart.limits.iter().map(|(value, _)| *value));
    let bars = chart.curves.iter().any(|curve| curve.mark == Mark::Bars);
    let (Some(x), Some(y)) = (Scale::of(&chart.x, xs(), false), Scale::of(&chart.y, ys, bars)) else {
        return String::new();
    };
    if chart.curves.iter().all(|curve| curve.xy.iter().all(|(_, y)| !y.is_finite())) {
        return String::new();
    }
    let (left, tall) = match on_side {
        true => (NAMES, chart.x.names.len() as f64 * ROW),
        false => (LEFT, HEIGHT),
    };
    let labels =
        (if on_side { &chart.x.label } else { &chart.y.label }, if on_side { &chart.y.label } else { &chart.x.label });
    let head = if labels.0.is_empty() { 8.0 } else { 8.0 + LABEL };
    let foot = if labels.1.is_empty() { FOOT } else { FOOT + LABEL };
    let mut picture = Picture { markup: String::new(), taken: Vec::new(), head, foot, tall };
    let frame = Frame { x, y, on_side, left, tall };
    if !labels.0.is_empty() {
        picture.text(0.0, 4.0 - head + LABEL / 2.0 + 2.0, "start", "", labels.0);
    }
    if !labels.1.is_empty() {
        picture.text(RIGHT, tall + foot - 5.0, "end", "", labels.1);
    }
    frame.bands(&mut picture, chart);
    frame.names_of_limits(&mut picture, chart);
    frame.grid(&mut picture, chart);
    for curve in chart.curves.iter().filter(|curve| curve.quiet).chain(chart.curves.iter().filter(|curve| !curve.quiet))
    {
        frame.curve(&mut picture, curve);
    }
    frame.limits(&mut picture, chart);
    let finding = chart.finding.plain();
    picture.finished(if chart.title.is_empty() { &finding } else { &chart.title })
}

fn values_of(curve: &Curve) -> Vec<f64> {
    let ends: &[(f64, f64)] = if let Mark::Range(ends) = &curve.mark { ends } else { &[] };
    curve.xy.iter().map(|(_, y)| *y).chain(ends.iter().flat_map(|(low, high)| [*low, *high])).collect()
}

/// The class that has a tone's colour.
pub(crate) fn class(tone: Tone) -> String {
    match tone {
        Tone::Plain => "plain".into(),
        Tone::Good => "good".into(),
        Tone::Bad => "bad".into(),
        Tone::Undecided => "undecided".into(),
        Tone::Quiet => "quiet".into(),
        Tone::Series(n) => format!("s{}", n % 8),
    }
}

/// Where values are on paper.
struct Frame<'a> {
    x: Scale<'a>,
    y: Scale<'a>,
    on_side: bool,
    left: f64,
    tall: f64,
}

impl Frame<'_> {
    fn across(&self, share: f64) -> f64 {
        self.left + share * (RIGHT - self.left)
    }

    /// From shares of both axes.
    fn place(&self, x: f64, y: f64) -> (f64, f64) {
        match self.on_side {
            true => (self.across(y), x * self.tall),
            false => (self.across(x), (1.0 - y) * self.tall),
        }
    }

    fn point(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some(self.place(self.x.at(x)?, self.y.at(y)?))
    }

    fn grid(&self, picture: &mut Picture, chart: &Chart) {
        let own_x = chart.curves.iter().flat_map(|curve| curve.xy.iter().map(|(x, _)| *x));
        let (xs, ys) = (self.x.ticks(own_x), self.y.ticks(std::iter::empty()));
        let (across, upwards) = if self.on_side { (ys, xs) } else { (xs, ys) };
        let (scale_across, scale_upwards) = if self.on_side { (&self.y, &self.x) } else { (&self.x, &self.y) };
        for (value, name) in upwards {
            let Some(share) = scale_upwards.at(value) else { continue };
            let y = if self.on_side { share * self.tall } else { (1.0 - share) * self.tall };
            if self.on_side {
                picture.text(self.left - 14.0, y + 4.0, "end", "", &end_of(&name));
            } else if picture.text(self.left - 8.0, y + 4.0, "end", "", &name) {
                picture.rule(self.left, y, RIGHT, y);
            }
        }
        for (value, name) in across {
            let Some(share) = scale_across.at(value) else { continue };
            let (at, half) = (self.across(share), width(&name) as f64 * CHARACTER / 2.0);
            let middle = at.min(WIDTH - half).max(half);
            if picture.text(middle, self.tall + 18.0, "middle", "", &name) && self.on_side {
                picture.rule(at, 0.0, at, self.tall);
            }
        }
    }

    fn bands(&self, picture: &mut Picture, chart: &Chart) {
        for band in &chart.bands {
            let scale = if band.vertical { &self.x } else { &self.y };
            let (from, to) = (scale.held(band.from), scale.held(band.to));
            let (a, b) = match band.vertical {
                true => (self.place(from, 0.0), self.place(to, 1.0)),
                false => (self.place(0.0, from), self.place(1.0, to)),
            };
            let (left, top) = (a.0.min(b.0), a.1.min(b.1));
            let (wide, tall) = ((a.0 - b.0).abs(), (a.1 - b.1).abs());
            picture.markup += &format!(
                "<rect class=\"band\" x=\"{left:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{tall:.1}\"><title>{}</title></rect>",
                escape(&band.label)
            );
            picture.text(left + 4.0, top + 12.0, "start", "", &band.label);
        }
    }

    fn limits(&self, picture: &mut Picture, chart: &Chart) {
        for share in chart.limits.iter().filter_map(|(value, _)| self.y.at(*value)) {
            picture.line("limit", self.place(0.0, share), self.place(1.0, share));
        }
    }

    /// They matter more than ticks and come first.
    fn names_of_limits(&self, picture: &mut Picture, chart: &Chart) {
        for (value, label) in &chart.limits {
            let Some(share) = self.y.at(*value) else { continue };
            let (from, to) = (self.place(0.0, share), self.place(1.0, share));
            let label = format!("{label} {}", tick(chart.y.quantity, *value));
            let half = width(&label) as f64 * CHARACTER / 2.0;
            match self.on_side {
                true => picture.text(from.0.min(WIDTH - half).max(half), self.tall + 18.0, "middle", "", &label),
                false => {
                    picture.text(RIGHT - 4.0, to.1 - 5.0, "end", "", &label)
                        || picture.text(RIGHT - 4.0, to.1 + 13.0, "end", "", &label)
                }
            };
        }
    }

    fn curve(&self, picture: &mut Picture, curve: &Curve) {
        let class = format!(
            "{}{}{}",
            class(curve.tone),
            if curve.quiet { " thin" } else { "" },
            if curve.dashed { " dashed" } else { "" }
        );
        match &curve.mark {
            Mark::Line | Mark::Steps => self.stretches(picture, curve, &class),
            Mark::Points => self.points(picture, curve, &class),
            Mark::Bars => self.bars(picture, curve, &class),
            Mark::Range(ends) => {
                for ((x, y), (low, high)) in curve.xy.iter().zip(ends) {
                    let Some(at) = self.x.at(*x) else { continue };
                    let (low, high) = (self.place(at, self.y.held(*low)), self.place(at, self.y.held(*high)));
                    picture.line(&format!("range {class}"), low, high);
                    if let Some((x, y)) = self.point(*x, *y) {
                        picture.markup +=
                            &format!("<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4.5\"/>");
                    }
                }
            }
        }
    }

    fn stretches(&self, picture: &mut Picture, curve: &Curve, class: &str) {
        let mut stretch: Vec<(f64, f64)> = Vec::new();
        for at in 0..=curve.xy.len() {
            let point = curve.xy.get(at).and_then(|(x, y)| self.point(*x, *y));
            match point {
                Some((x, y)) => {
                    let before = stretch.last().copied().filter(|_| curve.mark == Mark::Steps);
                    stretch.extend(before.map(|(_, before)| (x, before)));
                    stretch.push((x, y));
                }
                None if stretch.is_empty() => {}
                None if stretch.len() == 1 => {
                    let (x, y) = stretch.remove(0);
                    picture.markup += &format!("<circle class=\"dot {class}\" cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"3.5\"/>");
                }
                None => {
                    let points: Vec<String> = stretch.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
                    picture.markup += &format!("<polyline class=\"curve {class}\" points=\"{}\"/>", points.join(" "));
                    stretch.clear();
                }
            }
        }
    }

    /// One path of dots; those that fall on one place are one.
    fn points(&self, picture: &mut Picture, curve: &Curve, class: &str) {
        let places = curve.xy.iter().filter_map(|(x, y)| self.point(*x, *y));
        let places: BTreeSet<(i64, i64)> = places.map(|(x, y)| (x.round() as i64, y.round() as i64)).collect();
        let path: String = places.iter().map(|(x, y)| format!("M{x} {y}h0")).collect();
        let size = if places.len() > 60 { "points" } else { "points few" };
        picture.markup += &format!("<path class=\"{size} {class}\" d=\"{path}\"/>");
    }

    fn bars(&self, picture: &mut Picture, curve: &Curve, class: &str) {
        let zero = self.y.held(0.0);
        for (at, (x, y)) in curve.xy.iter().enumerate().filter(|(_, (_, y))| y.is_finite()) {
            let Some(from) = self.x.at(*x) else { continue };
            let end = self.y.held(*y);
            if self.on_side {
                let ((left, middle), (right, _)) = (self.place(from, zero), self.place(from, end));
                picture.markup += &format!(
                    "<rect class=\"column {class}\" x=\"{:.1}\" y=\"{:.1}\" width=\"{:.1}\" height=\"14\"/>",
                    left.min(right),
                    middle - 7.0,
                    (right - left).abs().max(1.0)
                );
            } else if let Some((next, _)) = curve.xy.get(at + 1).filter(|_| *y != 0.0) {
                let ((left, bottom), (right, top)) = (self.place(from, zero), self.place(self.x.held(*next), end));
                // A hairline between neighbours, where there is room for one.
                let wide = if right - left > 4.0 { right - left - 1.0 } else { (right - left).max(0.5) };
                picture.markup += &format!(
                    "<rect class=\"column {class}\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"{:.1}\"/>",
                    top.min(bottom),
                    (bottom - top).abs().max(1.0)
                );
            }
        }
    }
}

/// Markup under way, and where its texts are: none covers another.
struct Picture {
    markup: String,
    taken: Vec<[f64; 4]>,
    head: f64,
    foot: f64,
    tall: f64,
}

impl Picture {
    fn rule(&mut self, x1: f64, y1: f64, x2: f64, y2: f64) {
        self.line("grid", (x1, y1), (x2, y2));
    }

    fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64)) {
        self.markup += &format!(
            "<line class=\"{class}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" y2=\"{:.1}\"/>",
            from.0, from.1, to.0, to.1
        );
    }

    /// Writes a text unless it would cover another or leave the picture; whether it did.
    fn text(&mut self, x: f64, y: f64, anchor: &str, class: &str, text: &str) -> bool {
        let wide = width(text) as f64 * CHARACTER;
        let left = match anchor {
            "start" => x,
            "end" => x - wide,
            _ => x - wide / 2.0,
        };
        let [left, top, right, bottom] = [left, y - 10.0, left + wide, y + 3.0];
        let meets = |of: &[f64; 4]| left < of[2] + 4.0 && of[0] < right + 4.0 && top < of[3] && of[1] < bottom;
        let is_outside = left < -1.0 || right > WIDTH + 1.0 || top < -self.head || bottom > self.tall + self.foot;
        if text.is_empty() || is_outside || self.taken.iter().any(meets) {
            return false;
        }
        self.taken.push([left, top, right, bottom]);
        let class = if class.is_empty() { String::new() } else { format!(" class=\"{class}\"") };
        self.markup +=
            &format!("<text{class} x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escape(text));
        true
    }

    fn finished(self, title: &str) -> String {
        let (top, tall) = (-self.head, self.tall + self.head + self.foot);
        format!(
            "<svg role=\"img\" viewBox=\"0 {top:.0} {WIDTH:.0} {tall:.0}\" class=\"drawn\"><title>{}</title>{}</svg>",
            escape(title),
            self.markup
        )
    }
}

/// What textures are drawn with; a page has them once.
pub(crate) fn textures() -> String {
    let stripes = |at: usize, turn: u32| {
        format!(
            "<pattern id=\"texture-{at}\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" \
             patternTransform=\"rotate({turn})\"><rect class=\"gap\" width=\"2.4\" height=\"6\"/></pattern>"
        )
    };
    let dots = "<pattern id=\"texture-5\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\">\
                <circle class=\"gap\" cx=\"3\" cy=\"3\" r=\"1.7\"/></pattern>";
    let all: String = (1..).zip([45, 135, 0, 90]).map(|(at, turn)| stripes(at, turn)).collect();
    format!("<svg class=\"textures\" aria-hidden=\"true\"><defs>{all}{dots}</defs></svg>")
}

/// A sample of a class, for a key.
pub(crate) fn swatch(of: &crate::Class) -> String {
    let rect = "<rect width=\"16\" height=\"12\" rx=\"2\"";
    let over = match of.texture {
        0 => String::new(),
        texture => format!("{rect} fill=\"url(#texture-{texture})\"/>"),
    };
    let class = class(of.tone);
    format!(
        "<svg class=\"ground {class}\" viewBox=\"0 0 16 12\" aria-hidden=\"true\">{rect} class=\"piece\"/>{over}</svg>"
    )
}

/// An item of lanes: what each row did, the pieces that matter on it, and moments across all.
pub(crate) fn lanes(lanes: &Lanes, item: &LaneItem) -> String {
    let length = item.to_ns.saturating_sub(item.from_ns).max(1) as f64;
    let tall = item.rows.len() as f64 * LANE;
    let mut picture = Picture { markup: String::new(), taken: Vec::new(), head: 22.0, foot: 24.0, tall };
    let x = |ns: u64| (ns.saturating_sub(item.from_ns) as f64 / length).min(1.0) * WIDTH;
    let rect = |class: &str, from: u64, to: u64, top: f64, tall: f64, text: &str| {
        let wide = (x(to) - x(from)).max(0.7);
        format!(
            "<rect class=\"{class}\" x=\"{:.1}\" y=\"{top:.1}\" width=\"{wide:.1}\" height=\"{tall}\"><title>{}</title></rect>",
            x(from),
            escape(text)
        )
    };
    let rows = item.rows.len();
    for state in item.states.iter().filter(|state| state.row < rows) {
        let top = state.row as f64 * LANE;
        let (top, tall) =
            if state.activity == crate::Activity::Waiting { (top + 20.0, 2.0) } else { (top + 16.0, 10.0) };
        let took = units::duration(state.to_ns.saturating_sub(state.from_ns));
        let class = format!("state {}", state.activity.word().split(' ').next().unwrap_or(""));
        picture.markup +=
            &rect(&class, state.from_ns, state.to_ns, top, tall, &format!("{} {took}", state.activity.word()));
    }
    for piece in item.pieces.iter().filter(|piece| piece.row < rows) {
        let top = piece.row as f64 * LANE;
        let (class, name, texture) = match lanes.classes.get(piece.class) {
            Some(of) => (class(of.tone), of.name.as_str(), of.texture),
            None => (class(Tone::Quiet), "", 0),
        };
        let drawn = rect(&format!("piece {class}"), piece.from_ns, piece.to_ns, top + 12.0, 18.0, &piece.text);
        if texture > 0 {
            let over =
                drawn.replacen(&format!("class=\"piece {class}\""), &format!("fill=\"url(#texture-{texture})\""), 1);
            picture.markup += &drawn;
            picture.markup += &over;
        } else {
            picture.markup += &drawn;
        }
        if x(piece.to_ns) - x(piece.from_ns) > (width(name) + 2) as f64 * CHARACTER {
            picture.text(x(piece.from_ns) + 5.0, top + 25.0, "start", &format!("on {class}"), name);
        }
    }
    for (at, row) in item.rows.iter().enumerate() {
        let name = if row.group.is_empty() { row.name.clone() } else { format!("{}: {}", row.group, row.name) };
        picture.text(2.0, at as f64 * LANE + 9.0, "start", "row", &end_of(&name));
    }
    for (ns, name) in &item.moments {
        picture.line("moment", (x(*ns), -4.0), (x(*ns), tall));
        let half = width(name) as f64 * CHARACTER / 2.0;
        picture.text(x(*ns).min(WIDTH - half).max(half), -8.0, "middle", "", &end_of(name));
    }
    for part in 0..=4u32 {
        let at = WIDTH * f64::from(part) / 4.0;
        let anchor = ["start", "middle", "middle", "middle", "end"][part as usize];
        picture.text(at, tall + 16.0, anchor, "", &tick(crate::Quantity::Instant, length * f64::from(part) / 4.0));
    }
    picture.finished(&item.title.plain())
}

fn end_of(name: &str) -> String {
    if width(name) <= NAME {
        return name.to_owned();
    }
    let fits = |end: &&str| width(end) < NAME;
    let end = name.char_indices().map(|(at, _)| &name[at..]).find(fits).unwrap_or("");
    format!("…{end}")
}

fn escape(text: &str) -> String {
    escaped(text, Form::Markup)
}
