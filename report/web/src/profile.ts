// Where CPU time went: the flame graph that `taut flamegraph` draws, in the page and to keep.

import type { Profile } from "./data";
import { h } from "./dom";

/** The picture as it is; by itself, in a tab or a file of its own, it can be zoomed and searched. */
export function flameGraph(profile: Profile, name: string): HTMLElement {
  const url = URL.createObjectURL(new Blob([profile.svg], { type: "image/svg+xml" }));
  const file = `${name.split("/").pop() ?? "taut"}.svg`;
  return h("div", { class: "flame" },
    h("p", { class: "aside" }, `${profile.sentence}. The width of a box is the share of samples with this function on the stack; the innermost is at the top. `,
      h("a", { href: url, target: "_blank" }, "Open it by itself"), " to zoom in and to search, or ",
      h("a", { href: url, download: file }, "save it"), "."),
    // As an image nothing in it runs, whatever a function is called.
    h("div", { class: "scroll" }, h("img", { src: url, alt: `Flame graph of ${name}: ${profile.sentence}` })));
}
