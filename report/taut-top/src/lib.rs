//! A running session on a terminal: chains, hops, causes, threads, of the last seconds, live. [`run`] takes the
//! terminal and gives it back, whatever ends it. What is shown is [`taut_live::State`]; what the user looks at of it
//! is [`View`]; `draw` makes a picture of both. `docs/reference/top.md` is for people.

mod draw;
mod terminal;
mod view;

pub use draw::draw;
pub use terminal::{Ended, run};
pub use view::{Action, Focus, Page, Sort, View};
