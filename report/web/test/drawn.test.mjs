// The pages of a gate, of a history and of a fleet in a real browser, from the samples that `cargo test -p taut-report` writes. They
// are to look the same in an archive of build results, where scripts are often forbidden.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { open } from "../browser.mjs";

const pages = { "gate-worse": 2, "gate-history": 1, "fleet-report": 2, "fleet-worst": 1, "fleet-compare": 1 };
const path = (name) => new URL(`../../../target/${name}.html`, import.meta.url).pathname;
const sessions = [];

before(() => Object.keys(pages).forEach((name) => assert.ok(existsSync(path(name)), `${path(name)} is missing: run cargo test -p taut-report first`)));
after(() => Promise.all(sessions.map(({ browser }) => browser.close())));

async function opened(name, options) {
  const session = await open(path(name), options);
  sessions.push(session);
  return session;
}

test("they show their plots without scripts, errors or the network, in light and dark", async () => {
  for (const [name, plots] of Object.entries(pages)) {
    assert.ok(!readFileSync(path(name), "utf8").includes("<script"), name);
    for (const dark of [false, true]) {
      const { page, trouble } = await opened(name, { dark });
      assert.equal(await page.locator("svg.drawn").count(), plots);
      assert.deepEqual(trouble, []);
    }
  }
});

test("both distributions lie on one plot, told apart by colours that their names have", async () => {
  const { page } = await opened("gate-worse");
  assert.match(await page.locator(".headline").textContent(), /^WORSE: read → plan, work p50/);
  const figure = page.locator("figure").first();
  const colours = async (of, what) => figure.locator(of).evaluate((e, what) => getComputedStyle(e)[what], what);
  const [a, b] = [await colours(".curve.s0", "stroke"), await colours(".curve.s1", "stroke")];
  assert.notEqual(a, b);
  assert.deepEqual([await colours(".key b.s0", "color"), await colours(".key b.s1", "color")], [a, b]);
});

test("no label of a plot leaves it or covers another", async () => {
  for (const name of Object.keys(pages)) {
    for (const width of [390, 1200]) {
      const { page } = await opened(name, { width });
      const overlaps = await page.evaluate(() => [...document.querySelectorAll("svg.drawn")].flatMap((svg) => {
        const outer = svg.getBoundingClientRect();
        const boxes = [...svg.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
        const out = boxes.filter(([, box]) => box.left < outer.left - 1 || box.right > outer.right + 1 || box.bottom > outer.bottom + 1);
        const meet = (a, b) => a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
        const over = boxes.filter(([, a], at) => boxes.slice(at + 1).some(([, b]) => meet(a, b)));
        return [...out, ...over].map(([text]) => text);
      }));
      assert.deepEqual(overlaps, [], `${name}, ${width} px`);
    }
  }
});

test("nothing is wider than a narrow page", async () => {
  for (const name of Object.keys(pages)) {
    const { page } = await opened(name, { width: 390 });
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth), name);
  }
});
