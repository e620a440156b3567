// A recording's page, top to bottom; a probe's is in probe.ts.

import { budgetPage } from "./budget";
import type { Budget } from "./budget-data";
import { causeSection } from "./causes";
import type { Chain, Report } from "./data";
import { h, section } from "./dom";
import * as f from "./format";
import { worstMessages } from "./lanes";
import { histogramPlot, percentilePlot, timePlot } from "./plots";
import { probePage } from "./probe";
import type { Probe } from "./probe-data";
import { signalSection } from "./signals";
import { delayTable, hopTable, measured, outcomeFunnel, pointTable } from "./tables";

function chainSections(chain: Chain, all: { name: string; chain: Chain }[]): HTMLElement {
  const started = chain.startup && h("p", { class: "aside" }, h("strong", {}, "Start-up apart: "), chain.startup.sentence, ".");
  const deadline = chain.deadline_ns !== null && h("p", { class: "aside" },
    h("strong", {}, `Deadline ${f.duration(chain.deadline_ns)}: `), `${f.count(chain.missed ?? 0)} of ${f.count(chain.end_to_end.n)} messages missed it.`);
  const branches = chain.branches.length > 0 && h("p", { class: "aside" }, h("strong", {}, "Beside the line: "),
    chain.branches.map((b) => `${b.point} after ${b.after} (${f.count(b.messages)} messages)`).join(", "), ".");
  const plots = chain.end_to_end.n > 1
    ? h("div", { class: "plots" }, percentilePlot(all), histogramPlot(chain), timePlot(chain))
    : h("p", { class: "aside" }, "Too few messages went all the way for a plot.");
  return h("article", {},
    h("h1", { class: "chain" }, chain.name),
    section("How late", delayTable(chain), deadline, started, plots),
    section("Which hop", hopTable(chain), branches),
    section("Whose time it was", causeSection(chain), worstMessages(chain)),
    section("Where the messages ended", outcomeFunnel(chain)),
    section("Rate and period", pointTable(chain)));
}

function page(report: Report, others: Report[]): HTMLElement {
  const r = report.recording;
  const warn = [...report.damage.map((text) => `Damaged: ${text}.`), ...report.notes];
  return h("div", { class: "report" },
    h("header", {},
      h("p", { class: "kicker" }, h("b", {}, "taut"), ` ${report.name} · ${r.duration_s.toFixed(1)} s · ${f.count(r.stamps)} stamps · ${r.tier} tier`),
      h("p", { class: "headline" }, report.headline),
      warn.length > 0 && h("ul", { class: "notes" }, ...warn.map((text) => h("li", {}, text)))),
    ...report.chains.map((chain, at) => {
      // The same chain of the other recordings goes on the same axes.
      const twins = others.flatMap((other) => other.chains.filter((c) => c.name === chain.name).map((c) => ({ name: other.name, chain: c })));
      return chainSections(chain, [{ name: report.name, chain }, ...(at === 0 ? twins : [])]);
    }),
    signalSection(report),
    section("How this was measured", measured(report)),
    section("Reproduce", h("pre", {}, `taut record -o ${f.shell([report.name])}${r.command.length > 0 ? ` -- ${f.shell(r.command)}` : " --pid PID"}\ntaut report ${f.shell([report.name])} --format html -o report.html`)));
}

const root = document.getElementById("report");
const pages = JSON.parse(document.getElementById("data")?.textContent ?? "[]") as (Report | Probe | Budget)[];
const reports = pages.filter((data): data is Report => !("kind" in data));
root?.append(...pages.map((data) => {
  if (!("kind" in data)) return page(data, reports.filter((other) => other !== data));
  return data.kind === "budget" ? budgetPage(data) : probePage(data);
}));
