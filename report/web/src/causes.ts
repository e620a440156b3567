// Whose time it was: cause shares of the tail, who took it, verdicts, what-ifs, advice.

import type { CauseShare, Chain } from "./data";
import { bar, h, table } from "./dom";
import * as f from "./format";

/** Causes of one colour: the thread's own doing, what others took, locks, the way to the CPU, waits. */
const families: Record<string, string> = {
  work: "own", syscall: "own", preempted: "taken", throttled: "taken", stopped: "taken", hypervisor: "taken", irq: "taken",
  lock: "lock", gil: "lock", wakeup: "way", timer_slack: "way", page_fault: "way",
  io: "wait", sleep: "wait", disk: "wait", queued: "wait", unknown: "unknown",
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
  const { quantile, messages, limit_ns } = chain.tail;
  if (quantile === null || messages === 0) return "There are too few messages for a tail.";
  const parts = byCause(chain.causes).filter((share) => share.tail_share >= 0.01).slice(0, 3);
  const tail = `the ${f.count(messages)} messages above ${f.quantile(quantile)} (${f.duration(limit_ns)})`;
  if (parts[0] === undefined || parts[0].cause === "unknown") return `What ${tail} waited for is mostly unknown: only kernel events show it (the full tier of taut record).`;
  return `What ${tail} have and usual ones have not: ${parts.map((share) => `${share.cause} ${f.percent(share.tail_share)}`).join(", ")}.`;
}

export function causeSection(chain: Chain): HTMLElement {
  const blind = chain.causes.every((share) => share.cause === "unknown");
  if (chain.tail.messages === 0 || blind) return h("div", {}, h("p", { class: "aside" }, sentence(chain)));
  const shares = chain.causes.filter((share) => share.tail_share >= 0.005);
  const rows = shares.slice(0, 12).map((share) => [
    h("span", {}, h("span", { class: `dot c-${family(share.cause)}`, "aria-hidden": "true" }), named(share)),
    h("span", { class: "with-bar" }, bar(share.tail_share, "tail"), f.percent(share.tail_share)),
    f.milliseconds(share.time_ns), f.milliseconds((share.usual_ns * chain.tail.messages) as CauseShare["usual_ns"]),
  ]);
  return h("div", {},
    h("p", { class: "tail-sentence" }, sentence(chain)),
    stack(byCause(chain.causes)),
    table("What the tail's messages spent their time on beyond the usual message", ["cause", "share of the tail", "in the tail (ms)", "usual would be (ms)"], rows),
    hopStacks(chain), culpritTable(chain), verdictList(chain), whatIf(chain), advice(chain));
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

function culpritTable(chain: Chain): HTMLElement | string {
  // A process that is its only culpable thread over again is not said twice.
  const threads = chain.culprits.filter((c) => c.kind === "thread");
  const shown = chain.culprits.filter((c) => c.kind !== "process" || !threads.some((t) => t.name === c.name && t.time_ns === c.time_ns));
  if (shown.length === 0) return "";
  return table("Who took the tail's time", ["who", "ms", "messages of the tail", "how"],
    shown.slice(0, 8).map((c) => [`${c.kind} ${c.name}`, f.milliseconds(c.time_ns), f.count(c.messages), c.causes.join(", ")]));
}

function verdictList(chain: Chain): HTMLElement | string {
  if (chain.verdicts.length === 0) return "";
  return h("div", {}, h("h3", {}, "Verdicts"), h("ul", { class: "verdicts" }, ...chain.verdicts.map((v) =>
    h("li", {}, h("span", { class: `badge ${v.contended ? "guilty" : "cleared"}` }, v.contended ? "guilty" : "not guilty"), ` ${v.sentence}`))));
}

/** Measured against predicted: a line from p50 to p99 for each, on one scale. */
function whatIf(chain: Chain): HTMLElement | string {
  if (chain.what_if.length === 0) return "";
  const rows = [{ without: "as measured", p50_ns: chain.end_to_end.p50_ns, p99_ns: chain.end_to_end.p99_ns, gain: 0, assumption: "" },
    ...chain.what_if.map((w) => ({ ...w, without: `without ${w.without}` }))];
  const most = Math.max(1, ...rows.map((row) => row.p99_ns ?? row.p50_ns ?? 0));
  const mark = (row: typeof rows[number]): HTMLElement => {
    const [from, to] = [(row.p50_ns ?? 0) / most, (row.p99_ns ?? row.p50_ns ?? 0) / most];
    return h("span", { class: "range", "aria-hidden": "true" },
      h("span", { style: `left:${(100 * from).toFixed(1)}%;width:${(100 * Math.max(0.008, to - from)).toFixed(1)}%` }));
  };
  return table("Predicted: each assumes that nothing else takes the cause's place (bar: from p50 to p99)",
    ["", "p50 (ms)", "p99 (ms)", "change", ""],
    rows.map((row) => [h("span", { title: row.assumption }, row.without), f.milliseconds(row.p50_ns), f.milliseconds(row.p99_ns),
      row.assumption === "" ? "" : f.change(row.gain), mark(row)]));
}

function advice(chain: Chain): HTMLElement | string {
  if (chain.recommendations.length === 0) return "";
  return h("div", {}, h("h3", {}, "What to do"), h("ol", { class: "advice" }, ...chain.recommendations.map((r) =>
    h("li", {}, h("strong", {}, `${r.evidence}. `), `${r.remedy} (${f.change(r.gain)} expected). `, h("span", { class: "quiet" }, `To verify: ${r.verify}.`)))));
}
