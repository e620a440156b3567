// One way to show a uPlot chart: heading, finding, canvas, keyboard cursor, spoken value, data table.

import uPlot from "uplot";

import { h } from "./dom";

export interface ChartSpec {
  title: string;
  /** One sentence: what the eye should see. */
  finding: string;
  data: uPlot.AlignedData;
  axes: { x: AxisSpec; y: AxisSpec };
  series: SeriesSpec[];
  /** Marks drawn over the chart, in data values of y. */
  limits?: { value: number; label: string }[];
  describe: (index: number) => string;
  /** How many of the points the cursor visits; all when not said. */
  points?: number;
  /** As wide as the page. */
  wide?: boolean;
  table: HTMLElement;
}
export interface AxisSpec {
  label: string; log?: boolean; min?: number; max?: number;
  /** The axis ends where the data end, not at a round number. */
  tight?: boolean;
  ticks?: number[]; format: (value: number) => string;
}
/** A bar reaches from its point's x to the next point's x. */
export interface SeriesSpec {
  label: string; kind: "line" | "steps" | "points" | "bars"; dash?: number[];
  /** Number of its colour, or a colour's name; its place among the series when not said. */
  color?: number | string;
  /** A line that stands back behind the others. */
  thin?: boolean;
  /** A line whose points are few enough to be seen. */
  marks?: boolean;
  /** Entries of the legend that show it when all of them are on; its label when not said. */
  keys?: string[];
}

const palette = ["--line-1", "--line-2", "--line-3", "--line-4", "--line-5", "--line-6", "--line-7", "--line-8"];
const color = (s: SeriesSpec, at: number): string => typeof s.color === "string" ? s.color : palette[(s.color ?? at) % palette.length] ?? "--line-1";
const keys = (s: SeriesSpec): string[] => s.keys ?? [s.label];
const css = (name: string): string => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

export function chart(spec: ChartSpec): HTMLElement {
  const live = h("p", { class: "readout", "aria-live": "polite" }, "");
  const box = h("div", { class: "plot", tabindex: "0", role: "img", "aria-label": `${spec.title}. ${spec.finding} Arrow keys move a cursor.` });
  let plot: uPlot | null = null;
  const off = new Set<string>();
  const shown = (s: SeriesSpec): boolean => !keys(s).some((key) => off.has(key));
  const figure = h("figure", spec.wide ? { class: "wide" } : {}, h("h3", {}, spec.title), h("p", { class: "finding" }, spec.finding),
    spec.series.length > 1 && legend(spec.series, off, () => spec.series.forEach((s, i) => plot?.setSeries(i + 1, { show: shown(s) }))),
    box, live, spec.table);
  let at = -1;
  const length = spec.points ?? spec.data[0].length;

  const say = (index: number): void => {
    at = Math.max(0, Math.min(length - 1, index));
    live.textContent = spec.describe(at);
    const x = spec.data[0][at];
    const y = spec.data.slice(1).map((column) => column[at]).find((value) => value !== null && value !== undefined);
    if (plot && x !== undefined && typeof y === "number") {
      plot.setCursor({ left: plot.valToPos(x, "x"), top: plot.valToPos(y, "y") }, false);
    }
  };
  box.addEventListener("keydown", (event) => {
    const step = event.shiftKey ? Math.ceil(length / 20) : 1;
    const moves: Record<string, number> = { ArrowRight: at + step, ArrowLeft: at - step, Home: 0, End: length - 1 };
    const to = moves[event.key];
    if (to === undefined || length === 0) return;
    event.preventDefault();
    say(to);
  });

  const draw = (): void => {
    plot?.destroy();
    plot = new uPlot(options(spec, shown, box.clientWidth, (index) => { if (index !== null && index !== undefined && index !== at && index < length) { at = index; live.textContent = spec.describe(index); } }), spec.data, box);
  };
  // Drawn when in the page and whenever its width or the colours change.
  new ResizeObserver(() => { if (box.clientWidth > 0 && plot?.width !== box.clientWidth) draw(); }).observe(box);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  return figure;
}

/** Entries that show and hide their series. */
function legend(series: SeriesSpec[], off: Set<string>, changed: () => void): HTMLElement {
  const names = [...new Set(series.flatMap(keys))];
  return h("div", { class: "legend" }, ...names.map((name) => {
    const at = series.findIndex((s) => keys(s)[keys(s).length - 1] === name);
    const s = series[at] ?? { label: name, kind: "line" };
    const style = `border-top:${s.thin ? 1 : 3}px ${s.dash ? "dashed" : "solid"} var(${s.thin && s.keys ? "--quiet" : color(s, at)})`;
    const button = h("button", { type: "button", "aria-pressed": "true" }, h("span", { class: "swatch", style, "aria-hidden": "true" }), name);
    button.addEventListener("click", () => {
      if (!off.delete(name)) off.add(name);
      button.setAttribute("aria-pressed", String(!off.has(name)));
      changed();
    });
    return button;
  }));
}

function options(spec: ChartSpec, shown: (s: SeriesSpec) => boolean, width: number, moved: (index: number | null | undefined) => void): uPlot.Options {
  const ink = css("--quiet");
  const grid = { stroke: css("--grid"), width: 1 };
  const font = "12px system-ui, sans-serif";
  const axis = (a: AxisSpec): uPlot.Axis => ({
    label: a.label, labelFont: font, font, stroke: ink, grid, ticks: grid, labelSize: 18, size: 44,
    values: (_: uPlot, values: number[]) => values.map((v) => (v === null ? "" : a.format(v))),
    ...(a.ticks ? { splits: () => a.ticks ?? [] } : {}),
  });
  const scale = (a: AxisSpec): uPlot.Scale => ({
    time: false,
    ...(a.log ? { distr: 3 as const } : {}),
    ...(a.tight ? { range: (_: uPlot, low: number, high: number): [number, number] => [low, high] } : {}),
    ...(a.min !== undefined && a.max !== undefined ? { range: [a.min, a.max] as [number, number] } : {}),
  });
  return {
    width: Math.max(200, width), height: Math.max(220, Math.min(320, width * 0.45)),
    legend: { show: false },
    cursor: { drag: { x: true, y: false }, points: { size: 7 } },
    scales: { x: scale(spec.axes.x), y: scale(spec.axes.y) },
    axes: [axis(spec.axes.x), { ...axis(spec.axes.y), size: 58 }],
    series: [{}, ...spec.series.map((s, i) => {
      const stroke = css(color(s, i));
      const common = { label: s.label, show: shown(s), stroke, ...(s.dash ? { dash: s.dash } : {}) };
      if (s.kind === "points") return { ...common, paths: () => null, points: { show: true, size: 3.5, fill: stroke, width: 0 } };
      if (s.kind === "bars") return { ...common, fill: stroke, width: 0, paths: bars, points: { show: false } };
      if (s.kind === "steps") return { ...common, width: 2, spanGaps: true, ...(uPlot.paths.stepped ? { paths: uPlot.paths.stepped({ align: 1 }) } : {}), points: { show: false } };
      // Curves have their points at different places: between them there is no gap.
      return { ...common, width: s.thin ? 1 : 2, spanGaps: true, points: { show: s.marks ?? false, size: 5, fill: stroke, width: 0 } };
    })],
    hooks: {
      setCursor: [(u) => moved(u.cursor.idx)],
      draw: [(u) => (spec.limits ?? []).forEach((limit) => drawLimit(u, limit))],
    },
  };
}

/** Bars from each x to the next, whatever their width; what is not empty is at least a pixel tall. */
function bars(u: uPlot, series: number): uPlot.Series.Paths {
  const fill = new Path2D();
  const [xs, ys] = [u.data[0], u.data[series] ?? []];
  const floor = u.bbox.top + u.bbox.height;
  for (let i = 0; i + 1 < xs.length; i++) {
    const [from, to, y] = [xs[i] ?? 0, xs[i + 1] ?? 0, ys[i]];
    if (!y) continue;
    const left = u.valToPos(from, "x", true);
    const width = u.valToPos(to, "x", true) - left;
    // A hairline between neighbours, where there is room for one.
    const gap = width > 4 * devicePixelRatio ? devicePixelRatio : 0;
    const tall = Math.max(devicePixelRatio, floor - u.valToPos(y, "y", true));
    fill.rect(left, floor - tall, Math.max(0.5, width - gap), tall);
  }
  return { fill, stroke: null };
}

function drawLimit(u: uPlot, limit: { value: number; label: string }): void {
  const y = u.valToPos(limit.value, "y", true);
  if (y < u.bbox.top || y > u.bbox.top + u.bbox.height) return;
  const c = u.ctx;
  c.save();
  c.strokeStyle = c.fillStyle = css("--quiet");
  c.setLineDash([2, 3]);
  c.beginPath();
  c.moveTo(u.bbox.left, y);
  c.lineTo(u.bbox.left + u.bbox.width, y);
  c.stroke();
  c.font = `${11 * devicePixelRatio}px system-ui, sans-serif`;
  c.textAlign = "right";
  c.fillText(limit.label, u.bbox.left + u.bbox.width - 4, y - 4 * devicePixelRatio);
  c.restore();
}
