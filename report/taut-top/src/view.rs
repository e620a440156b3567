//! What the display shows, and the effect of keys. Without a terminal.

use ratatui::crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use taut_live::{Chain, State, Thread};

/// Which list the arrow keys move in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Focus {
    /// Chains.
    #[default]
    Chains,
    /// Hops of the chosen chain.
    Hops,
    /// Threads.
    Threads,
}

/// What fills the terminal.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Page {
    /// All of it, a little of each.
    #[default]
    Overview,
    /// One hop of the chosen chain.
    Hop,
    /// One thread.
    Thread,
}

/// In which order chains and threads stand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sort {
    /// Most messages first; threads that ran most.
    #[default]
    Rate,
    /// Highest p99 first; threads that waited most for a CPU.
    Tail,
    /// Most dropped messages first; threads as in [`Sort::Tail`].
    Drops,
    /// By name.
    Name,
}

impl Sort {
    /// For the head of the list.
    pub fn word(self) -> &'static str {
        match self {
            Sort::Rate => "rate",
            Sort::Tail => "p99",
            Sort::Drops => "drops",
            Sort::Name => "name",
        }
    }

    fn next(self) -> Sort {
        match self {
            Sort::Rate => Sort::Tail,
            Sort::Tail => Sort::Drops,
            Sort::Drops => Sort::Name,
            Sort::Name => Sort::Rate,
        }
    }
}

/// What a key asks for beyond the view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing.
    None,
    /// To end.
    Quit,
    /// Keep the next minute as a recording.
    Keep,
}

/// The user's choices.
#[derive(Clone, Debug, Default)]
pub struct View {
    /// Where the arrow keys move.
    pub focus: Focus,
    /// What is shown.
    pub page: Page,
    /// The order.
    pub sort: Sort,
    /// Whether the picture stands still.
    pub is_paused: bool,
    /// Whether figures are those since the start, not of the last seconds.
    pub is_total: bool,
    /// Whether the keys are explained.
    pub is_help: bool,
    /// Whether there are colours.
    pub has_colour: bool,
    /// By name, so that it stays chosen when the order changes; the first one if it is none that there is.
    pub chain: String,
    /// Number of the hop.
    pub hop: usize,
    /// Tid.
    pub thread: i32,
}

impl View {
    /// The chains in order.
    pub fn chains<'s>(&self, state: &'s State) -> Vec<&'s Chain> {
        let mut chains: Vec<&Chain> = state.chains.iter().collect();
        let rank = |chain: &Chain| {
            let figures = chain.recently().0;
            match self.sort {
                Sort::Rate => figures.messages(),
                Sort::Tail => figures.way.quantile_ns(0.99).unwrap_or(0),
                Sort::Drops => figures.dropped(),
                Sort::Name => 0,
            }
        };
        chains.sort_by_cached_key(|chain| (std::cmp::Reverse(rank(chain)), chain.name.clone()));
        chains
    }

    /// The chosen chain.
    pub fn chain<'s>(&self, state: &'s State) -> Option<&'s Chain> {
        let chains = self.chains(state);
        chains.iter().find(|chain| chain.name == self.chain).or(chains.first()).copied()
    }

    /// The threads in order.
    pub fn threads<'s>(&self, state: &'s State) -> Vec<&'s Thread> {
        let mut threads: Vec<&Thread> = state.threads.iter().collect();
        let rank = |thread: &Thread| {
            let states = thread.recently();
            let of = |words: &[&str]| words.iter().filter_map(|word| states.get(word)).sum::<u64>();
            match self.sort {
                Sort::Rate => of(&["running"]),
                Sort::Tail | Sort::Drops => of(&["preempted", "woken", "waiting"]),
                Sort::Name => 0,
            }
        };
        threads.sort_by_cached_key(|thread| (std::cmp::Reverse(rank(thread)), thread.name.clone()));
        threads
    }

    /// The chosen thread.
    pub fn thread<'s>(&self, state: &'s State) -> Option<&'s Thread> {
        let threads = self.threads(state);
        threads.iter().find(|thread| thread.tid == self.thread).or(threads.first()).copied()
    }

    /// What a key does.
    pub fn key(&mut self, key: KeyEvent, state: &State) -> Action {
        if key.modifiers.contains(KeyModifiers::CONTROL) {
            return if key.code == KeyCode::Char('c') { Action::Quit } else { Action::None };
        }
        if self.is_help {
            self.is_help = false;
            return Action::None;
        }
        match key.code {
            KeyCode::Char('q') => return Action::Quit,
            KeyCode::Char('r') => return Action::Keep,
            KeyCode::Char('?' | 'h') => self.is_help = true,
            KeyCode::Char('p' | ' ') => self.is_paused = !self.is_paused,
            KeyCode::Char('s') => self.sort = self.sort.next(),
            KeyCode::Char('t') => self.is_total = !self.is_total,
            KeyCode::Tab => self.turn_focus(1),
            KeyCode::BackTab => self.turn_focus(2),
            KeyCode::Up | KeyCode::Char('k') => self.move_by(-1, state),
            KeyCode::Down | KeyCode::Char('j') => self.move_by(1, state),
            KeyCode::Home => self.move_by(isize::MIN / 2, state),
            KeyCode::End => self.move_by(isize::MAX / 2, state),
            KeyCode::Enter | KeyCode::Right => self.enter(),
            KeyCode::Esc | KeyCode::Left | KeyCode::Backspace => self.page = Page::Overview,
            _ => {}
        }
        Action::None
    }

    fn turn_focus(&mut self, by: usize) {
        const ORDER: [Focus; 3] = [Focus::Chains, Focus::Hops, Focus::Threads];
        let at = ORDER.iter().position(|focus| *focus == self.focus).unwrap_or(0);
        self.focus = ORDER[(at + by) % ORDER.len()];
        self.page = Page::Overview;
    }

    fn enter(&mut self) {
        match self.focus {
            Focus::Chains => (self.focus, self.hop) = (Focus::Hops, 0),
            Focus::Hops => self.page = Page::Hop,
            Focus::Threads => self.page = Page::Thread,
        }
    }

    fn move_by(&mut self, by: isize, state: &State) {
        let moved = |at: usize, count: usize| at.saturating_add_signed(by).min(count.saturating_sub(1));
        match self.focus {
            Focus::Chains => {
                let chains = self.chains(state);
                let at = chains.iter().position(|chain| chain.name == self.chain).unwrap_or(0);
                if let Some(chain) = chains.get(moved(at, chains.len())) {
                    (self.chain, self.hop) = (chain.name.clone(), 0);
                }
            }
            Focus::Hops => {
                let hops = self.chain(state).map_or(0, |chain| chain.points.len().saturating_sub(1));
                self.hop = moved(self.hop, hops);
            }
            Focus::Threads => {
                let threads = self.threads(state);
                let at = threads.iter().position(|thread| thread.tid == self.thread).unwrap_or(0);
                if let Some(thread) = threads.get(moved(at, threads.len())) {
                    self.thread = thread.tid;
                }
            }
        }
    }
}
