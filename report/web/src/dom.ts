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

/** The figures of a kind with the data that stand beside their stills. */
export function* stills<T>(kind: string): Generator<[HTMLElement, T]> {
  for (const data of document.querySelectorAll(`script.${kind}`)) {
    const figure = data.closest("figure");
    const model = JSON.parse(data.textContent ?? "null") as T | null;
    if (figure && model) yield [figure, model];
  }
}

/** A picture by itself, in a tab or a file of its own, can be zoomed and searched: as an image nothing in it runs. */
export function openPictures(): void {
  for (const image of document.querySelectorAll<HTMLImageElement>("figure img")) {
    const markup = decodeURIComponent(image.src.slice(image.src.indexOf(",") + 1));
    const url = URL.createObjectURL(new Blob([markup], { type: "image/svg+xml" }));
    image.before(h("p", { class: "aside" }, h("a", { href: url, target: "_blank" }, "Open it by itself"), " to zoom in and to search, or ",
      h("a", { href: url, download: "flame.svg" }, "save it"), "."));
  }
}
