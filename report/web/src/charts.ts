// The charts of a document, so that one can point at them. Until then, and without scripts, their stills stand in the page.

import { type AxisSpec, chart, type SeriesSpec } from "./chart";
import type { Axis, Chart, Curve } from "../dist/document";
import { h, stills } from "./dom";
import * as f from "./format";

/** Draws all charts that are more than their stills when one can point at them. */
export function drawCharts(): void {
  for (const [figure, model] of stills<Chart>("chart")) if (isUpright(model)) figure.replaceWith(drawn(model, figure));
}

const isUpright = (model: Chart): boolean => model.x.names.length === 0 && model.bands.length === 0
  && model.curves.every((curve) => typeof curve.mark === "string");

/** A value at an axis, and as it is spoken. */
function text({ quantity, ticks }: Axis, value: number): string {
  const named = ticks.find(([at]) => at === value);
  if (named) return named[1];
  switch (quantity) {
    case "Time": return f.length(value);
    case "Instant": return value === 0 ? "0" : f.length(value);
    case "Count": return f.count(value);
    case "Share": return f.percent(value);
    case "Ratio": return f.ratio(value);
    case "Bytes": return f.bytes(value);
    case "Rate": return `${f.figure(value)} Hz`;
    case "Day": return new Date(value * 864e5).toISOString().slice(0, 10);
    default: return f.figure(value);
  }
}

/** x = −log10(1 − q): p90, p99, p99.9 … lie equally far apart. */
function nines(q: number): number {
  return -Math.log10(1 - Math.min(q, 1 - 1e-9));
}

/** The percentile axis of curves that have points at these quantiles. */
function ninesAxis(quantiles: number[]): AxisSpec {
  const most = nines(quantiles.at(-1) ?? 0.9);
  const ticks = [0, 0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999, 0.999999, 0.9999999].map(nines).filter((x) => x <= most + 0.2);
  return { label: "", ticks, format: (x) => f.quantile(1 - 10 ** -x), min: 0, max: most };
}

function axis(of: Axis, values: number[]): AxisSpec {
  if (of.scale === "Nines") return { ...ninesAxis(values), label: of.label };
  return {
    label: of.label, log: of.scale === "Log", format: (value) => text(of, value),
    ...(of.range ? { min: of.range[0], max: of.range[1] } : {}),
    ...(of.ticks.length > 0 ? { ticks: of.ticks.map(([at]) => at).sort((a, b) => a - b) } : {}),
  };
}

function series({ name, mark, tone, dashed, quiet }: Curve): SeriesSpec {
  const kind = ({ Line: "line", Steps: "steps", Points: "points", Bars: "bars" } as const)[mark as "Line"];
  return {
    label: name, kind, color: typeof tone === "string" ? `--${tone === "Plain" ? "ink" : tone.toLowerCase()}` : tone.Series,
    ...(dashed ? { dash: [6, 3] } : {}), thin: quiet, ...(name === "" ? { keys: [] } : {}),
  };
}

function drawn(model: Chart, still: HTMLElement): HTMLElement {
  const { x, y, curves } = model;
  const xs = [...new Set(curves.flatMap((curve) => curve.xy.map(([at]) => at)))].sort((a, b) => a - b);
  const columns = curves.map((curve) => {
    const values = new Map(curve.xy);
    let held: number | null = null;
    return xs.map((at) => {
      const value = values.get(at) ?? null;
      // What goes in steps holds until its next value, which may not be at a place of the others.
      if (curve.mark === "Steps" && values.has(at)) held = value;
      const shown = curve.mark === "Steps" ? held : value;
      return shown !== null && y.scale === "Log" && shown <= 0 ? null : shown;
    });
  });
  const shown = (at: number): string => (x.scale === "Nines" ? f.quantile(at) : text(x, at));
  const spoken = (value: number): string => (y.quantity === "Time" ? f.duration(value) : text(y, value));
  const isNines = x.scale === "Nines";
  return chart({
    title: model.title,
    finding: still.querySelector(".finding")?.textContent ?? "",
    data: [isNines ? xs.map(nines) : xs, ...columns],
    axes: { x: axis(x, xs), y: axis(y, columns.flat().filter((value) => value !== null)) },
    series: curves.map(series),
    limits: model.limits.map(([value, label]) => ({ value, label })),
    wide: model.wide,
    // Bars end at the last x, which is none.
    points: curves.every((curve) => curve.mark === "Bars") ? xs.length - 1 : xs.length,
    describe: (i) => {
      const at = xs[i];
      if (at === undefined) return "";
      const values = curves.flatMap(({ name }, of) => { const value = columns[of]?.[i]; return typeof value === "number" ? [`${name} ${spoken(value)}`.trim()] : []; });
      return `${shown(at)}: ${values.join(", ")}`;
    },
    table: still.querySelector<HTMLElement>("details.data") ?? h("span", {}),
  });
}
