// The page of a probe, top to bottom.

import type { Figures, Ns } from "./data";
import { bar, h, section, table } from "./dom";
import * as f from "./format";
import { cpuName, type Explained, lines, type Line, type Wakeup, sweeps, type Variant } from "./wakeup-data";
import { histogramPlot, percentilePlot, slackPlot, worstPlot } from "./wakeup-plots";

export function wakeupPage(probe: Wakeup): HTMLElement {
  const virtual = probe.machine["virtual machine"] === "yes" && "virtual machine";
  const about = [`${probe.measured_s.toFixed(1)} s`, probe.variants.length > 1 && `${probe.variants.length} variants in turn`,
    probe.machine["cpu"], probe.machine["kernel"], virtual].filter((part) => part).join(" · ");
  const { measured, ways } = { measured: probe.variants.filter((variant) => variant.all.wakeups.n > 1), ways: sweeps(probe.slack) };
  const plots = measured.length > 0 && h("div", { class: "plots" }, percentilePlot(measured), worstPlot(measured), histogramPlot(measured));
  const itself = probe.variants.filter((variant) => variant.interval_ns > 0);
  return h("div", { class: "report" },
    h("header", {},
      h("p", { class: "kicker" }, h("b", {}, "taut wakeup"), ` ${about}`),
      ...headline(probe.headline),
      probe.notes.length > 0 && h("ul", { class: "notes" }, ...probe.notes.map((text) => h("li", {}, text)))),
    h("article", {},
      ways.length > 0 && section("Why longer sleeps wake later", h("div", { class: "plots" }, slackPlot(probe.slack)), slackTable(probe)),
      section("How late", latenessTable(probe.variants), h("p", { class: "aside" }, probe.series), plots),
      ...(ways.length > 0 ? [] : [normality(measured)]),
      probe.stalls && section("Stalls of all CPUs at once", h("p", {}, probe.stalls.sentence)),
      probe.throttling && section("Throttling of real-time threads", h("p", {}, probe.throttling.sentence)),
      probe.explained && section("What made wakes late", explained(probe.explained)),
      itself.length > 0 && section("The probe itself", itselfTable(itself)),
      section("How this was measured", facts(probe)),
      probe.machine["command"] !== undefined && section("Measure it again", h("pre", {}, `${probe.machine["command"]}\n`))));
}

/** The answer large, what it rests on below. */
function headline(text: string): HTMLElement[] {
  const [answer, ...rest] = text.split(/(?<=[.:]) (?=[A-Z0-9])/);
  return [h("p", { class: "headline" }, answer ?? ""), ...(rest.length > 0 ? [h("p", { class: "subline" }, rest.join(" "))] : [])];
}

function latenessTable(variants: Variant[]): HTMLElement {
  const row = (name: Node | string, kind: string, d: Figures, missed: string): (Node | string)[] =>
    [name, kind, f.count(d.n), ...[d.min_ns, d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(f.microseconds), missed];
  const rows = (line: Line): (Node | string)[][] => {
    const { series } = line;
    const name = h("span", { class: line.cpu ? "inner" : "" }, line.name);
    if (line.variant.interval_ns === 0) return [row(name, "wakeups", series.wakeups, "–")];
    if (series.missed === 0) return [row(name, "both", series.wakeups, "0")];
    return [row(name, "wakeups", series.wakeups, ""), row("", "cycles", series.cycles, f.count(series.missed))];
  };
  // A CPU that is the only one says nothing beside its variant.
  const shown = lines(variants).filter((line) => !line.cpu || line.variant.cpus.length > 1);
  return table("Lateness in µs", ["", "", "n", "min", "p50", "p90", "p99", "p99.9", "max", "missed"], shown.flatMap(rows));
}

function normality(variants: Variant[]): HTMLElement | string {
  const said = variants.filter((variant) => variant.normality !== null);
  if (said.length === 0) return "";
  return section("Not a bell curve", h("ul", { class: "results" }, ...said.map((variant) =>
    h("li", {}, variant.label && h("strong", {}, `${variant.label}. `), variant.normality ?? ""))));
}

function slackTable(probe: Wakeup): HTMLElement {
  const rows = sweeps(probe.slack).flatMap(({ way, fits }) => fits.map((fit, at) => [
    at === 0 ? way : "", f.length(fit.sleep_ns), f.microseconds(fit.p50_ns), f.microseconds(fit.slack_ns), signed(fit.rest_ns),
  ]));
  return table("Median lateness, the slack in it by the kernel's rule, and the rest, in µs", ["sleeping by", "asked for", "median late", "slack by the rule", "rest"], rows);
}

function signed(ns: Ns | null): string {
  return ns !== null && ns < 0 ? `−${f.microseconds(-ns as Ns)}` : f.microseconds(ns);
}

const families: Record<string, string> = {
  "timer late": "wait", interrupt: "taken", "run queue": "way", "return to user": "own",
};

/** What lateness was made of, side by side; the words beside it say the same. */
function stack(parts: { what: string; ns: Ns }[]): HTMLElement {
  const sum = Math.max(1, parts.reduce((all, part) => all + part.ns, 0));
  const text = parts.map((part) => `${part.what} ${f.percent(part.ns / sum)}`).join(", ");
  return h("div", { class: "stack", role: "img", "aria-label": text || "nothing" }, ...parts.filter((part) => part.ns / sum > 0.002).map((part) =>
    h("span", { class: `c-${families[part.what] ?? "unknown"}`, style: `flex-grow:${((100 * part.ns) / sum).toFixed(2)}`, title: `${part.what}: ${f.duration(part.ns)}` },
      part.ns / sum > 0.12 ? part.what : "")));
}

function explained(found: Explained): HTMLElement {
  const all = Math.max(1, found.parts.reduce((sum, part) => sum + part.ns, 0));
  const share = (ns: Ns, kind: string): HTMLElement => h("span", { class: "with-bar" }, bar(ns / all, kind), f.percent(ns / all));
  const dot = (what: string): HTMLElement => h("span", {}, h("span", { class: `dot c-${families[what] ?? "unknown"}`, "aria-hidden": "true" }), what);
  const who = (c: { kind: string; name: string }): string => (c.kind === "irq" || c.name.startsWith(c.kind) ? c.name : `${c.kind} ${c.name}`);
  const pieces = (wake: Explained["worst"][number]): string =>
    wake.parts.map((part) => `${part.what} ${f.duration(part.ns)}${part.who ? ` (${part.who})` : ""}`).join(", ");
  return h("div", {},
    h("p", {}, found.sentence),
    found.parts.length > 0 && stack(found.parts),
    found.parts.length > 0 && table("What the lateness of all late wakes was", ["what", "share", "ms", "wakes"],
      found.parts.map((part) => [dot(part.what), share(part.ns, ""), f.milliseconds(part.ns), f.count(part.wakes)])),
    found.responsible.length > 0 && table("Responsible", ["thread, process or interrupt", "share", "ms", "wakes"],
      found.responsible.slice(0, 12).map((c) => [who(c), share(c.ns, "tail"), f.milliseconds(c.ns), f.count(c.wakes)])),
    found.worst.length > 0 && h("h3", {}, "The latest wakes"),
    found.worst.length > 0 && h("ol", { class: "late" }, ...found.worst.slice(0, 20).map((wake) => h("li", {},
      h("strong", {}, f.duration(wake.late_ns)), ` at ${(wake.due_ns / 1e9).toFixed(3)} s${wake.cpu === null ? "" : ` on ${cpuName(wake.cpu)}`}`,
      stack(wake.parts), h("span", { class: "quiet" }, pieces(wake))))));
}

function itselfTable(variants: Variant[]): HTMLElement {
  const idle = (variant: Variant): string => {
    const used = variant.idle_states.filter((state) => state.entered > 0).sort((a, b) => b.ns - a.ns);
    return used.map((state) => `${state.name.replace(/^\d+ /, "")} ${f.duration(state.ns)} in ${f.count(state.entered)} sleeps`).join(", ") || "not visible";
  };
  return table("What it took, and what the machine showed meanwhile", ["", "own CPU", "page faults", "wakes lost", "clock", "idle states"],
    variants.map((v) => [v.label || "wakeup", f.percent(v.own_cpu), f.count(v.page_faults), f.count(v.all.lost),
      v.frequency_khz === null ? "not visible" : `${f.count(v.frequency_khz / 1e3)}\u202fMHz`, idle(v)]));
}

/** The machine, and the settings that all variants share: the others are in their names. */
function facts(probe: Wakeup): HTMLElement {
  const [first, ...others] = probe.variants;
  const shared = Object.entries(first?.settings ?? {}).filter(([key, value]) => others.every((other) => other.settings[key] === value));
  const began = probe.started_s > 0 ? [["Began", new Date(probe.started_s * 1e3).toISOString().replace("T", " ").slice(0, 19) + " UTC"]] : [];
  const rows = [...began, ["Measured", `${probe.measured_s.toFixed(1)} s, all variants together`],
    ...shared, ...Object.entries(probe.machine).filter(([key]) => key !== "command")];
  return h("dl", {}, ...rows.flatMap(([key, value]) => [h("dt", {}, capital(key ?? "")), h("dd", {}, value ?? "")]));
}

const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);
