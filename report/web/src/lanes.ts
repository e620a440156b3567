// Lanes that one can look into: what each thread did, and the pieces that matter on top. A list chooses one of several.
// Wheel or +/− zooms, dragging moves, arrow keys walk along the pieces, 0 shows all again.

import type { Class, LaneItem, Lanes, Text } from "../dist/document";
import { h, stills } from "./dom";
import * as f from "./format";

const ROW = 34;
const TOP = 20;
/** Below this nothing is told apart. */
const LEAST_NS = 1000;

const svg = (tag: string, attributes: Record<string, string | number>, text = ""): SVGElement => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  if (text) element.textContent = text;
  return element;
};
const plain = (text: Text): string => text.flatMap((part) => Object.values(part)).join("");
const tone = (of: Class | undefined): string => of === undefined ? "quiet" : typeof of.tone === "string" ? of.tone.toLowerCase() : `s${of.tone.Series % 8}`;

/** A still in less room has letters that nobody reads. */
const STILL_MIN = 600;

/** Draws all lanes of which more is known than their pieces: they are longer than a glance. On a phone all are drawn in its width. */
export function drawLanes(): void {
  for (const [figure, model] of stills<Lanes>("lanes")) {
    if (figure.clientWidth < STILL_MIN || model.items.some((item) => item.states.length > 0)) upgrade(model, figure);
  }
}

function upgrade(model: Lanes, figure: HTMLElement): void {
  const tables = [...figure.querySelectorAll("details.data")];
  const stage = h("div", { class: "stage" });
  const list = h("ol", { class: "worst", role: "listbox", tabindex: "0", "aria-label": "Up and down choose one" });
  const options = model.items.map((item) => {
    const option = h("li", { role: "option" }, plain(item.title));
    list.append(option);
    return option;
  });
  let at = 0;
  const choose = (to: number): void => {
    at = Math.max(0, Math.min(model.items.length - 1, to));
    options.forEach((option, i) => option.setAttribute("aria-selected", String(i === at)));
    const item = model.items[at];
    if (item) stage.replaceChildren(h("p", { class: "finding" }, plain(item.title)), ...drawn(model, item), tables[at] ?? "");
  };
  options.forEach((option, i) => option.addEventListener("click", () => choose(i)));
  list.addEventListener("keydown", (event) => {
    const to = ({ ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: model.items.length - 1 } as Record<string, number>)[event.key];
    if (to === undefined) return;
    event.preventDefault();
    choose(to);
  });
  choose(0);
  const key = figure.querySelector(".key") ?? "";
  figure.replaceChildren(key, model.items.length > 1 ? h("div", { class: "messages" }, list, stage) : stage);
}

function drawn(model: Lanes, item: LaneItem): HTMLElement[] {
  const [start, end] = [item.from_ns, item.to_ns];
  const margin = (end - start) / 20;
  let [from, to] = [start - margin, end + margin];
  let piece = -1;
  const height = TOP + ROW * item.rows.length + 18;
  const drawing = svg("svg", { class: "drawn", height, width: "100%" });
  const box = h("div", {
    class: "plot lane-plot", tabindex: "0", role: "img",
    "aria-label": `${plain(item.title)}, on ${item.rows.length} lanes. Arrow keys walk along the pieces, plus and minus zoom, 0 shows all.`,
  });
  const live = h("p", { class: "readout", "aria-live": "polite" }, "");
  const rowName = (row: number): string => { const of = item.rows[row]; return of ? [of.group, of.name].filter(Boolean).join(": ") : ""; };
  const words = (at: number): string => {
    const p = item.pieces[at];
    return p ? `+${f.duration(p.from_ns - start)}: ${f.duration(p.to_ns - p.from_ns)} ${p.text}, in ${rowName(p.row)}` : "";
  };

  const draw = (): void => {
    const width = Math.max(240, box.clientWidth);
    const x = (ns: number): number => ((ns - from) / (to - from)) * width;
    const parts: SVGElement[] = [];
    const rect = (a: number, b: number, y: number, tall: number, kind: string, text: string): void => {
      const [left, right] = [Math.max(-2, x(a)), Math.min(width + 2, x(b))];
      if (right < 0 || left > width) return;
      const element = svg("rect", { x: left, y, width: Math.max(0.7, right - left), height: tall, class: kind });
      element.append(svg("title", {}, text));
      parts.push(element);
    };
    for (const [row, a, b, activity] of item.states) {
      const y = TOP + ROW * row;
      const [top, tall] = activity === "Waiting" ? [y + 16, 2] : [y + 12, 10];
      rect(a, b, top, tall, `state ${activity.toLowerCase()}`, `${activity.toLowerCase()} ${f.duration(b - a)}`);
    }
    item.pieces.forEach((p, i) => {
      const y = TOP + ROW * p.row;
      const of = model.classes[p.class];
      rect(p.from_ns, p.to_ns, y + 8, 18, `piece ${tone(of)}${i === piece ? " chosen" : ""}`, words(i));
      if (of?.texture) {
        const over = parts.at(-1)?.cloneNode(true) as SVGElement;
        over.removeAttribute("class");
        over.setAttribute("fill", `url(#texture-${of.texture})`);
        parts.push(over);
      }
      const [left, right] = [Math.max(0, x(p.from_ns)), Math.min(width, x(p.to_ns))];
      if (of && right - left > 8 * of.name.length) parts.push(svg("text", { x: left + 4, y: y + 21, class: `on ${tone(of)}` }, of.name));
    });
    let free = -1;
    for (const [ns, name] of item.moments) {
      const left = x(ns);
      if (left < 0 || left > width) continue;
      parts.push(svg("line", { x1: left, x2: left, y1: TOP - 6, y2: height - 16, class: "moment" }));
      if (left > free && left + 6.5 * name.length < width) { parts.push(svg("text", { x: left + 2, y: TOP - 8 }, name)); free = left + 7 * name.length; }
    }
    item.rows.forEach((_, row) => parts.push(svg("text", { x: 4, y: TOP + ROW * row + 3, class: "row" }, rowName(row))));
    const ticks = 5;
    for (let i = 0; i <= ticks; i++) {
      const ns = from + ((to - from) * i) / ticks;
      parts.push(svg("text", { x: (width * i) / ticks, y: height - 3, "text-anchor": i === 0 ? "start" : i === ticks ? "end" : "middle" }, f.duration(ns - start)));
    }
    drawing.replaceChildren(...parts);
  };
  const zoom = (factor: number, around: number): void => {
    const span = Math.max(LEAST_NS, Math.min((end - start) * 1.2, (to - from) * factor));
    const share = (around - from) / (to - from);
    from = around - span * share;
    to = from + span;
    draw();
  };
  const choose = (to_: number): void => {
    piece = Math.max(0, Math.min(item.pieces.length - 1, to_));
    const p = item.pieces[piece];
    if (p && (p.from_ns < from || p.to_ns > to)) {
      const span = to - from;
      from = (p.from_ns + p.to_ns) / 2 - span / 2;
      to = from + span;
    }
    live.textContent = words(piece);
    draw();
  };
  box.addEventListener("keydown", (event) => {
    const p = item.pieces[piece];
    const middle = p ? (p.from_ns + p.to_ns) / 2 : (from + to) / 2;
    const actions: Record<string, () => void> = {
      ArrowRight: () => choose(piece + 1), ArrowLeft: () => choose(piece - 1), Home: () => choose(0), End: () => choose(item.pieces.length - 1),
      "+": () => zoom(0.5, middle), "=": () => zoom(0.5, middle), "-": () => zoom(2, middle),
      "0": () => { [from, to] = [start - margin, end + margin]; draw(); },
    };
    const action = actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  box.addEventListener("wheel", (event) => {
    event.preventDefault();
    const share = (event.clientX - box.getBoundingClientRect().left) / Math.max(1, box.clientWidth);
    zoom(event.deltaY > 0 ? 1.25 : 0.8, from + share * (to - from));
  }, { passive: false });
  let grabbed: number | null = null;
  box.addEventListener("pointerdown", (event) => { grabbed = event.clientX; box.setPointerCapture(event.pointerId); });
  box.addEventListener("pointerup", () => { grabbed = null; });
  box.addEventListener("pointermove", (event) => {
    if (grabbed === null) return;
    const shift = ((grabbed - event.clientX) / Math.max(1, box.clientWidth)) * (to - from);
    [from, to, grabbed] = [from + shift, to + shift, event.clientX];
    draw();
  });
  box.append(drawing);
  new ResizeObserver(draw).observe(box);
  return [box, live];
}
