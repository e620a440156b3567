//! Which points make a chain: declared, or the line that most messages follow.

use foldhash::{HashMap, HashSet};
use taut_points::{Pass, PointId, Route, RouteKind};

use crate::{
    context::Context,
    error::Error,
    messages::{Message, Messages},
    options::{Config, DeclaredChain},
};

/// This share of the messages that got through decides how far the chain goes.
const SUPPORT: f64 = 0.1;

/// The main line of a chain, and what lies beside it.
pub(crate) struct ChainLine {
    pub name: String,
    pub declared: bool,
    /// What the source of its points says it is; `None` of messages that the program itself numbers.
    pub kind: Option<RouteKind>,
    pub deadline_ns: Option<u64>,
    /// Of a loop on a schedule: an activation that takes longer overruns.
    pub period_ns: Option<u64>,
    /// In order.
    pub points: Vec<PointId>,
    /// Every point of the chain's messages, those of the line included.
    pub family: HashSet<PointId>,
}

impl ChainLine {
    /// The chain's messages with their stamps, in order of start.
    pub fn messages<'a>(&self, messages: &'a Messages) -> Vec<(&'a Message, &'a [Pass])> {
        let mut of_chain: Vec<_> =
            messages.iter().filter(|(_, stamps)| self.family.contains(&stamps[0].point)).collect();
        of_chain.sort_by_key(|(_, stamps)| stamps[0].time_ns);
        of_chain
    }

    /// Which place on the line a point has.
    pub fn columns(&self) -> HashMap<PointId, usize> {
        self.points.iter().enumerate().map(|(at, point)| (*point, at)).collect()
    }
}

/// Chains, and points that are of none.
pub(crate) struct Lines {
    pub chains: Vec<ChainLine>,
    /// Lines of one point each.
    pub alone: Vec<ChainLine>,
}

/// How many messages took one path, and how many of them were not dropped.
#[derive(Default)]
struct Follow {
    messages: u64,
    applied: u64,
}

/// The declared chains, those that a source knows, then one for each family of points that none of them touches.
pub(crate) fn find(messages: &Messages, routes: &[Route], config: &Config, context: &Context) -> Result<Lines, Error> {
    let paths = paths(messages, context);
    let families = families(&paths);
    let mut known: HashMap<&str, Vec<PointId>> = HashMap::default();
    for (id, name) in context.points.iter().filter(|(id, _)| families.iter().any(|family| family.contains(id))) {
        known.entry(name).or_default().push(id);
    }
    known.values_mut().for_each(|ids| ids.sort_unstable());
    let mut lines = Vec::new();
    let mut alone = Vec::new();
    for chain in &config.chains {
        lines.push(declared(chain, &known, &families)?);
    }
    for route in routes {
        let family: HashSet<PointId> = route.points.iter().copied().collect();
        if lines.iter().all(|line: &ChainLine| line.family.is_disjoint(&family)) {
            let (name, points, kind) = (route.name.clone(), route.points.clone(), Some(route.kind));
            lines.push(ChainLine { name, declared: false, kind, deadline_ns: None, period_ns: None, points, family });
        }
    }
    for chain in &config.followed {
        lines.extend(followed(chain, &lines, &families, context));
    }
    for family in families {
        if lines.iter().any(|line: &ChainLine| !line.family.is_disjoint(&family)) {
            continue;
        }
        let points = main_line(&paths, &family);
        let line = |name| ChainLine {
            name,
            declared: false,
            kind: None,
            deadline_ns: None,
            period_ns: None,
            points: points.clone(),
            family,
        };
        match points.as_slice() {
            [first, .., last] => {
                // Who is stamped at one point only goes from the moment that is due to this point.
                let first = if points.len() > 2 { first.without_due() } else { *first };
                lines.push(line(format!("{} → {}", context.name(first), context.name(*last))));
            }
            [point] => alone.push(line(context.name(*point))),
            [] => {}
        }
    }
    Ok(Lines { chains: lines, alone })
}

fn declared(
    chain: &DeclaredChain,
    known: &HashMap<&str, Vec<PointId>>,
    families: &[HashSet<PointId>],
) -> Result<ChainLine, Error> {
    let ids = |point: &String| {
        known.get(point.as_str()).ok_or_else(|| Error::UnknownPoint {
            chain: chain.name.clone(),
            point: point.clone(),
            hint: hint(point, known),
        })
    };
    let ids = chain.points.iter().map(ids).collect::<Result<Vec<&Vec<PointId>>, Error>>()?;
    // Points of several chains may have one name (those of an imported trace do): such that belong together count.
    let in_family = |family: &HashSet<PointId>| -> Option<Vec<PointId>> {
        ids.iter().map(|ids| ids.iter().copied().find(|id| family.contains(id))).collect()
    };
    let together = families.iter().filter_map(in_family).min();
    let points = together.unwrap_or_else(|| ids.iter().map(|ids| ids[0]).collect());
    let family = families.iter().filter(|family| points.iter().any(|p| family.contains(p))).flatten().copied();
    let family: HashSet<PointId> = family.collect();
    let due = points.first().map(|first| first.as_due()).filter(|due| family.contains(due));
    Ok(ChainLine {
        name: chain.name.clone(),
        declared: true,
        kind: None,
        deadline_ns: chain.deadline_ns,
        period_ns: None,
        points: due.into_iter().chain(points).collect(),
        family,
    })
}

/// The line of a chain that was found or declared before, if it has a message that is not of another line.
fn followed(
    chain: &DeclaredChain,
    lines: &[ChainLine],
    families: &[HashSet<PointId>],
    context: &Context,
) -> Option<ChainLine> {
    // Several chains may have points of one name: those of one family belong together.
    let in_family = |family: &&HashSet<PointId>| {
        chain.points.iter().all(|point| context.points.iter().any(|(id, name)| name == point && family.contains(&id)))
    };
    let is_taken = |family: &&HashSet<PointId>| lines.iter().any(|line| !line.family.is_disjoint(family));
    let mut whole = families.iter().filter(in_family).filter(|family| !is_taken(family));
    let families = whole.next().map_or(families, std::slice::from_ref);
    let id = |point: &String| {
        let ids = || context.points.iter().filter(|(_, name)| name == point).map(|(id, _)| id);
        ids().find(|id| families.iter().any(|family| family.contains(id))).or_else(|| ids().min())
    };
    let points = chain.points.iter().map(id).collect::<Option<Vec<PointId>>>()?;
    let mine = families.iter().filter(|family| points.iter().any(|point| family.contains(point)));
    let family: HashSet<PointId> = mine.flatten().copied().collect();
    let is_free = lines.iter().all(|line| line.family.is_disjoint(&family));
    let (name, deadline_ns) = (chain.name.clone(), chain.deadline_ns);
    (is_free && !family.is_empty()).then_some(ChainLine {
        name,
        declared: false,
        kind: None,
        deadline_ns,
        period_ns: None,
        points,
        family,
    })
}

fn hint(point: &str, known: &HashMap<&str, Vec<PointId>>) -> String {
    let nearest = known.keys().max_by(|a, b| strsim::jaro_winkler(point, a).total_cmp(&strsim::jaro_winkler(point, b)));
    match nearest {
        Some(name) => format!("did you mean {name:?}?"),
        None => "the recording has no points".to_owned(),
    }
}

/// Every distinct path with how many messages took it.
fn paths(messages: &Messages, context: &Context) -> HashMap<Vec<PointId>, Follow> {
    // Each source may have a number of its own for it.
    let is_good = |(_, name): &(PointId, &str)| matches!(*name, "applied" | "ended_early");
    let applied: Vec<PointId> = context.points.iter().filter(is_good).map(|(id, _)| id).collect();
    let mut paths: HashMap<Vec<PointId>, Follow> = HashMap::default();
    let mut path = Vec::new();
    for (message, passes) in messages.iter() {
        path.clear();
        path.extend(passes.iter().map(|s| s.point));
        let follow = match paths.get_mut(&path) {
            Some(follow) => follow,
            None => paths.entry(path.clone()).or_default(),
        };
        follow.messages += 1;
        follow.applied += u64::from(message.outcome.is_some_and(|reason| applied.contains(&reason)));
    }
    paths
}

/// Points joined by passing messages: the connected components, in no order.
fn families(paths: &HashMap<Vec<PointId>, Follow>) -> Vec<HashSet<PointId>> {
    let mut families: Vec<HashSet<PointId>> = Vec::new();
    for path in paths.keys() {
        let mut joined: HashSet<PointId> = path.iter().copied().collect();
        families.retain(|family| {
            let apart = family.is_disjoint(&joined);
            if !apart {
                joined.extend(family);
            }
            apart
        });
        families.push(joined);
    }
    families
}

/// The points that most of the completing messages passed, in the order most of them did. A message
/// completes if it passes the chain's end: the last point of the majority among the messages that get
/// furthest. So a chain keeps its end even if most messages are dropped before it, and a detour that a
/// minority takes does not become part of it.
fn main_line(paths: &HashMap<Vec<PointId>, Follow>, family: &HashSet<PointId>) -> Vec<PointId> {
    let of_family = || paths.iter().filter(|(path, _)| family.contains(&path[0]));
    let any_applied = of_family().any(|(_, follow)| follow.applied > 0);
    let count = |follow: &Follow| if any_applied { follow.applied } else { follow.messages };
    let Some(end) = end_point(of_family().map(|(path, follow)| (path.as_slice(), count(follow)))) else {
        return Vec::new();
    };
    let completing: Vec<(&[PointId], u64)> = of_family()
        .filter(|(path, _)| path.contains(&end))
        .map(|(path, follow)| (path.as_slice(), count(follow)))
        .collect();
    let total: u64 = completing.iter().map(|(_, n)| n).sum();
    let mut points: Vec<PointId> = family.iter().copied().collect();
    points.retain(|point| 2 * passing(&completing, |path| path.contains(point)) > total);
    // By how many of the other points it mostly comes before: the order of the majority, whatever
    // single inversions the clock's error made.
    let before = |a: PointId, b: PointId| passing(&completing, |path| position(path, a) < position(path, b));
    let leads = |a: PointId| points.iter().filter(|b| before(a, **b) > before(**b, a)).count();
    let mut ordered: Vec<(usize, PointId)> = points.iter().map(|point| (leads(*point), *point)).collect();
    ordered.sort_by_key(|(leads, point)| (std::cmp::Reverse(*leads), *point));
    ordered.into_iter().map(|(_, point)| point).collect()
}

/// Where most of the messages end that pass as many points as [`SUPPORT`] of all do.
fn end_point<'a>(paths: impl Iterator<Item = (&'a [PointId], u64)>) -> Option<PointId> {
    let mut paths: Vec<_> = paths.filter(|(_, n)| *n > 0).collect();
    paths.sort_by_key(|(path, _)| std::cmp::Reverse(path.len()));
    let total: u64 = paths.iter().map(|(_, n)| n).sum();
    let mut ends: HashMap<PointId, u64> = HashMap::default();
    let mut so_far = 0;
    for (at, (path, n)) in paths.iter().enumerate() {
        *ends.entry(*path.last()?).or_default() += n;
        so_far += n;
        let longer_than_next = paths.get(at + 1).is_none_or(|(next, _)| next.len() < path.len());
        if longer_than_next && so_far as f64 >= SUPPORT * total as f64 {
            break;
        }
    }
    ends.into_iter().max_by_key(|(point, n)| (*n, std::cmp::Reverse(*point))).map(|(point, _)| point)
}

fn passing(paths: &[(&[PointId], u64)], what: impl Fn(&[PointId]) -> bool) -> u64 {
    paths.iter().filter(|(path, _)| what(path)).map(|(_, n)| n).sum()
}

/// Points that a path lacks come after all that it has.
fn position(path: &[PointId], point: PointId) -> usize {
    path.iter().position(|p| *p == point).unwrap_or(usize::MAX)
}
