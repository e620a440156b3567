// Elements from values: text is always text, never markup.

type Child = Node | string | null | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string>, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child): child is Node | string => child !== null && child !== false));
  return element;
}

export function section(title: string, ...children: Child[]): HTMLElement {
  return h("section", {}, h("h2", {}, title), ...children);
}

/** A table; the first column is the row's heading, the others are figures. */
export function table(caption: string, head: (string | Node)[], rows: (string | Node)[][], hidden = false): HTMLElement {
  const body = rows.map(([first, ...rest]) =>
    h("tr", {}, h("th", { scope: "row" }, first ?? ""), ...rest.map((cell) => h("td", {}, cell))));
  const element = h("table", {},
    h("caption", { class: "quiet" }, caption),
    h("thead", {}, h("tr", {}, ...head.map((cell) => h("th", { scope: "col" }, cell)))),
    h("tbody", {}, ...body));
  return hidden ? h("details", { class: "data" }, h("summary", {}, `Data: ${caption}`), element) : h("div", { class: "scroll" }, element);
}

/** A bar as wide as its share, for the eye only: the figure stands beside it. */
export function bar(share: number, kind = ""): HTMLElement {
  const width = `${(Math.max(0, Math.min(1, share)) * 100).toFixed(2)}%`;
  return h("span", { class: `bar ${kind}`, "aria-hidden": "true" }, h("span", { style: `width:${width}` }));
}

let choices = 0;

/** One of several views of the same thing; the first is shown. */
export function choice(legend: string, views: [name: string, draw: () => HTMLElement][], kind = ""): HTMLElement {
  const name = `choice-${choices++}`;
  const place = h("div", {});
  const options = views.map(([label, draw], at) => {
    const input = h("input", { type: "radio", name, ...(at === 0 ? { checked: "" } : {}) });
    input.addEventListener("change", () => place.replaceChildren(draw()));
    return h("label", {}, input, h("span", {}, label));
  });
  place.replaceChildren(...views.slice(0, 1).map(([, draw]) => draw()));
  return h("div", { class: kind }, h("fieldset", { class: "choice" }, h("legend", {}, legend), ...options), place);
}
