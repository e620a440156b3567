//! A chart: curves over two axes, as data. Pages draw it on a canvas, stills as SVG.

use schemars::JsonSchema;
use serde::Serialize;

use crate::{Table, Text, Tone};

/// Curves over two axes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Chart {
    /// What it shows.
    pub title: String,
    /// What it shows, in one sentence.
    #[serde(skip)]
    pub finding: Text,
    /// Across; with names, the rows of a chart that lies on its side.
    pub x: Axis,
    /// Upwards; to the right in a chart that lies on its side.
    pub y: Axis,
    /// The last is drawn on top.
    pub curves: Vec<Curve>,
    /// Values of y with their names, such as a deadline.
    pub limits: Vec<(f64, String)>,
    /// Stretches of an axis with their names.
    pub bands: Vec<Band>,
    /// The same as figures.
    #[serde(skip)]
    pub table: Option<Table>,
    /// As wide as the page.
    pub wide: bool,
}

/// An axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Axis {
    /// What is measured along it; its title says the same when empty.
    pub label: String,
    /// How its values are printed.
    pub quantity: Quantity,
    /// How they are laid out.
    pub scale: AxisScale,
    /// Where it begins and ends; by the data when not given.
    pub range: Option<(f64, f64)>,
    /// Names of the whole numbers 0, 1, 2 …, for what has no order of its own.
    pub names: Vec<String>,
    /// Values with names instead of round ones, what matters most first.
    pub ticks: Vec<(f64, String)>,
}

/// How the values of an axis are laid out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub enum AxisScale {
    /// Equal steps.
    #[default]
    Linear,
    /// Equal factors.
    Log,
    /// Quantiles 0..1, the same room for each further nine.
    Nines,
}

/// What the values of an axis are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub enum Quantity {
    /// A length of time in ns.
    Time,
    /// ns since the beginning.
    Instant,
    /// Things.
    Count,
    /// 0..1.
    Share,
    /// B over A.
    Ratio,
    /// 1/s.
    Rate,
    /// Bytes.
    Bytes,
    /// No unit that is known.
    #[default]
    Plain,
    /// Days since 1970-01-01.
    Day,
}

/// Points of one name. A y that is no number is a gap.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Curve {
    /// Stands in the key; "" for one that is not listed.
    pub name: String,
    /// How it is drawn.
    pub mark: Mark,
    /// In the order of x.
    #[schemars(with = "Vec<(f64, Option<f64>)>")]
    pub xy: Vec<(f64, f64)>,
    /// Its colour.
    pub tone: Tone,
    /// With a broken line.
    pub dashed: bool,
    /// Drawn thin, behind the others.
    pub quiet: bool,
}

/// How a curve is drawn.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub enum Mark {
    /// Straight from point to point.
    #[default]
    Line,
    /// Along x first.
    Steps,
    /// Each by itself.
    Points,
    /// From 0 to y; on an axis with numbers from a point's x to the next point's.
    Bars,
    /// A point with its own (low, high) of y.
    Range(Vec<(f64, f64)>),
}

/// A stretch of an axis.
#[derive(Clone, Debug, Default, PartialEq, Serialize, JsonSchema)]
pub struct Band {
    /// Where it begins.
    pub from: f64,
    /// Where it ends.
    pub to: f64,
    /// What it is.
    pub label: String,
    /// A stretch of x; otherwise of y.
    pub vertical: bool,
}

impl Axis {
    /// An axis by its quantity and scale.
    pub fn new(quantity: Quantity, scale: AxisScale) -> Axis {
        Axis { quantity, scale, ..Axis::default() }
    }
}

impl Chart {
    /// Whether its rows have names: it is drawn with x downwards and y to the right.
    pub fn is_on_its_side(&self) -> bool {
        !self.x.names.is_empty()
    }
}
