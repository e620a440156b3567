// The page in a real browser, made by the real command from a real recording's analysis (TAUT_PAGE), or
// from the sample that `cargo test -p taut-report` writes.
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync } from "node:fs";
import { after, before, test } from "node:test";
import { open } from "../browser.mjs";

const path = process.env.TAUT_PAGE ?? new URL("../../../target/sample-report.html", import.meta.url).pathname;

before(() => assert.ok(existsSync(path), `${path} is missing: run cargo test -p taut-report first`));

let session;
after(() => session?.browser.close());
const light = async () => (session ??= await open(path));

test("it draws without errors and without the network", async () => {
  const { page, trouble } = await light();
  assert.equal(await page.locator(".charts").first().locator("canvas").count(), 3);
  assert.ok((await page.locator(".headline").textContent()).includes("messages"));
  assert.deepEqual(trouble, []);
});

test("the file is small enough to mail", () => assert.ok(statSync(path).size < 1.5e6));

test("a profile is drawn in the page, and by itself can be zoomed and searched", async () => {
  const { page } = await light();
  const figure = page.locator("figure:has(img)");
  if (await figure.count() === 0) return;
  assert.ok(await figure.first().locator("img").evaluate((e) => e.decode().then(() => e.naturalWidth > 300 && e.naturalHeight > 60)));
  const link = figure.first().getByRole("link", { name: "Open it by itself" });
  const [alone] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
  const trouble = [];
  alone.on("dialog", (dialog) => { trouble.push(dialog.message()); dialog.dismiss(); });
  await alone.waitForSelector("#frames g");
  const wide = () => alone.locator("#frames g:visible").count();
  const all = await wide();
  await alone.locator("#frames g", { hasText: "dds.recv" }).first().click({ force: true });
  assert.ok(await wide() < all, "zooming in shows fewer boxes");
  assert.deepEqual(trouble, []);
  await alone.close();
});

test("the outcomes on the page sum to the messages", async () => {
  const { page } = await light();
  const digits = (text) => Number(text.replace(/\D/g, ""));
  const table = page.locator("table", { has: page.getByRole("columnheader", { name: "outcome" }) }).first();
  const counts = await table.locator("tbody tr td:nth-child(2)").allTextContents();
  const passed = page.locator("table", { has: page.getByRole("columnheader", { name: "messages that passed" }) }).first();
  const first = await passed.locator("tbody tr td:nth-child(2)").first().textContent();
  assert.ok(counts.length > 2 && digits(first) > 0, `${counts}`);
  assert.equal(counts.map(digits).reduce((sum, n) => sum + n, 0), digits(first));
});

test("every chart can be walked with the keyboard and speaks its value", async () => {
  const { page } = await light();
  for (const figure of await page.locator("figure:has(.plot)").all()) {
    await figure.locator(".plot").focus();
    await page.keyboard.press("Home");
    const first = await figure.locator("[aria-live]").textContent();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("ArrowRight");
    const later = await figure.locator("[aria-live]").textContent();
    assert.ok(first.length > 0 && later.length > 0 && first !== later, `${first} → ${later}`);
  }
});

test("every chart has a name, a finding and its data as a table", async () => {
  const { page } = await light();
  for (const figure of await page.locator("figure:has(.plot)").all()) {
    assert.ok((await figure.locator(".plot").getAttribute("aria-label")).length > 20);
    assert.ok((await figure.locator(".finding").textContent()).length > 15);
    assert.ok(await figure.locator("details table tbody tr").count() > 0);
  }
});

test("causes are told in words, and the worst messages can be chosen and walked by keyboard", async () => {
  const { browser, page, trouble } = await open(new URL("../../../target/sample-report.html", import.meta.url).pathname);
  try {
    assert.match(await page.locator("h3:text-is('Causes') + p").textContent(), /above p\d+/);
    const excess = page.locator("figure.lanes:has(.drawn)").first();
    const wide = await excess.locator(".drawn rect.piece").evaluateAll((pieces) => pieces.map((e) => e.width.baseVal.value));
    assert.ok(Math.abs(wide.slice(0, 3).reduce((a, b) => a + b) - wide.slice(3).reduce((a, b) => a + b)) < 6, "the hops sum to the chain");
    for (const label of await page.locator("h3:text-is('Hypotheses') + ul b:first-child").all()) assert.match(await label.textContent(), /contributes?|undecided|–/);
    const list = page.getByRole("listbox");
    await list.focus();
    await page.keyboard.press("End");
    assert.equal(await list.locator("[aria-selected=true]").count(), 1);
    const stage = page.locator(".stage");
    assert.match(await stage.locator("details").textContent(), /Message 1735/);
    const plot = stage.locator(".lane-plot");
    await plot.focus();
    await page.keyboard.press("Home");
    const pieces = await plot.locator("rect.piece").count();
    assert.ok(pieces > 0 && (await stage.locator("[aria-live]").textContent()).startsWith("+0"));
    for (const key of ["+", "+", "+", "+"]) await page.keyboard.press(key);
    assert.ok(await plot.locator("rect.piece").count() < pieces, "zooming in shows fewer pieces");
    await page.keyboard.press("0");
    assert.equal(await plot.locator("rect.piece").count(), pieces);
    assert.deepEqual(trouble, []);
  } finally {
    await browser.close();
  }
});

test("a histogram's bar reaches from its bin's first latency to its last", async () => {
  const { page } = await light();
  // The last x is where the last bar ends.
  const { xy } = [...readFileSync(path, "utf8").matchAll(/class="chart">(.*?)<\/script>/g)].map(([, data]) => JSON.parse(data)).find((chart) => chart.title.includes("Histogram")).curves[0];
  const bins = xy.slice(0, -1).map(([from, n], i) => [from, xy[i + 1][0], n]);
  const figure = page.locator("figure", { hasText: "Histogram" }).first();
  const ink = await figure.locator("canvas").evaluate((canvas) => {
    const { width, height } = canvas;
    const pixels = canvas.getContext("2d").getImageData(0, 0, width, height).data;
    // The bars' colour, --line-1 of the light theme, in any row of each column.
    const column = (x) => { for (let y = 0; y < height; y++) { const i = 4 * (y * width + x); if (pixels[i] === 0x1f && pixels[i + 1] === 0x5f && pixels[i + 2] === 0xae && pixels[i + 3] === 255) return true; } return false; };
    return Array.from({ length: width }, (_, x) => column(x));
  });
  const [left, right] = [ink.indexOf(true), ink.lastIndexOf(true)];
  const filled = bins.filter((b) => b[2] > 0);
  assert.ok(left > 0 && right > left);
  // Equal steps of latency are equal steps of pixels: seen at each gap between two neighbouring bars.
  const [start, end] = [filled[0][0], filled.at(-1)[1]];
  const log = bins.at(-1)[1] - bins.at(-1)[0] > 3 * (bins.at(-1)[0] - bins[0][0]);
  if (!log) for (const [from] of filled.slice(1)) {
    const at = left + ((from - start) / (end - start)) * (right - left);
    if (bins.length < 20) assert.ok([-2, -1, 0, 1, 2].some((d) => !ink[Math.round(at) + d]), `no edge at ${from} ns`);
  }
});

test("signals are drawn, what was commanded beside what came of it, and telemetry is counted", async () => {
  const { browser, page, trouble } = await open(new URL("../../../target/sample-report.html", import.meta.url).pathname);
  try {
    const figure = (name) => page.locator("figure", { has: page.getByRole("heading", { name, exact: true }) });
    const pair = figure("knee: commanded and actual");
    assert.equal(await figure("battery_v").locator("canvas").count(), 1);
    assert.deepEqual(await pair.locator(".legend button").allTextContents(), ["knee.commanded", "knee.actual"]);
    await pair.locator(".plot").focus();
    await page.keyboard.press("End");
    assert.match(await pair.locator("[aria-live]").textContent(), /knee\.commanded .*knee\.actual/);
    assert.match(await page.locator("tr", { hasText: "/telemetry/leg" }).textContent(), /3 in 1 gap/);
    assert.deepEqual(trouble, []);
  } finally {
    await browser.close();
  }
});

test("what no plot expects is drawn too", async () => {
  const edges = new URL("../../../target/edges-report.html", import.meta.url).pathname;
  const { browser, page, trouble } = await open(edges);
  try {
    // The table of all, 32 chains, of which most are closed, and seven parts below them.
    const closed = page.locator("details.part");
    assert.equal(await page.locator("h2").count() + await closed.count(), 1 + 32 + 7);
    assert.ok(await closed.count() > 25);
    await page.evaluate(() => { for (const part of document.querySelectorAll("details.part")) part.open = true; });
    await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((plot) => plot.querySelector("canvas, svg > *")));
    assert.equal(await page.locator("main b b, main script:not([type='application/json'])").count(), 0, "names are text, never markup");
    const words = await page.locator("main").innerText();
    assert.match(words, /Too few messages went all the way for a chart/);
    for (const bad of ["NaN", "Infinity", "undefined", "null", "[object"]) assert.ok(!words.includes(bad), bad);
    for (const figure of await page.locator("figure:has(canvas)").all()) {
      await figure.locator(".plot").focus();
      await page.keyboard.press("End");
      const name = await figure.locator("h3").first().textContent();
      assert.ok((await figure.locator("[aria-live]").textContent()).length > 0, name);
      const inked = await figure.locator("canvas").evaluate((c) => c.getContext("2d").getImageData(0, 0, c.width, c.height).data.some((v) => v !== 0));
      assert.ok(inked, `nothing drawn in ${name}`);
    }
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((p) => (p.querySelector("canvas")?.clientWidth ?? 0) <= p.clientWidth));
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${width} px`);
    }
    assert.deepEqual(trouble, []);
  } finally {
    await browser.close();
  }
});

test("two recordings stand side by side, then each by itself", async () => {
  const { browser, page, trouble } = await open(new URL("../../../target/comparison-report.html", import.meta.url).pathname);
  try {
    assert.match(await page.locator(".headline").first().textContent(), /source.*right/);
    const ends = page.locator("table", { has: page.getByRole("columnheader", { name: "outcome" }) }).first();
    assert.deepEqual(await ends.locator("thead th").allTextContents(), ["outcome", "source", "right"]);
    assert.match(await ends.locator("tr", { hasText: "without telling" }).textContent(), /2.101.*0 \(0/s);
    const figures = await page.locator("main > .charts > figure:has(.plot)").all();
    assert.equal(figures.length, 2);
    for (const figure of figures) {
      assert.deepEqual(await figure.locator(".legend button").allTextContents(), ["source", "right"]);
      await figure.locator(".plot").focus();
      await page.keyboard.press("End");
      assert.match(await figure.locator("[aria-live]").textContent(), /right/);
    }
    assert.equal(await page.locator("main > figure.lanes svg.drawn .piece").count(), 5);
    assert.equal(await page.locator(".further").count(), 2);
    await page.locator("nav a").last().click();
    assert.ok(await page.locator("#document-2").isVisible());
    for (const width of [390, 1280]) {
      await page.setViewportSize({ width, height: 900 });
      await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((p) => (p.querySelector("canvas")?.clientWidth ?? 0) <= p.clientWidth));
      assert.equal(await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth), 0, `${width} px`);
    }
    assert.deepEqual(trouble, []);
  } finally {
    await browser.close();
  }
});

for (const width of [390, 768, 1280]) {
  test(`nothing sticks out at ${width} px`, async () => {
    const { page } = await light();
    await page.setViewportSize({ width, height: 900 });
    await page.waitForFunction(() => [...document.querySelectorAll(".plot")].every((p) => (p.querySelector("canvas")?.clientWidth ?? 0) <= p.clientWidth));
    const over = await page.evaluate(() => document.documentElement.scrollWidth - document.documentElement.clientWidth);
    assert.equal(over, 0);
  });
}

test("dark and light are both readable", async () => {
  for (const dark of [false, true]) {
    const { browser, page } = await open(path, { dark });
    const ratio = await page.evaluate(() => {
      const channel = (c) => { const s = c / 255; return s <= 0.03928 ? s / 12.92 : ((s + 0.055) / 1.055) ** 2.4; };
      // Relative luminance and contrast: WCAG 2.2.
      const luminance = (color) => { const [r, g, b] = color.match(/[\d.]+/g).map(Number); return 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b); };
      const paper = luminance(getComputedStyle(document.body).backgroundColor);
      return Math.min(...[".headline", ".kicker", ".finding", "th", "td"].map((at) => {
        const ink = luminance(getComputedStyle(document.querySelector(at)).color);
        return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
      }));
    });
    await browser.close();
    assert.ok(ratio >= 4.5, `contrast ${ratio.toFixed(1)} with dark = ${dark}`);
  }
});

test("it prints", async () => {
  const { page } = await light();
  const pdf = await page.pdf({ format: "A4" });
  assert.ok(pdf.length > 20_000);
});
