//! What is known of the clocks of some pairs of hosts → what follows for all of them.
//!
//! At a moment a pair states two difference constraints: o_j − o_i ≤ high, and o_i − o_j ≤ −low. The tightest bound that follows for two
//! hosts is the shortest path between them (difference constraints as a graph: Shostak 1981; all of them: Floyd 1962). So a host without
//! messages to the reference is reached through others, and a circle of hosts may bound what no pair does. A circle of negative length
//! is a contradiction.

use std::collections::BTreeMap;

use super::align::{Alignment, Drift, KNOT_NS, Knot, MOST_KNOTS, Piece, ROUNDING_NS};

/// Two hosts of which messages say something, the first with the lower number.
#[derive(Clone, Copy, Debug)]
pub struct Link<'a> {
    /// Their numbers.
    pub hosts: (usize, usize),
    /// The offset of the second one's clock from the first one's, over the first one's.
    pub alignment: &'a Alignment,
    /// Its typical bound; links with small ones lead to other hosts.
    pub bound_ns: Option<u64>,
}

/// All hosts, each reached from host 0.
#[derive(Debug)]
pub struct Network<'a> {
    links: Vec<Link<'a>>,
    /// By which link a host is reached; `None` of host 0.
    by: Vec<Option<usize>>,
}

/// What all pairs say together.
#[derive(Debug, Default)]
pub struct Closed {
    /// Of each two hosts, the lower number first: the offset of the second one's clock from the first one's, over the clock of host 0.
    pub between: BTreeMap<(usize, usize), Alignment>,
    /// Moments that were looked at.
    pub moments: u64,
    /// Those at which the pairs contradict each other: nothing is known there.
    pub contradicted: u64,
}

/// `at[i * hosts + j]`: the offset of j's clock from i's is at most this.
type Matrix = Vec<f64>;

impl<'a> Network<'a> {
    /// # Errors
    /// A host that no link leads to.
    pub fn new(hosts: usize, links: Vec<Link<'a>>) -> Result<Network<'a>, usize> {
        let mut by = vec![None; hosts];
        let is_reached = |by: &[Option<usize>], host: usize| host == 0 || by[host].is_some();
        for _ in 1..hosts {
            let leads = |(_, link): &(usize, &Link<'a>)| is_reached(&by, link.hosts.0) != is_reached(&by, link.hosts.1);
            let next = links.iter().enumerate().filter(leads).min_by_key(|(_, link)| link.bound_ns.unwrap_or(u64::MAX));
            if let Some((number, link)) = next {
                let new = if is_reached(&by, link.hosts.0) { link.hosts.1 } else { link.hosts.0 };
                by[new] = Some(number);
            }
        }
        match (0..hosts).find(|host| !is_reached(&by, *host)) {
            Some(host) => Err(host),
            None => Ok(Network { links, by }),
        }
    }

    /// The host through which this one is reached, and the link.
    fn towards_first(&self, host: usize) -> Option<(usize, Link<'a>)> {
        let link = self.links[self.by[host]?];
        Some((link.hosts.0 + link.hosts.1 - host, link))
    }

    /// The hosts between host 0 and this one, on the way that was chosen.
    pub fn through(&self, host: usize) -> Vec<usize> {
        let next = |host: &usize| self.towards_first(*host).map(|(next, _)| next);
        let mut through: Vec<usize> = std::iter::successors(next(&host), next).filter(|host| *host != 0).collect();
        through.reverse();
        through
    }

    /// Host 0's clock when this one's shows `raw_ns`, as far as it is known.
    pub fn first_of(&self, host: usize, raw_ns: i64) -> i64 {
        let Some((next, link)) = self.towards_first(host) else { return raw_ns };
        let there = match link.hosts.1 == host {
            true => link.alignment.a_of(raw_ns),
            false => link.alignment.at(raw_ns).map(|known| raw_ns + known.offset_ns),
        };
        self.first_of(next, there.unwrap_or(raw_ns))
    }

    /// This host's clock when host 0's shows `at_ns`, as far as it is known.
    fn of_first(&self, host: usize, at_ns: i64) -> i64 {
        let Some((next, link)) = self.towards_first(host) else { return at_ns };
        let there = self.of_first(next, at_ns);
        let own = match link.hosts.1 == host {
            true => link.alignment.at(there).map(|known| there + known.offset_ns),
            false => link.alignment.a_of(there),
        };
        own.unwrap_or(there)
    }

    /// All of it together.
    pub fn close(&self) -> Closed {
        let hosts = self.by.len();
        if let [link] = self.links[..]
            && link.hosts == (0, 1)
            && hosts == 2
        {
            return Closed { between: BTreeMap::from([((0, 1), link.alignment.clone())]), ..Closed::default() };
        }
        let mut closed = Closed::default();
        let mut growing: BTreeMap<(usize, usize), Growing> = BTreeMap::new();
        for moments in self.moments() {
            for at_ns in moments {
                let possible = self.possible(at_ns).map(|(possible, _)| possible);
                closed.moments += 1;
                closed.contradicted += u64::from(possible.is_none());
                for (first, second) in pairs(hosts) {
                    let side = |from: usize, to: usize| {
                        possible.as_ref().map(|of| of[from * hosts + to]).filter(|side| side.is_finite())
                    };
                    let low_ns = side(second, first).map(|side| (-side - ROUNDING_NS).floor() as i64);
                    let high_ns = side(first, second).map(|side| (side + ROUNDING_NS).ceil() as i64);
                    growing.entry((first, second)).or_default().grow(Knot { at_ns, low_ns, high_ns });
                }
            }
            growing.values_mut().for_each(Growing::cut);
        }
        for (of, growing) in growing {
            let ((low, high), change) = self.rates(of);
            let piece = |knots: Vec<Knot>| Piece {
                from_ns: knots[0].at_ns,
                to_ns: knots[knots.len() - 1].at_ns,
                change,
                rates: (low, high),
                knots,
            };
            let pieces = growing.done.into_iter().map(piece).collect();
            closed.between.insert(of, Alignment { pieces, ..Alignment::default() });
        }
        closed
    }

    /// Moments of host 0's clock to look at, apart at each step of a clock.
    fn moments(&self) -> Vec<Vec<i64>> {
        let first_of = |link: &Link<'a>, at_ns: i64| self.first_of(link.hosts.0, at_ns);
        let pieces = || self.links.iter().flat_map(|link| link.alignment.pieces.iter().map(move |piece| (link, piece)));
        let from = pieces().map(|(link, piece)| first_of(link, piece.from_ns)).min().unwrap_or(0);
        let to = pieces().map(|(link, piece)| first_of(link, piece.to_ns)).max().unwrap_or(0);
        let mut gaps: Vec<(i64, i64)> = Vec::new();
        for link in &self.links {
            let between = link.alignment.pieces.windows(2);
            gaps.extend(between.map(|two| (first_of(link, two[0].to_ns), first_of(link, two[1].from_ns))));
        }
        gaps.sort_unstable();
        // A step that several pairs show is where all of them have it.
        let mut cuts: Vec<(i64, i64)> = Vec::new();
        for gap in gaps {
            match cuts.last_mut() {
                Some(last) if gap.0 <= last.1 => *last = (gap.0, gap.1.min(last.1)),
                _ => cuts.push(gap),
            }
        }
        let step = KNOT_NS.max((to - from) / MOST_KNOTS);
        // A step is on the clock of one host, of which another one's moment is known to its bound.
        let inset = |at_ns: i64| self.possible(at_ns).map_or(0, |(_, away_ns)| away_ns.ceil() as i64 + 1);
        let begins = std::iter::once(from).chain(cuts.iter().map(|cut| cut.1 + inset(cut.1)));
        let ends = cuts.iter().map(|cut| cut.0 - inset(cut.0)).chain([to]);
        let stretch = |(from, to): (i64, i64)| -> Vec<i64> {
            let count = (to - from).max(-1) / step;
            let inner = (0..=count).map(|number| from + number * step).filter(|at| *at < to);
            if from > to { Vec::new() } else { inner.chain([to]).collect() }
        };
        begins.zip(ends).map(stretch).collect()
    }

    /// What is possible at this moment of host 0's clock, and by how much another host's moment can be wrong. `None`: nothing is, since
    /// the pairs contradict each other.
    fn possible(&self, at_ns: i64) -> Option<(Matrix, f64)> {
        let hosts = self.by.len();
        let raw: Vec<i64> = (0..hosts).map(|host| self.of_first(host, at_ns)).collect();
        let first = shortest(self.stated(&raw, 0.0), hosts)?;
        // A pair states its offset over a clock of which the moment is known to a bound. In it the offset moves by the rate; on a path
        // each pair may, which widens the bound itself by less than a hundredth.
        let away = |host: usize| {
            let (offset, high, low) = ((raw[host] - at_ns) as f64, first[host], -first[host * hosts]);
            (high - offset).max(offset - low)
        };
        let most = 1.01 * (1..hosts).map(away).filter(|away| away.is_finite()).fold(0.0, f64::max);
        let drift = Drift::default();
        Some((shortest(self.stated(&raw, most * (drift.most + drift.change)), hosts)?, most))
    }

    /// What each pair states by itself; a host's moment may be wrong by what moves an offset by `away`.
    fn stated(&self, raw: &[i64], away: f64) -> Matrix {
        let hosts = self.by.len();
        let mut stated = vec![f64::INFINITY; hosts * hosts];
        (0..hosts).for_each(|host| stated[host * hosts + host] = 0.0);
        for link in &self.links {
            let (first, second) = link.hosts;
            let Some(knot) = link.alignment.knot(raw[first]) else { continue };
            let away = if first == 0 { 0.0 } else { away };
            let mut state = |from: usize, to: usize, side: Option<i64>| {
                if let Some(side) = side {
                    stated[from * hosts + to] = side as f64 + away;
                }
            };
            state(first, second, knot.high_ns);
            state(second, first, knot.low_ns.map(|low| -low));
        }
        stated
    }

    /// The rates between two hosts over host 0's clock, and how far a moment's may be from them.
    fn rates(&self, (first, second): (usize, usize)) -> ((f64, f64), f64) {
        let (of_first, of_second) = (self.rate(first), self.rate(second));
        let rates = (of_second.0.0 - of_first.0.1, of_second.0.1 - of_first.0.0);
        (rates, of_first.1 + of_second.1)
    }

    /// The rates of this host's clock against host 0's, by the way that leads to it.
    fn rate(&self, host: usize) -> ((f64, f64), f64) {
        let Some((next, link)) = self.towards_first(host) else { return ((0.0, 0.0), 0.0) };
        let pieces = || link.alignment.pieces.iter();
        let low = pieces().map(|piece| piece.rates.0).fold(f64::INFINITY, f64::min);
        let high = pieces().map(|piece| piece.rates.1).fold(f64::NEG_INFINITY, f64::max);
        let change = pieces().map(|piece| piece.change).fold(0.0, f64::max);
        let (low, high) = match link.hosts.1 == host {
            true => (low, high),
            false => (1.0 / (1.0 + high) - 1.0, 1.0 / (1.0 + low) - 1.0),
        };
        let (before, before_change) = self.rate(next);
        let both = |one: f64, other: f64| (1.0 + one) * (1.0 + other) - 1.0;
        ((both(before.0, low), both(before.1, high)), before_change + change)
    }
}

/// Of so many hosts, each two.
pub fn pairs(hosts: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..hosts).flat_map(move |first| (first + 1..hosts).map(move |second| (first, second)))
}

/// The shortest path from each host to each; `None` where a circle has a negative length.
fn shortest(mut lengths: Matrix, hosts: usize) -> Option<Matrix> {
    for over in 0..hosts {
        for from in 0..hosts {
            for to in 0..hosts {
                let by = lengths[from * hosts + over] + lengths[over * hosts + to];
                lengths[from * hosts + to] = lengths[from * hosts + to].min(by);
            }
        }
    }
    (0..hosts).all(|host| lengths[host * hosts + host] >= -ROUNDING_NS * hosts as f64).then_some(lengths)
}

/// Knots of two hosts, cut where there is none, or where one side ends.
#[derive(Default)]
struct Growing {
    done: Vec<Vec<Knot>>,
    is_cut: bool,
}

impl Growing {
    fn grow(&mut self, knot: Knot) {
        let sides = |knot: &Knot| (knot.low_ns.is_some(), knot.high_ns.is_some());
        if sides(&knot) == (false, false) {
            return self.cut();
        }
        match self.done.last_mut() {
            Some(last) if !self.is_cut && sides(&last[0]) == sides(&knot) => last.push(knot),
            _ => self.done.push(vec![knot]),
        }
        self.is_cut = false;
    }

    fn cut(&mut self) {
        self.is_cut = true;
    }
}
