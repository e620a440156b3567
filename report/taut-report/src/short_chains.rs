//! Chains of few messages, in one table.

use taut_analysis::Chain;

use crate::{
    Style,
    console::{hop_name, indent, table},
    points,
};

/// Chains of which nothing but delays is known.
pub(crate) fn short_chains(chains: &[&Chain], style: Style) -> String {
    if chains.is_empty() {
        return String::new();
    }
    let mut table = table(&points::SHORT_CHAINS);
    for chain in chains {
        for hop in &chain.hops {
            table.add_row([hop_name(&hop.from, &hop.to)].into_iter().chain(points::hop_row(chain, hop)));
        }
    }
    format!(
        "\n{}\n\n{}  What the slow ones waited for only kernel events show.\n",
        style.bold("Short chains"),
        indent(&table)
    )
}
