// The three plots of a chain: percentiles on the nines axis, histogram, latency over time.

import { chart } from "./chart";
import type { Chain, Ns } from "./data";
import { table } from "./dom";
import * as f from "./format";

const ms = (ns: number): number => ns / 1e6;
/** A duration on an axis in ms. */
const msTick = (value: number): string => (value >= 10 ? value.toFixed(0) : Number(value.toPrecision(2)).toString());

/** x = −log10(1 − q): p90, p99, p99.9 … lie equally far apart. */
export function nines(q: number): number {
  return -Math.log10(1 - Math.min(q, 1 - 1e-9));
}

export function percentilePlot(chains: { name: string; chain: Chain }[]): HTMLElement {
  const curves = chains.map(({ chain }) => chain.end_to_end.percentiles.filter(([q]) => q >= 0));
  const xs = [...new Set(curves.flat().map(([q]) => q))].sort((a, b) => a - b);
  const columns = curves.map((curve) => {
    const values = new Map(curve);
    return xs.map((q) => { const v = values.get(q); return v === undefined ? null : ms(v); });
  });
  const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999].filter((q) => nines(q) <= nines(xs.at(-1) ?? 0) + 0.2);
  const d = chains[0]?.chain.end_to_end;
  const head = ["percentile", ...chains.map(({ name }) => name)];
  const rows = xs.map((q, i) => [f.quantile(q), ...columns.map((column) => { const v = column[i]; return f.milliseconds(v == null ? null : v * 1e6 as Ns); })]);
  return chart({
    title: "Percentiles of the end-to-end latency",
    finding: d ? `Median ${f.duration(d.p50_ns)}, 99th percentile ${f.duration(d.p99_ns)}, the slowest of ${f.count(d.n)} messages ${f.duration(d.max_ns)}. A flat curve is a steady loop.` : "",
    data: [xs.map(nines), ...columns],
    axes: {
      x: { label: "percentile (each step: ten times rarer)", ticks: ticks.map(nines), format: (x) => f.quantile(1 - 10 ** -x), min: 0, max: nines(xs.at(-1) ?? 0.9) },
      y: { label: "latency (ms)", log: true, format: msTick },
    },
    series: chains.map(({ name }, i) => ({ label: name, kind: "line", ...(i > 0 ? { dash: [6, 2 + 3 * i] } : {}) })),
    describe: (i) => (rows[i] ?? []).join(": ") + " ms",
    table: table("percentiles in ms", head, rows, true),
  });
}

export function histogramPlot(chain: Chain): HTMLElement {
  const bins = chain.end_to_end.histogram;
  // All bins are equally wide, but what lies far out shares a last, wider one, which no bar can show.
  const [first, last] = [bins[0], bins.at(-1)];
  const widest = first && last && last[1] - last[0] !== first[1] - first[0] ? last : null;
  const shown = widest ? bins.slice(0, -1) : bins;
  const name = ([from, to]: [Ns, Ns, number]): string => `${f.duration(from)} to ${f.duration(to)}`;
  const most = shown.reduce((a, b) => (b[2] > a[2] ? b : a), shown[0] ?? [0 as Ns, 0 as Ns, 0]);
  const rest = widest ? ` ${f.count(widest[2])} more lie beyond, up to ${f.duration(widest[1])}.` : "";
  return chart({
    title: "Histogram of the end-to-end latency",
    finding: `Most often ${name(most)} (${f.count(most[2])} of ${f.count(chain.end_to_end.n)} messages).${rest}`,
    data: [shown.map((b) => ms(b[0])), shown.map((b) => b[2])],
    axes: { x: { label: "latency (ms)", format: msTick }, y: { label: "messages", format: f.count } },
    series: [{ label: "messages", kind: "bars" }],
    describe: (i) => { const b = shown[i]; return b ? `${name(b)}: ${f.count(b[2])} messages` : ""; },
    table: table("messages by latency", ["latency", "messages"], bins.map((b) => [name(b), f.count(b[2])]), true),
  });
}

export function timePlot(chain: Chain): HTMLElement {
  const points = chain.series;
  const worst = points.reduce((a, b) => (b[1] > a[1] ? b : a), points[0] ?? [0, 0 as Ns]);
  const slowest = [...points].sort((a, b) => b[1] - a[1]).slice(0, 20);
  const limit = chain.deadline_ns;
  const p99 = chain.end_to_end.p99_ns;
  const limits = [
    ...(p99 === null ? [] : [{ value: ms(p99), label: "p99" }]),
    ...(limit === null ? [] : [{ value: ms(limit), label: "deadline" }]),
  ];
  const startup = chain.startup ? ` Start-up included: ${chain.startup.messages} message${chain.startup.messages === 1 ? "" : "s"}.` : "";
  return chart({
    title: "Latency over time",
    finding: `The slowest message, ${f.duration(worst[1])}, came ${(worst[0] / 1e6).toFixed(1)} s into the recording.${startup}`,
    data: [points.map((p) => p[0] / 1e6), points.map((p) => ms(p[1]))],
    axes: { x: { label: "time (s)", format: (v) => Number(v.toPrecision(3)).toString() }, y: { label: "latency (ms)", log: true, format: msTick } },
    series: [{ label: "latency", kind: "points" }],
    limits,
    describe: (i) => { const p = points[i]; return p ? `At ${(p[0] / 1e6).toFixed(3)} s: ${f.duration(p[1])}` : ""; },
    table: table("the 20 slowest messages", ["at", "latency"], slowest.map((p) => [`${(p[0] / 1e6).toFixed(3)} s`, f.duration(p[1])]), true),
  });
}
