// The three plots of a chain: percentiles on the nines axis, histogram, latency over time.

import { type AxisSpec, chart } from "./chart";
import type { Chain, Ns } from "./data";
import { table } from "./dom";
import * as f from "./format";

const ms = (ns: number): number => ns / 1e6;
/** The same where the axis is logarithmic and has no zero: nothing is below a nanosecond. */
const msLog = (ns: number): number => ms(Math.max(1, ns));
/** A figure on a logarithmic axis. */
export const tick = (value: number): string =>
  value >= 1e6 || (value > 0 && value < 1e-4) ? value.toExponential(0).replace("e+", "e")
    : value >= 10 ? value.toFixed(0) : Number(value.toPrecision(2)).toString();

/** x = −log10(1 − q): p90, p99, p99.9 … lie equally far apart. */
export function nines(q: number): number {
  return -Math.log10(1 - Math.min(q, 1 - 1e-9));
}

/** The percentile axis of curves that have points at these quantiles. */
export function ninesAxis(quantiles: number[]): AxisSpec {
  const most = nines(quantiles.at(-1) ?? 0.9);
  const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999].map(nines).filter((x) => x <= most + 0.2);
  return { label: "percentile (each step: ten times rarer)", ticks, format: (x) => f.quantile(1 - 10 ** -x), min: 0, max: most };
}

export function percentilePlot(chains: { name: string; chain: Chain }[]): HTMLElement {
  const curves = chains.map(({ chain }) => chain.end_to_end.percentiles.filter(([q]) => q >= 0));
  const xs = [...new Set(curves.flat().map(([q]) => q))].sort((a, b) => a - b);
  const columns = curves.map((curve) => {
    const values = new Map(curve);
    return xs.map((q) => { const v = values.get(q); return v === undefined ? null : msLog(v); });
  });
  const d = chains[0]?.chain.end_to_end;
  const head = ["percentile", ...chains.map(({ name }) => name)];
  const rows = xs.map((q, i) => [f.quantile(q), ...columns.map((column) => { const v = column[i]; return f.milliseconds(v == null ? null : Math.round(v * 1e6) as Ns); })]);
  return chart({
    title: "Percentiles of the end-to-end latency",
    finding: d ? `Median ${f.duration(d.p50_ns)}, 99th percentile ${f.duration(d.p99_ns)}, the slowest of ${f.count(d.n)} messages ${f.duration(d.max_ns)}. A flat curve is a steady loop.` : "",
    data: [xs.map(nines), ...columns],
    axes: {
      x: ninesAxis(xs),
      y: { label: "latency (ms)", log: true, format: tick },
    },
    series: chains.map(({ name }, i) => ({ label: name, kind: "line", ...(i > 0 ? { dash: [6, 2 + 3 * i] } : {}) })),
    describe: (i) => (rows[i] ?? []).join(": ") + " ms",
    table: table("percentiles in ms", head, rows, true),
  });
}

export function histogramPlot(chain: Chain): HTMLElement {
  return histogram({ title: "Histogram of the end-to-end latency", what: "messages", of: "latency", bins: chain.end_to_end.histogram, unit: "ms" });
}

export interface HistogramSpec {
  title: string;
  /** What is counted, and by what of it. */
  what: string; of: string;
  bins: [from: Ns, to: Ns, count: number][];
  unit: "ms" | "µs";
  /** Counts on a logarithmic axis, so that the rare ones show. */
  logCounts?: boolean;
}

export function histogram({ title, what, of, bins, unit, logCounts = false }: HistogramSpec): HTMLElement {
  const scaled = (ns: number): number => ns / (unit === "ms" ? 1e6 : 1e3);
  const all = bins.reduce((sum, bin) => sum + bin[2], 0);
  const width = Math.min(...bins.map(([from, to]) => to - from));
  const name = ([from, to]: [Ns, Ns, number]): string => `${f.duration(from)} to ${f.duration(to)}`;
  // A bar's area is its messages: a bin of five widths stands a fifth as high.
  const heights = bins.map(([from, to, n]) => (n * width) / (to - from));
  const most = bins[heights.indexOf(Math.max(...heights))] ?? [0 as Ns, 0 as Ns, 0];
  const [start, end, last] = [bins[0]?.[0] ?? 0, bins.at(-1)?.[1] ?? 0, bins.at(-1)];
  // What lies far out shares a last, wider bin; where that would flatten the others, the axis is logarithmic.
  const outlying = last && last[1] - last[0] > 1.5 * width ? last : null;
  const log = outlying !== null && outlying[1] - outlying[0] > 3 * (outlying[0] - start) && end > 10 * start;
  const rest = outlying ? ` ${f.count(outlying[2])} took ${name(outlying)}: a wider bin, and as much lower.` : "";
  const edges = [log ? Math.max(start, width / 2) : start, ...bins.slice(1).map((b) => b[0]), end];
  const [least, highest] = [Math.min(1, ...heights.filter((n) => n > 0)), Math.max(1, ...heights)];
  return chart({
    title,
    finding: `Most often ${name(most)} (${f.count(most[2])} of ${f.count(all)} ${what}).${rest}`,
    data: [edges.map(scaled), [...heights, null]],
    points: bins.length,
    axes: {
      x: { label: `${of} (${unit})`, log, tight: true, format: tick },
      y: {
        label: `${what} per ${f.duration(width as Ns)}`, format: (n) => (n < 1 ? tick(n) : f.count(n)),
        ...(logCounts ? { log: true, min: 10 ** Math.floor(Math.log10(least) - 0.3), max: 2 * highest } : { min: 0, max: 1.05 * highest }),
      },
    },
    series: [{ label: what, kind: "bars" }],
    describe: (i) => { const b = bins[i]; return b ? `${name(b)}: ${f.count(b[2])} ${what}` : ""; },
    table: table(`${what} by ${of}`, [of, what], bins.map((b) => [name(b), f.count(b[2])]), true),
  });
}

export function timePlot(chain: Chain): HTMLElement {
  const points = chain.series;
  const worst = points.reduce((a, b) => (b[1] > a[1] ? b : a), points[0] ?? [0, 0 as Ns]);
  const slowest = [...points].sort((a, b) => b[1] - a[1]).slice(0, 20);
  const limit = chain.deadline_ns;
  const p99 = chain.end_to_end.p99_ns;
  const limits = [
    ...(p99 === null ? [] : [{ value: msLog(p99), label: "p99" }]),
    ...(limit === null ? [] : [{ value: msLog(limit), label: "deadline" }]),
  ];
  const startup = chain.startup ? ` Start-up included: ${chain.startup.messages} message${chain.startup.messages === 1 ? "" : "s"}.` : "";
  return chart({
    title: "Latency over time",
    finding: `The slowest message, ${f.duration(worst[1])}, came ${(worst[0] / 1e6).toFixed(1)} s into the recording.${startup}`,
    data: [points.map((p) => p[0] / 1e6), points.map((p) => msLog(p[1]))],
    axes: { x: { label: "time (s)", format: (v) => Number(v.toPrecision(3)).toString() }, y: { label: "latency (ms)", log: true, format: tick } },
    series: [{ label: "latency", kind: "points" }],
    limits,
    wide: true,
    describe: (i) => { const p = points[i]; return p ? `At ${(p[0] / 1e6).toFixed(3)} s: ${f.duration(p[1])}` : ""; },
    table: table("the 20 slowest messages", ["at", "latency"], slowest.map((p) => [`${(p[0] / 1e6).toFixed(3)} s`, f.duration(p[1])]), true),
  });
}
