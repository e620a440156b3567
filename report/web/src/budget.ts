// The page of a cycle budget, top to bottom.

import type { Budget, Lane, Phase, Residual, Term } from "./budget-data";
import type { Ns } from "./data";
import { bar, h, section, table } from "./dom";
import * as f from "./format";
import { histogram } from "./plots";

export function budgetPage(budget: Budget): HTMLElement {
  const about = [budget.name, `${f.count(budget.servos)} servos`, budget.target_hz !== null && `target ${hertz(budget.target_hz)}`];
  const worth = budget.sensitivity.filter((row) => row.gain_us >= 0.005 || (row.per_unit_us >= 0.005 && row.words[0] === row.words[1]));
  const worthless = budget.sensitivity.filter((row) => !worth.includes(row)).map((row) => row.key);
  return h("div", { class: "report" },
    h("header", {},
      h("p", { class: "kicker" }, h("b", {}, "taut bus budget"), ` ${about.filter((part) => part).join(" · ")}`),
      h("p", { class: "headline" }, budget.title),
      h("p", { class: "subline" }, h("strong", {}, budget.headline)),
      budget.about !== "" && h("p", { class: "subline quiet" }, budget.about),
      h("ul", { class: "notes" }, ...[...(budget.published ? [budget.published.sentence] : []), ...budget.honesty].map((text) => h("li", {}, text)))),
    h("article", {},
      section("The cycle over time", timeline(budget)),
      section("Slack of each resource", slackTable(budget)),
      section("Where the cycle goes", termTable(budget)),
      section("How it varies", drawnTable(budget), budget.polled && h("p", { class: "aside" }, budget.polled.sentence), spread(budget)),
      section("What each figure is worth", worthTable(worth),
        worthless.length > 0 && h("p", { class: "aside" }, `Changes nothing now, while another resource decides: ${worthless.join(", ")}.`)),
      budget.solved && section(`What ${hertz(budget.solved.target_hz)} allows, one figure at a time`,
        h("ul", { class: "results" }, ...budget.solved.answers.map((answer) => h("li", {}, answer.sentence)))),
      budget.against && section("Against the recording", h("p", {}, budget.against.sentence), phaseTable([...budget.against.phases, budget.against.cycle]), residualTable(budget.against.terms, budget.terms)),
      section("Work it out again", h("pre", {}, `${budget.command}\n`))));
}

const us = (value: number | null): string => (value === null ? "–" : `${value < 0 ? "−" : ""}${f.microseconds(Math.round(Math.abs(value) * 1e3) as Ns)}`);
const signed = (value: number | null): string => (value !== null && value > 0.0005 ? `+${us(value)}` : us(value));
const hertz = (hz: number): string => (hz >= 999.5 ? `${Number((hz / 1e3).toPrecision(3))}\u202fkHz` : `${Number(hz.toPrecision(3))}\u202fHz`);

/** Colour by what a term is: on the wire, in the servo, between the two, in the host. */
const kinds: [name: string, color: string, stages: string[]][] = [
  ["on the wire", "own", ["host-wire", "servo-wire", "reply-wire", "can", "spi", "imu"]],
  ["in the servo", "way", ["servo-turnaround"]],
  ["between them", "wait", ["bridge", "uart-fifo", "direction", "inter-frame"]],
  ["in the host", "lock", ["control-compute", "encode", "syscall", "rx-wake", "parse"]],
  ["late or lost", "taken", ["scheduler", "retry", "cycle-end"]],
];
const color = (stage: string): string => kinds.find(([, , stages]) => stages.includes(stage))?.[1] ?? "unknown";

/** One bar a resource on one axis of time, up to the period. */
function timeline(budget: Budget): HTMLElement {
  const period = budget.cycle.misses?.period_us ?? null;
  const end = 1.02 * Math.max(budget.cycle.mean_us, period ?? 0);
  const at = (time: number): string => `${((100 * time) / end).toFixed(3)}%`;
  const step = niceStep(end);
  const ticks = Array.from({ length: Math.floor(end / step) + 1 }, (_, i) => i * step);
  const marks = (label: boolean): HTMLElement[] => [
    ...(period === null ? [] : [h("span", { class: "mark period", style: `left:${at(period)}` }, label ? `period ${us(period)}` : "")]),
    h("span", { class: "mark", style: `left:${at(budget.cycle.mean_us)}` }, label && period !== null && Math.abs(period - budget.cycle.mean_us) < 0.12 * end ? "" : label ? `cycle ${us(budget.cycle.mean_us)}` : ""),
  ];
  const used = kinds.filter(([, , stages]) => budget.terms.some((term) => term.total_us > 0 && stages.includes(term.stage)));
  return h("div", { class: "timeline" },
    h("p", { class: "finding" }, `Each resource's work in µs from the start of the cycle, a term's payments put together in one piece, in the order of the file. ${budget.lanes.some((lane) => lane.parallel) ? "Parallel resources begin together; the longest decides." : "Everything is done one after the other."}`),
    h("div", { class: "keys" }, ...used.map(([name, key]) => h("span", {}, h("span", { class: `dot c-${key}` }), name)),
      ...(budget.terms.some((term) => term.origin === "fitted") ? [h("span", {}, h("span", { class: "dot c-unknown fitted" }), "fitted")] : [])),
    h("div", { class: "track heads", "aria-hidden": "true" }, ...marks(true)),
    ...budget.lanes.map((lane) => laneRow(lane, budget.terms, at, end, marks(false))),
    h("div", { class: "track ticks", "aria-hidden": "true" }, ...ticks.map((tick) => h("span", { style: `left:${at(tick)}` }, f.count(tick)))));
}

function laneRow(lane: Lane, terms: Term[], at: (time: number) => string, end: number, marks: HTMLElement[]): HTMLElement {
  const shown = lane.segments.filter((segment) => segment.us > 0);
  const said = shown.map((segment) => `${segment.term} ${us(segment.us)} µs`).join(", ");
  const name = h("span", { class: "lane-title" }, lane.name, h("span", { class: "tag" }, lane.decides ? "decides" : lane.parallel ? "" : "serial"));
  return h("div", {}, name, h("div", { class: "track", role: "img", "aria-label": `${lane.name}: ${said}` },
    ...shown.map((segment) => {
      const term = terms.find((one) => one.name === segment.term);
      const style = `left:${at(segment.start_us)};width:${at(segment.us)}`;
      const title = `${segment.term}: ${us(segment.us)} µs, from ${us(segment.start_us)} to ${us(segment.start_us + segment.us)} µs${term ? ` (${term.origin})` : ""}`;
      return h("span", { class: `piece c-${color(term?.stage ?? "")}${term?.origin === "fitted" ? " fitted" : ""}`, style, title }, segment.us > 0.06 * end ? segment.term : "");
    }), ...marks));
}

/** 1, 2 or 5 times a power of ten, so that some six fit. */
function niceStep(end: number): number {
  const power = 10 ** Math.floor(Math.log10(end / 6));
  return power * ([1, 2, 5, 10].find((factor) => end / (power * factor) <= 8) ?? 10);
}

function withBar(share: number, kind = ""): HTMLElement {
  return h("span", { class: "with-bar" }, bar(share, kind), f.percent(share));
}

function slackTable(budget: Budget): HTMLElement {
  const of = budget.cycle.misses ? "of the period" : "of the cycle";
  return table("In µs a cycle. Slack: how much more work, on average, before the period (without a target: the cycle) grows",
    ["resource", "servos", "busy", "p99", of, "slack"],
    budget.lanes.map((lane) => [
      h("span", {}, lane.name, lane.decides ? h("span", { class: "tag" }, "decides") : ""), f.count(lane.servos),
      us(lane.busy_us), us(lane.busy_p99_us), withBar(lane.utilisation, lane.utilisation > 1 ? "bad" : "spread"), us(lane.slack_us),
    ]));
}

function termTable(budget: Budget): HTMLElement {
  const hidden = budget.terms.some((term) => term.share === null);
  return table(`In µs${hidden ? "; hidden: on a resource that works meanwhile and is done earlier" : ""}`,
    ["term", "times", "each", "cycle", "share", "known", "resource"],
    budget.terms.map((term) => [
      h("span", term.note === "" ? {} : { title: term.note }, h("span", { class: `dot c-${color(term.stage)}${term.origin === "fitted" ? " fitted" : ""}` }), term.name),
      f.count(term.count), us(term.each_us), us(term.total_us),
      term.share === null ? "hidden" : withBar(term.share, "spread"),
      term.origin === "fitted" ? h("strong", {}, "fitted") : term.origin, term.resource,
    ]));
}

function drawnTable(budget: Budget): HTMLElement {
  const d = budget.cycle.drawn;
  return table(`In µs. ${budget.cycle.sentence}`, ["", "n", "min", "p50", "p90", "p99", "p99.9", "max"],
    [["drawn cycles", f.count(d.n), ...[d.min_ns, d.p50_ns, d.p90_ns, d.p99_ns, d.p999_ns, d.max_ns].map(f.microseconds)]]);
}

function spread(budget: Budget): HTMLElement | false {
  const varies = budget.cycle.drawn.min_ns !== budget.cycle.drawn.max_ns;
  return varies && h("div", { class: "plots" }, h("div", { class: "wide" },
    histogram({ title: "Drawn cycles", what: "cycles", of: "cycle", bins: budget.cycle.histogram, unit: "µs" })));
}

function worthTable(rows: Budget["sensitivity"]): HTMLElement {
  const most = Math.max(...rows.map((row) => row.gain_us), 1e-9);
  return table("What a step of a figure saves of the cycle, in µs, and its slope at the present value", ["figure", "now", "step to", "saves", "slope"],
    rows.map((row) => [row.key, row.words[0], row.words[0] === row.words[1] ? "–" : row.words[1],
      row.gain_us < 0.005 ? "–" : h("span", { class: "with-bar" }, bar(row.gain_us / most, "good"), us(row.gain_us)), row.words[2]]));
}

function phaseTable(rows: Phase[]): HTMLElement {
  return table("Phases of the host's cycle, in µs; typical: measured median less the model; slow: what slow cycles add to the mean", ["phase", "n", "p50", "p99", "mean", "model", "typical", "slow"],
    rows.map((row) => [row.phase, row.n === null ? "not stamped" : f.count(row.n), us(row.p50_us), us(row.p99_us), us(row.mean_us), us(row.model_us), signed(row.typical_us), signed(row.tail_us)]));
}

function residualTable(rows: Residual[], terms: Term[]): HTMLElement {
  const each = (name: string): number => terms.find((term) => term.name === name)?.each_us ?? 0;
  return table("Terms, in µs. A phase's residual is shown at each of its terms, with what that term would have to cost each time to explain the typical part alone",
    ["term", "phase", "model", "measured", "typical", "slow", "", "if it alone, each"],
    rows.map((row) => [row.term, row.phase, us(row.model_us), us(row.measured_us), signed(row.typical_us), signed(row.tail_us), row.alone ? "alone" : "",
      row.needed_each_us === null ? "–" : `${us(each(row.term))} → ${us(row.needed_each_us)}`]));
}
