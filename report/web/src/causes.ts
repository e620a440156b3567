// Cause shares of the tail, responsible parties, hypotheses, predictions, recommendations.

import type { CauseShare, Chain } from "./data";
import { bar, h, table } from "./dom";
import * as f from "./format";

/** Causes of one colour: the thread's own time, what others took, locks, the way to the CPU, waits. */
const families: Record<string, string> = {
  cpu: "own", syscall: "own", preempted: "taken", throttled: "taken", stopped: "taken", hypervisor: "taken", irq: "taken",
  lock: "lock", gil: "lock", wakeup: "way", timer_slack: "way", page_fault: "way",
  io: "wait", sleep: "wait", disk: "wait", queued: "wait", executor: "wait", network: "wait", unknown: "unknown",
};
export const family = (cause: string): string => families[cause] ?? "unknown";
const named = (share: { cause: string; detail: string }): string => share.detail ? `${share.cause} ${share.detail}` : share.cause;

/** A bar of all shares side by side, as wide as `whole` of the page. The table beside it says the same. */
export function stack(shares: CauseShare[], whole = 1): HTMLElement {
  const shown = shares.filter((share) => share.tail_share > 0.002);
  // Growth of flex items is relative only where it sums to one or more.
  const sum = shown.reduce((a, share) => a + share.tail_share, 0);
  const text = shown.map((share) => `${named(share)} ${f.percent(share.tail_share)}`).join(", ");
  return h("div", { class: "stack", role: "img", "aria-label": text || "nothing", style: `width:${(100 * whole).toFixed(2)}%` },
    ...shown.map((share) => h("span", {
      class: `c-${family(share.cause)}`, style: `flex-grow:${((100 * share.tail_share) / sum).toFixed(2)}`, title: `${named(share)}: ${f.percent(share.tail_share)} of the tail`,
    }, (whole * share.tail_share) / sum > 0.07 ? share.cause : "")));
}

/** The shares of one cause with all its details. */
function byCause(shares: CauseShare[]): CauseShare[] {
  const sums = new Map<string, CauseShare>();
  for (const share of shares) {
    const sum = sums.get(share.cause);
    if (sum) sums.set(share.cause, { ...sum, tail_share: sum.tail_share + share.tail_share, time_ns: (sum.time_ns + share.time_ns) as CauseShare["time_ns"] });
    else sums.set(share.cause, { ...share, detail: "" });
  }
  return [...sums.values()].sort((a, b) => b.tail_share - a.tail_share);
}

function sentence(chain: Chain): string {
  const { quantile, messages, limit_ns, selected } = chain.tail;
  if (selected === "none") return "There are too few messages for a tail.";
  if (messages === 0) return `No message took longer than ${f.duration(limit_ns)}.`;
  const parts = chain.by_cause.filter((share) => share.tail_share >= 0.01).slice(0, 3);
  const tail = selected === "deadline" ? `the ${f.count(messages)} messages that missed the deadline of ${f.duration(limit_ns)}`
    : quantile === null ? `the ${f.count(messages)} messages above ${f.duration(limit_ns)}`
    : `the ${f.count(messages)} messages above ${f.quantile(quantile)} (${f.duration(limit_ns)})`;
  if (parts[0] === undefined || parts[0].cause === "unknown") return `The cause of ${tail} is mostly unknown: only kernel events show it (the full tier of taut record).`;
  return `Excess of ${tail} over typical messages, by cause: ${parts.map((share) => `${share.cause} ${f.percent(share.tail_share)}`).join(", ")}.`;
}

export function causeSection(chain: Chain): HTMLElement {
  const blind = chain.causes.every((share) => share.cause === "unknown");
  if (chain.tail.messages === 0 || blind) return h("div", {}, h("p", { class: "aside" }, sentence(chain)));
  const row = (name: string, share: CauseShare, kind: "cause" | "party" | "sum"): (HTMLElement | string)[] => [
    kind === "cause" ? h("span", {}, h("span", { class: `dot c-${family(share.cause)}`, "aria-hidden": "true" }), name)
      : h("span", { class: kind }, name),
    h("span", { class: "with-bar" }, bar(share.tail_share, "tail"), f.percent(share.tail_share)),
    f.milliseconds(share.time_ns), f.milliseconds((share.typical_ns * chain.tail.messages) as CauseShare["typical_ns"]),
    kind === "sum" ? "" : f.count(share.messages),
  ];
  const sum = (shares: CauseShare[]): CauseShare => shares.reduce((all, share) => ({
    ...all, tail_share: all.tail_share + share.tail_share, time_ns: (all.time_ns + share.time_ns) as CauseShare["time_ns"],
    typical_ns: (all.typical_ns + share.typical_ns) as CauseShare["typical_ns"],
  }), { cause: "", detail: "", tail_share: 0, time_ns: 0, typical_ns: 0, messages: 0 } as unknown as CauseShare);
  const isShown = (share: CauseShare): boolean => share.tail_share >= 0.01;
  const rows = chain.by_cause.filter(isShown).flatMap((cause) => {
    const parties = chain.causes.filter((share) => share.cause === cause.cause);
    if (parties.length === 1) return [row(named(parties[0] ?? cause), cause, "cause")];
    const shown = parties.filter(isShown).slice(0, 6);
    const rest = parties.filter((share) => !shown.includes(share));
    return [row(cause.cause, cause, "cause"), ...shown.map((share) => row(share.detail || "no party", share, "party")),
      ...(shown.length > 0 && rest.length > 0 ? [row(`${rest.length} other${rest.length === 1 ? "" : "s"}`, { ...sum(rest) }, "sum")] : [])];
  });
  const others = chain.by_cause.filter((share) => !isShown(share));
  if (others.length > 0) rows.push(row("other", sum(others), "sum"));
  rows.push(row("total", sum(chain.by_cause), "sum"));
  return h("div", {},
    h("p", { class: "tail-sentence" }, sentence(chain)),
    stack(chain.by_cause),
    table("Excess latency of the explained messages by cause, compared with typical messages", ["cause", "share of the excess", "in them (ms)", "typical (ms)", "messages"], rows),
    chain.tail.selected === "deadline" ? "" : h("p", { class: "quiet" }, `Messages of up to ${f.duration(chain.tail.limit_ns)} were not examined.`),
    modes(chain), hopStacks(chain), partyTable(chain), hypothesisList(chain), predictionTable(chain), recommendationList(chain));
}

/** Messages that stand apart above the main mode of the distribution. */
function modes(chain: Chain): HTMLElement | string {
  if (chain.modes.length === 0) return "";
  const causes = (mode: Chain["modes"][number]): string =>
    mode.causes.map((c) => `${c.cause}${c.detail ? ` ${c.detail}` : ""} ${f.percent(c.share)}`).join(", ");
  return table("Modes of their own above the main one", ["messages", "share", "median (ms)", "from (ms)", "to (ms)", "excess over typical ones, by cause"],
    chain.modes.map((m) => [f.count(m.messages), f.percent(m.share), f.milliseconds(m.p50_ns), f.milliseconds(m.from_ns), f.milliseconds(m.to_ns), causes(m)]));
}

/** One stacked bar a hop, as long as the hop's share of the tail. */
function hopStacks(chain: Chain): HTMLElement | string {
  const rows = chain.hops.map((hop) => {
    const share = hop.causes.reduce((sum, cause) => sum + cause.tail_share, 0);
    const [from, to] = f.hopName(hop.from, hop.to);
    return { name: `${from} → ${to}`, share, causes: byCause(hop.causes) };
  }).filter((row) => row.share >= 0.005);
  if (rows.length < 2) return "";
  const widest = Math.max(...rows.map((row) => row.share));
  return table("Cause shares of the tail, hop by hop", ["hop", "share", "causes"],
    rows.map((row) => [row.name, f.percent(row.share), stack(row.causes, row.share / widest)]));
}

function partyTable(chain: Chain): HTMLElement | string {
  // A process with one responsible thread is listed once.
  const threads = chain.responsible.filter((c) => c.kind === "thread");
  const shown = chain.responsible.filter((c) => c.kind !== "process" || !threads.some((t) => t.name === c.name && t.time_ns === c.time_ns));
  if (shown.length === 0) return "";
  return table("Responsible for the tail's time", ["responsible", "ms", "messages of the tail", "causes"],
    shown.slice(0, 8).map((c) => [`${c.kind} ${c.name}`, f.milliseconds(c.time_ns), f.count(c.messages), c.causes.join(", ")]));
}

const RESULTS = { contributes: ["bad", "contributes"], does_not_contribute: ["good", "does not contribute"], undecided: ["undecided", "undecided"] } as const;

function hypothesisList(chain: Chain): HTMLElement | string {
  if (chain.hypotheses.length === 0) return "";
  return h("div", {}, h("h3", {}, "Hypotheses"), h("ul", { class: "results" }, ...chain.hypotheses.map((v) =>
    h("li", {}, h("span", { class: `badge ${RESULTS[v.result][0]}` }, RESULTS[v.result][1]), ` ${v.sentence}`))));
}

/** Measured against predicted, with the interval of the quantile that the change is of. */
function predictionTable(chain: Chain): HTMLElement | string {
  const first = chain.predictions[0];
  if (first === undefined) return "";
  const quantile = first.gain_quantile ?? 0.99;
  const at = (w: typeof first, q: number): typeof first.quantiles[number] | undefined => w.quantiles.find((p) => p.quantile === q);
  const most = Math.max(1, ...chain.predictions.flatMap((w) => w.quantiles.flatMap((p) => [p.before_ns, p.interval[1]])));
  const range = (from: number, to: number): HTMLElement => h("span", { class: "range", "aria-hidden": "true" },
    h("span", { style: `left:${((100 * from) / most).toFixed(1)}%;width:${Math.max(0.8, (100 * (to - from)) / most).toFixed(1)}%` }));
  const ms = (ns: Chain["deadline_ns"] | undefined): string => f.milliseconds(ns ?? null);
  const shown = [0.5, 0.95, 0.99];
  const measured = at(first, quantile)?.before_ns ?? 0;
  const rows = [["as measured", ...shown.map((q) => ms(at(first, q)?.before_ns)), "", "", range(measured, measured)],
    ...chain.predictions.map((w) => {
      const p = at(w, quantile);
      return [h("span", { title: w.assumption }, `without ${w.without}`), ...shown.map((q) => ms(at(w, q)?.after_ns)),
        p ? `${ms(p.interval[0])} – ${ms(p.interval[1])}` : "–", f.change(w.gain), p ? range(p.interval[0], p.interval[1]) : ""];
    })];
  const name = f.quantile(quantile);
  const how = chain.predictions.some((w) => w.replayed) ? "the recorded messages run again without the cause, and what queued behind it moves up" : "each assumes that nothing else takes the cause's place";
  return table(`Predicted: ${how} (bar: the interval of ${name})`, ["ms", "p50", "p95", "p99", `95 % interval of ${name}`, `change of ${name}`, ""], rows);
}

function recommendationList(chain: Chain): HTMLElement | string {
  if (chain.recommendations.length === 0) return "";
  return h("div", {}, h("h3", {}, "Recommendations"), h("ol", { class: "recommendations" }, ...chain.recommendations.map((r) =>
    h("li", {}, h("strong", {}, `${r.evidence}. `), Math.abs(r.gain) < 0.005 ? `${r.remedy}. ` : `${r.remedy} (${f.change(r.gain)} predicted). `, h("span", { class: "quiet" }, `To verify: ${r.verify}.`)))));
}
