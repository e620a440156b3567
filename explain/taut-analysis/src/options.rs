//! What the user declares and asks for.

/// What the user declares in `taut.toml`.
#[derive(Clone, Debug, Default)]
pub struct Config {
    /// Declared chains; points that none of them names are still inferred into chains.
    pub chains: Vec<DeclaredChain>,
    /// Chains of an earlier stretch of the same stream: they keep their points in this one, also those that are
    /// missing, and are no error where they match nothing.
    pub followed: Vec<DeclaredChain>,
    /// Whether this is a stretch of a longer stream, of which others are analysed too: a message then has the same number in all of
    /// them.
    pub is_stretch: bool,
    /// What to explain beyond the default.
    pub explain: ExplainOptions,
}

/// What `taut explain` is asked for.
#[derive(Clone, Debug)]
pub struct ExplainOptions {
    /// How many of the worst messages come with their path.
    pub worst: usize,
    /// Messages that come with their path besides.
    pub messages: Vec<u64>,
    /// Every message that took at least so long comes with its path besides.
    pub from_ns: Option<u64>,
    /// Further hypotheses to judge: "lock:NAME", "gil", "hop:NAME", "process:NAME", "irq" …
    pub hypotheses: Vec<String>,
    /// What to predict the chain without besides, each with one or several words as in `hypotheses`.
    pub without: Vec<Vec<String>>,
    /// Which messages are explained; without it, those that missed the deadline, or else the tail.
    pub above: Option<Above>,
    /// Instead of the declared chains' deadlines, end to end.
    pub deadline_ns: Option<u64>,
    /// Whether every message's time by cause is wanted.
    pub all: bool,
    /// Whether every message's time is wanted, the program's apart from the machine's.
    pub sides: bool,
    /// Whether only causes are wanted: no hypotheses, predictions and recommendations.
    pub only_causes: bool,
    /// Whether only rows are wanted, and nothing is explained.
    pub only_rows: bool,
}

impl Default for ExplainOptions {
    fn default() -> ExplainOptions {
        ExplainOptions {
            worst: 10,
            messages: Vec::new(),
            from_ns: None,
            hypotheses: Vec::new(),
            without: Vec::new(),
            above: None,
            deadline_ns: None,
            all: false,
            sides: false,
            only_causes: false,
            only_rows: false,
        }
    }
}

/// The messages above this are explained.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Above {
    /// E.g. 0.95.
    Quantile(f64),
    /// End to end.
    Ns(u64),
}

/// A chain by the user's word.
#[derive(Clone, Debug)]
pub struct DeclaredChain {
    /// Its name in reports.
    pub name: String,
    /// Its points in order, at least two.
    pub points: Vec<String>,
    /// End to end.
    pub deadline_ns: Option<u64>,
}
