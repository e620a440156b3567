// The plots of a probe: percentiles on the nines axis, histogram, worst wake over time, slack of a sweep.

import { chart, type SeriesSpec } from "./chart";
import type { Ns } from "./data";
import { choice, table } from "./dom";
import * as f from "./format";
import { histogram, nines, ninesAxis, tick } from "./plots";
import { type Line, lines, type SlackFit, sweeps, type Variant } from "./wakeup-data";

const us = (ns: number): number => ns / 1e3;
/** Where the axis is logarithmic and has no zero. */
const usLog = (ns: number): number => us(Math.max(1, ns));
const ns = (value: number | null | undefined): Ns | null => (typeof value === "number" ? (Math.round(value * 1e3) as Ns) : null);
const palette = 8;

/** Colours tell variants, or CPUs where there is one variant; more variants than colours are told by dashes. */
function style(line: Line, variants: number, place: number): SeriesSpec {
  const common: SeriesSpec = { label: line.name, kind: "line", color: variants > 1 ? line.at : place };
  const round = Math.floor(line.at / palette);
  const dash = round > 0 ? { dash: [2 + 5 * round, 4] } : {};
  if (!line.cpu) return { ...common, ...dash, keys: [line.name] };
  return { ...common, thin: true, dash: [3, 3], keys: variants > 1 ? [line.variant.label, "each CPU"] : [line.name] };
}

/** Curves of (x, value) as uPlot wants them: all x in one column, holes where a curve has no point. */
function columns(curves: [number, number][][], x: (x: number) => number): { xs: number[]; data: [number[], ...(number | null)[][]] } {
  const xs = [...new Set(curves.flat().map(([at]) => at))].sort((a, b) => a - b);
  const values = curves.map((curve) => {
    const known = new Map(curve);
    return xs.map((at) => { const value = known.get(at); return value === undefined ? null : usLog(value); });
  });
  return { xs, data: [xs.map(x), ...values] };
}

const measured = (variants: Variant[]): Line[] => lines(variants).filter((line) => line.series.wakeups.n > 0);
/** Those that are told in words: variants, or the CPUs of the only one. */
const told = (shown: Line[], variants: number): Line[] => shown.filter((line) => !line.cpu || variants === 1);

export function percentilePlot(variants: Variant[]): HTMLElement {
  const draw = (of: "curve" | "cycles_curve", what: string): HTMLElement => {
    const shown = measured(variants).filter((line) => line.series[of].length > 0);
    const { xs, data } = columns(shown.map((line) => line.series[of]), nines);
    const rows = xs.map((q, i) => [f.quantile(q), ...shown.map((_, at) => f.microseconds(ns(data[at + 1]?.[i])))]);
    const spoken = told(shown, variants.length).slice(0, palette);
    const first = shown[0];
    const d = of === "curve" ? first?.series.wakeups : first?.series.cycles;
    return chart({
      title: `Percentiles of the lateness of ${what}`,
      finding: d && first ? `${first.name}: median ${f.duration(d.p50_ns)}, 99th percentile ${f.duration(d.p99_ns)}, the latest of ${f.count(d.n)} ${f.duration(d.max_ns)}. A flat curve is a machine that keeps time.` : "",
      data,
      axes: { x: ninesAxis(xs), y: { label: "late (µs)", log: true, format: tick } },
      series: shown.map((line, place) => style(line, variants.length, place)),
      limits: intervals(variants),
      describe: (i) => `${f.quantile(xs[i] ?? 0)}: ${spoken.map((line) => ({ line, value: ns(data[shown.indexOf(line) + 1]?.[i]) }))
        .filter(({ value }) => value !== null).map(({ line, value }) => `${line.name} ${f.duration(value)}`).join(", ")}`,
      table: table("percentiles in µs", ["percentile", ...shown.map((line) => (line.cpu ? `${line.variant.label} ${line.name}` : line.name))], rows, true),
    });
  };
  // Without a missed cycle both are the same.
  if (variants.every((variant) => variant.all.missed === 0)) return wide(draw("curve", "wakeups"));
  return choice("count", [["wakeups", () => draw("curve", "wakeups")], ["cycles", () => draw("cycles_curve", "cycles")]], "wide");
}

/** The interval as a mark, where all have the same. */
function intervals(variants: Variant[]): { value: number; label: string }[] {
  const all = [...new Set(variants.map((variant) => variant.interval_ns).filter((interval) => interval > 0))];
  return all.length === 1 ? all.map((interval) => ({ value: us(interval), label: "one interval" })) : [];
}

function wide(element: HTMLElement): HTMLElement {
  element.classList.add("wide");
  return element;
}

export function histogramPlot(variants: Variant[]): HTMLElement {
  const shown = lines(variants).filter((line) => !line.cpu && line.series.wakeups.n > 1);
  const views = shown.map((line): [string, () => HTMLElement] => [line.name, () => histogram({
    title: "Histogram of the wakeups", what: "wakes", of: "late", unit: "µs", logCounts: true, bins: line.series.histogram,
  })]);
  return views.length > 1 ? choice("of", views) : (views[0]?.[1]() ?? table("no wakes", [], []));
}

export function worstPlot(variants: Variant[]): HTMLElement {
  const all = measured(variants);
  // The worst of all CPUs is the highest of their lines.
  const single = variants.length === 1 && all.length > 1;
  const shown = all.filter((line) => line.cpu === single && line.series.worst.length > 0);
  const { xs, data } = columns(shown.map((line) => line.series.worst), (s) => s);
  const points = shown.flatMap((line) => line.series.worst.map(([at, value]) => ({ line, at, value }))).sort((a, b) => b.value - a.value);
  const worst = points[0];
  return chart({
    title: "Worst wake of each stretch of time",
    finding: worst ? `The latest wake, ${f.duration(worst.value)}, fell into the stretch that ended at ${worst.at.toFixed(0)} s (${worst.line.name}). Peaks of all lines at once are the machine's.` : "",
    data,
    axes: { x: { label: "measured time (s)", format: (v) => Number(v.toPrecision(3)).toString() }, y: { label: "worst (µs)", log: true, format: tick } },
    series: shown.map((line, place) => ({ ...style({ ...line, cpu: false }, variants.length, single ? place + 1 : place), label: line.name, keys: [line.name], marks: xs.length <= 120 })),
    limits: intervals(variants),
    wide: true,
    describe: (i) => `Until ${(xs[i] ?? 0).toFixed(0)} s: ${shown.map((line, at) => ({ line, value: ns(data[at + 1]?.[i]) }))
      .filter(({ value }) => value !== null).map(({ line, value }) => `${line.name} ${f.duration(value)}`).join(", ")}`,
    table: table("the 20 worst stretches", ["until", "of", "worst"], points.slice(0, 20).map((p) => [`${p.at.toFixed(0)} s`, p.line.name, f.duration(p.value)]), true),
  });
}

/** Lateness against the length of the sleep, each way to sleep beside the slack that the kernel's rule gives it. */
export function slackPlot(slack: SlackFit[]): HTMLElement {
  const ways = sweeps(slack);
  const late = ways.map(({ fits }) => fits.flatMap((fit): [number, number][] => (fit.p50_ns === null ? [] : [[fit.sleep_ns, fit.p50_ns]])));
  const rules = ways.map(({ fits }) => fits.flatMap((fit): [number, number][] => (fit.slack_ns > 0 ? [[fit.sleep_ns, fit.slack_ns]] : [])));
  const { xs, data } = columns([...late, ...rules], us);
  const lengths = xs.map((x) => us(x));
  const rows = ways.flatMap(({ way, fits }) => fits.map((fit) => [way, f.length(fit.sleep_ns), f.microseconds(fit.p50_ns), f.microseconds(fit.slack_ns)]));
  return wide(chart({
    title: "Median lateness by the length of the sleep",
    finding: "Solid: measured. Dashed: the slack that the kernel's rule gives this way to sleep; what has none has no dashed line.",
    data,
    axes: {
      x: { label: "sleep asked for", log: true, tight: true, ticks: lengths, format: (x) => f.length(Math.round(x * 1e3) as Ns) },
      y: { label: "late (µs)", log: true, format: tick },
    },
    series: [
      ...ways.map(({ way }, color): SeriesSpec => ({ label: way, kind: "line", color, marks: true, keys: [way] })),
      ...ways.map(({ way }, color): SeriesSpec => ({ label: `${way}: rule`, kind: "line", color, dash: [5, 4], thin: true, keys: [way, "slack by the rule"] })),
    ],
    describe: (i) => `${f.length((xs[i] ?? 0) as Ns)}: ${ways.map(({ way }, at) => `${way} ${f.duration(ns(data[at + 1]?.[i]))}`).join(", ")}`,
    table: table("medians and slack in µs", ["way", "sleep", "median late", "slack by the rule"], rows, true),
  }));
}
