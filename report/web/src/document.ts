// The charts of a document, so that one can point at them. Until then, and without scripts, their stills stand in the page.

import { type AxisSpec, chart, type SeriesSpec } from "./chart";
import { h } from "./dom";
import * as f from "./format";
import { nines, ninesAxis } from "./plots";
import type { Ns } from "./data";

// As `taut-document` serialises them; what is not drawn here is left out.
type Quantity = "Time" | "Instant" | "Count" | "Share" | "Ratio" | "Rate" | "Bytes" | "Plain" | "Day";
interface Axis { label: string; quantity: Quantity; scale: "Linear" | "Log" | "Nines"; range: [number, number] | null; names: string[]; ticks: [number, string][] }
interface Curve {
  name: string; mark: "Line" | "Steps" | "Points" | "Bars" | { Range: [number, number][] };
  /** A y that is null is a gap. */
  xy: [x: number, y: number | null][]; tone: string | { Series: number }; dashed: boolean; quiet: boolean;
}
interface Chart { title: string; x: Axis; y: Axis; curves: Curve[]; limits: [number, string][]; bands: unknown[]; wide: boolean }

/** Draws all charts that are more than their stills when one can point at them. */
export function drawCharts(): void {
  for (const data of document.querySelectorAll("script.chart")) {
    const figure = data.closest("figure");
    const model = JSON.parse(data.textContent ?? "null") as Chart | null;
    if (figure && model && isUpright(model)) figure.replaceWith(drawn(model, figure));
  }
}

const isUpright = (model: Chart): boolean => model.x.names.length === 0 && model.bands.length === 0
  && model.curves.every((curve) => typeof curve.mark === "string");

/** A value at an axis, and as it is spoken. */
function text({ quantity, ticks }: Axis, value: number): string {
  const named = ticks.find(([at]) => at === value);
  if (named) return named[1];
  switch (quantity) {
    case "Time": return f.length(value as Ns);
    case "Instant": return value === 0 ? "0" : f.length(value as Ns);
    case "Count": return f.count(value);
    case "Share": return f.percent(value);
    case "Ratio": return f.ratio(value);
    case "Bytes": return f.bytes(value);
    case "Rate": return `${f.figure(value)} Hz`;
    case "Day": return new Date(value * 864e5).toISOString().slice(0, 10);
    default: return f.figure(value);
  }
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
    return xs.map((at) => { const value = values.get(at) ?? null; return value !== null && y.scale === "Log" && value <= 0 ? null : value; });
  });
  const shown = (at: number): string => (x.scale === "Nines" ? f.quantile(at) : text(x, at));
  const spoken = (value: number): string => (y.quantity === "Time" ? f.duration(value as Ns) : text(y, value));
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
