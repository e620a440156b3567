// Several recordings on one page: the same chain of each side by side; their own pages follow below.

import { stack } from "./causes";
import { chart } from "./chart";
import type { Compared, Comparison, Side } from "./compare-data";
import type { CauseShare, Chain, Report } from "./data";
import { bar, h, section, table } from "./dom";
import * as f from "./format";
import { percentilePlot, tick } from "./plots";

interface Run { name: string; chain: Chain }

export function comparisonPage(data: Comparison, reports: Report[]): HTMLElement {
  const names = data.runs.map((run) => run.short);
  const links = data.runs.flatMap((run, at) => [at > 0 ? " · " : "", h("a", { href: `#${reportId(at)}` }, run.short), ` ${run.name}, ${run.duration_s.toFixed(1)} s`]);
  return h("div", { class: "report" },
    h("header", {},
      h("p", { class: "kicker" }, h("b", {}, "taut"), " ", ...links),
      h("p", { class: "headline" }, data.headline),
      h("ul", { class: "notes" }, ...data.notes.map((text) => h("li", {}, text)))),
    ...data.chains.map((compared) => article(data, compared, compared.runs.flatMap((side) => {
      const chain = reports[side.run]?.chains.find((c) => c.name === compared.name);
      return chain ? [{ name: names[side.run] ?? "", chain }] : [];
    }))),
    data.alone.length > 0 && h("p", { class: "aside" }, h("strong", {}, "Not in all: "),
      data.alone.map((a) => `${a.chain} only in ${names[a.run] ?? ""} (${f.count(a.messages)} messages)`).join("; "), "."));
}

/** Where a recording's own page begins. */
export const reportId = (at: number): string => `recording-${at + 1}`;

function article(data: Comparison, compared: Compared, runs: Run[]): HTMLElement {
  const name = (side: Side): string => data.runs[side.run]?.short ?? "";
  const drawn = runs.filter(({ chain }) => chain.end_to_end.n > 1);
  const plots = drawn.length > 0
    ? h("div", { class: "plots" }, distributionPlot(drawn), percentilePlot(drawn))
    : h("p", { class: "aside" }, "Too few messages went all the way for a plot.");
  return h("article", {},
    h("h1", { class: "chain" }, compared.name),
    section("How late", delays(compared, name), plots),
    section("Where the messages ended", ends(data, compared, name)),
    compared.causes.length > 0 && section("Causes", causes(compared, name)));
}

function delays(compared: Compared, name: (side: Side) => string): HTMLElement {
  const most = Math.max(1, ...compared.runs.map((side) => side.end_to_end.p99_ns ?? 0));
  const rows = compared.runs.map((side, at) => {
    const d = side.end_to_end;
    const ratio = (value: number | null): string => (at === 0 || value === null ? "–" : f.ratio(value));
    const p99 = h("span", { class: "with-bar" }, bar((d.p99_ns ?? 0) / most, "spread"), f.milliseconds(d.p99_ns));
    return [name(side), f.count(d.n), f.milliseconds(d.p50_ns), f.milliseconds(d.p90_ns), p99, f.milliseconds(d.p999_ns),
      f.milliseconds(d.max_ns), f.milliseconds(side.pdv_p99_ns), ratio(side.p50_ratio), ratio(side.p99_ratio)];
  });
  return table(`End to end, in ms; the last two columns: by the figure of ${compared.runs[0] ? name(compared.runs[0]) : "the first"}`,
    ["", "n", "p50", "p90", "p99", "p99.9", "max", "PDV p99", "p50 by", "p99 by"], rows);
}

function ends(data: Comparison, compared: Compared, name: (side: Side) => string): HTMLElement {
  const cell = (n: number, messages: number, kind: string): Node =>
    h("span", { class: "with-bar" }, bar(n / Math.max(1, messages), kind), `${f.count(n)} (${f.percent(n / Math.max(1, messages))})`);
  const row = (label: string, kind: string, of: (side: Side, at: number) => number): (string | Node)[] =>
    [label, ...compared.runs.map((side, at) => cell(of(side, at), side.messages, kind))];
  const guard = (label: string, of: (run: Comparison["runs"][number]) => number | null): (string | Node)[] =>
    [label, ...compared.runs.map((side) => { const run = data.runs[side.run]; const n = run ? of(run) : null; return n === null ? "–" : f.count(n); })];
  const guarded = data.runs.some((run) => run.trips !== null);
  return table("How the messages of each recording ended", ["", ...compared.runs.map(name)], [
    row("applied", "good", (side) => side.applied),
    ...compared.dropped.map(([reason, of]) => row(`dropped: ${reason}`, "bad", (_, at) => of[at] ?? 0)),
    row("of the dropped: in silence", "bad", (side) => side.silent),
    row("in flight at start or end", "passed", (side) => side.in_flight),
    row("unexplained", "bad", (side) => side.unexplained),
    ...(guarded ? [guard("trips of the speed guard", (run) => run.trips), guard("… of them false", (run) => run.false_trips)] : []),
  ]);
}

/** A bar of shares for each recording, and the same as a table: shares, and the time of one message of the tail. */
function causes(compared: Compared, name: (side: Side) => string): HTMLElement {
  const shares = (at: number): CauseShare[] => compared.causes.map(({ cause, of }) => {
    const side = of[at];
    return { cause, detail: "", tail_share: side?.tail_share ?? 0, time_ns: side?.per_message_ns ?? (0 as CauseShare["time_ns"]), typical_ns: 0 as CauseShare["typical_ns"], messages: 0 };
  });
  const total = (at: number): number => compared.causes.reduce((sum, { of }) => sum + (of[at]?.per_message_ns ?? 0), 0);
  const most = Math.max(1, ...compared.runs.map((_, at) => total(at)));
  const bars = compared.runs.map((side, at) => [name(side), `${f.count(side.tail_messages)}`, f.milliseconds(total(at) as CauseShare["time_ns"]), stack(shares(at), total(at) / most)]);
  const cell = (side: { tail_share: number; per_message_ns: CauseShare["time_ns"] } | undefined): string =>
    side === undefined || side.tail_share === 0 ? "–" : `${f.percent(side.tail_share)} · ${f.milliseconds(side.per_message_ns)} ms`;
  return h("div", {},
    table("What a message of the tail spends its time on; a bar is as long as the time", ["", "messages of the tail", "each, ms", "causes"], bars),
    table("The same in figures: share of the tail's excess · time in each of its messages", ["cause", ...compared.runs.map(name)],
      compared.causes.map(({ cause, of }) => [cause, ...compared.runs.map((_, at) => cell(of[at]))])));
}

const BINS_A_DECADE = 12;

/** How often each latency comes, of all recordings on one axis: bins of equal ratio, so that a long tail fits. */
function distributionPlot(runs: Run[]): HTMLElement {
  const bin = (ns: number): number => Math.floor(BINS_A_DECADE * Math.log10(Math.max(1, ns)));
  const edge = (at: number): number => 10 ** (at / BINS_A_DECADE);
  const counts = runs.map(({ chain }) => {
    const found = new Map<number, number>();
    const { min_ns, max_ns, histogram } = chain.end_to_end;
    for (const [left, right, n] of histogram) {
      // The outer bins reach no further than the messages do.
      const from = Math.max(left, Math.min(min_ns ?? left, right - 1));
      const to = Math.min(right, Math.max((max_ns ?? right) + 1, from + 1));
      // A bin of the histogram that covers several of these is spread over them.
      const [first, last] = [bin(from), Math.max(bin(from), bin(to - 1))];
      for (let at = first; at <= last; at++) {
        const part = (Math.min(to, edge(at + 1)) - Math.max(from, edge(at))) / Math.max(1, to - from);
        found.set(at, (found.get(at) ?? 0) + n * Math.max(0, first === last ? 1 : part));
      }
    }
    return found;
  });
  const all = counts.flatMap((found) => [...found.keys()]);
  const [low, high] = [Math.min(...all) - 1, Math.max(...all) + 1];
  const bins = Array.from({ length: high - low + 1 }, (_, at) => low + at);
  const shares = counts.map((found, run) => bins.map((at) => (found.get(at) ?? 0) / Math.max(1, runs[run]?.chain.end_to_end.n ?? 1)));
  const rows = bins.map((at, i) => [`${f.duration(edge(at) as CauseShare["time_ns"])} to ${f.duration(edge(at + 1) as CauseShare["time_ns"])}`, ...shares.map((share) => f.percent(share[i] ?? 0))]);
  const middle = (at: number): number => edge(at + 0.5) / 1e6;
  return chart({
    title: "How often each end-to-end latency comes",
    finding: `${runs.map(({ name, chain }) => `${name}: half below ${f.duration(chain.end_to_end.p50_ns)}, the slowest ${f.duration(chain.end_to_end.max_ns)}`).join(". ")}.`,
    data: [bins.map(middle), ...shares.map((share) => share.map((s) => 100 * s))],
    axes: { x: { label: "latency (ms)", log: true, tight: true, format: tick }, y: { label: "messages (%)", format: (n) => n.toFixed(n < 3 && n !== Math.round(n) ? 1 : 0) } },
    series: runs.map(({ name }) => ({ label: name, kind: "line" })),
    describe: (i) => (rows[i] ?? []).join(": "),
    table: table("share of the messages by latency", ["latency", ...runs.map(({ name }) => name)], rows, true),
  });
}
