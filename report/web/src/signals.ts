// Values over time: what was commanded beside what came of it, other signals one by one.

import { chart } from "./chart";
import type { Report, Signal } from "./data";
import { h, section, table } from "./dom";
import * as f from "./format";

const figure = (value: number | null): string => (value === null ? "–" : Number(value.toPrecision(4)).toString());

export function signalSection(report: Report): HTMLElement | null {
  if (report.signals.length === 0) return null;
  const isOf = (signal: Signal, name: string): boolean => signal.name === `${name}.commanded` || signal.name === `${name}.actual`;
  const pairs = report.tracking.map(({ name }) => ({ title: `${name}: commanded and actual`, signals: report.signals.filter((signal) => isOf(signal, name)).reverse() }));
  const others = report.signals.filter((signal) => !report.tracking.some(({ name }) => isOf(signal, name)));
  // Whoever made the page chose which are drawn; a single value is no curve.
  const drawn = [...pairs, ...others.map((signal) => ({ title: signal.name, signals: [signal] }))].filter(({ signals }) => signals.every((signal) => signal.series));
  const single = others.filter((signal) => signal.n === 1).map((signal) => `${signal.name} ${figure(signal.last)}`);
  const rest = pairs.length + others.length - single.length - drawn.length;
  const tracked = report.tracking.map((t) => [t.name, f.count(t.n), figure(t.p50), figure(t.p99), figure(t.max)]);
  return section("Signals",
    tracked.length > 0 && table("how far the actual value was from the command in force, in the signal's unit", ["signal", "values", "p50", "p99", "max"], tracked),
    h("div", { class: "plots" }, ...drawn.map(({ title, signals }) => plot(title, signals, report))),
    single.length > 0 && h("p", { class: "aside" }, h("strong", {}, "Told once: "), single.join(", "), "."),
    rest > 0 && h("p", { class: "aside" }, `${f.count(rest)} further in the recording, as channels under /value.`));
}

function plot(title: string, signals: Signal[], report: Report): HTMLElement {
  const times = [...new Set(signals.flatMap((signal) => (signal.series ?? []).map(([us]) => us)))].sort((a, b) => a - b);
  const columns = signals.map((signal) => held(signal, times));
  const tracking = report.tracking.find(({ name }) => signals.some((signal) => signal.name === `${name}.actual`));
  const [first] = signals;
  const finding = tracking
    ? `Half of the time within ${figure(tracking.p50)}, at most ${figure(tracking.max)} apart.`
    : `From ${figure(first?.min ?? null)} to ${figure(first?.max ?? null)}.`;
  const rows = signals.map((signal) => [signal.name, f.count(signal.n), figure(signal.min), figure(signal.max), figure(signal.last)]);
  return chart({
    title, finding,
    data: [times.map((us) => us / 1e6), ...columns],
    axes: { x: { label: "time (s)", format: (v) => Number(v.toPrecision(4)).toString() }, y: { label: "value", format: figure } },
    series: signals.map((signal, at) => ({ label: signal.name, kind: "line", ...(at > 0 ? { dash: [6, 3] } : {}) })),
    wide: true,
    describe: (i) => {
      const at = times[i];
      return at === undefined ? "" : `At ${(at / 1e6).toFixed(3)} s: ${signals.map((signal, s) => `${signal.name} ${figure(columns[s]?.[i] ?? null)}`).join(", ")}`;
    },
    table: table(`values of ${title}`, ["signal", "values", "least", "most", "last"], rows, true),
  });
}

/** A signal at other moments than its own: its last value holds. */
function held(signal: Signal, times: number[]): (number | null)[] {
  let next = 0;
  let value: number | null = null;
  const series = signal.series ?? [];
  return times.map((us) => {
    for (; next < series.length; next++) {
      const point = series[next];
      if (!point || point[0] > us) break;
      value = point[1];
    }
    return value;
  });
}
