// Elements from values: text is always text, never markup.

type Child = Node | string | null | false;

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Record<string, string>, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== false));
  return element;
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
