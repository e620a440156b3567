// What came of each channel of telemetry, and what did not.

import type { Report, Telemetry } from "./data";
import { h, section, table } from "./dom";
import * as f from "./format";

export function telemetrySection(report: Report): HTMLElement | null {
  if (report.telemetry.length === 0) return null;
  const rows = report.telemetry.map((t) => [
    t.topic, t.type, f.count(t.values), f.count(t.messages), t.rate_hz === null ? "–" : t.rate_hz.toFixed(1),
    f.milliseconds(t.period.p50_ns), f.milliseconds(t.period.p99_ns), f.milliseconds(t.period.max_ns), missing(t), f.bytes(t.bytes),
  ]);
  return section("Telemetry",
    table("Channels; the time from one message to the next in ms", ["channel", "type", "values", "messages", "rate (Hz)", "period p50", "p99", "max", "missing", "as encoded"], rows),
    h("p", { class: "aside" }, "The values: ", h("code", {}, `taut telemetry ${f.shell([report.name])} --channel TOPIC`), "; layouts for Foxglove and PlotJuggler: ",
      h("code", { style: "white-space:nowrap" }, "--layouts"), "."));
}

/** By the holes in its sequence, or by what the recorder counted. */
function missing(t: Telemetry): string {
  if (t.gaps === null || t.gaps.count === 0) return f.count(t.lost);
  return `${f.count(t.gaps.messages)} in ${f.count(t.gaps.count)} gap${t.gaps.count === 1 ? "" : "s"}`;
}
