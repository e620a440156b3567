// The page of a cycle budget in a real browser, from the samples that `cargo test -p taut-report` writes.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { after, before, test } from "node:test";
import { open } from "../browser.mjs";

const path = (name) => new URL(`../../../target/budget-${name}.html`, import.meta.url).pathname;
const sessions = [];

before(() => assert.ok(existsSync(path("parallel")), `${path("parallel")} is missing: run cargo test -p taut-report first`));
after(() => Promise.all(sessions.map(({ browser }) => browser.close())));

async function opened(name, options) {
  const session = await open(path(name), options);
  sessions.push(session);
  return session;
}

test("it draws without errors and without the network, in light and dark", async () => {
  for (const [name, dark] of [["parallel", false], ["parallel", true], ["answers", false]]) {
    const { page, trouble } = await opened(name, { dark });
    assert.ok((await page.locator("article canvas").count()) > 0);
    assert.deepEqual(trouble, []);
  }
});

test("each resource is a bar as long as its work, on one axis with the period", async () => {
  const { page } = await opened("parallel");
  const bars = page.locator(".timeline .track[role=img]");
  assert.equal(await bars.count(), 5);
  const box = async (locator) => await locator.boundingBox();
  const track = await box(bars.first());
  const scale = (await box(bars.first().locator(".mark.period"))).x - track.x;
  const end = async (bar) => { const last = await box(bar.locator(".piece").last()); return (1000 * (last.x + last.width - track.x)) / scale; };
  const { lanes } = JSON.parse(await page.locator("#data").textContent())[0];
  for (const [at, lane] of lanes.entries()) {
    const ends = await end(bars.nth(at));
    assert.ok(Math.abs(ends - lane.start_us - lane.busy_us) < 4, `${lane.name} ends at ${ends} µs of ${lane.busy_us}`);
  }
  assert.match(await bars.nth(1).getAttribute("aria-label"), /CAN bus 1: commands on the bus \d+/);
});

test("fits are said and marked", async () => {
  const { page } = await opened("answers");
  assert.match(await page.locator(".notes").textContent(), /Fitted, so that the total comes out: the rest of the host 17\.0 µs/);
  assert.equal(await page.locator(".timeline .piece.fitted").count(), 1);
});

test("nothing is wider than a narrow page", async () => {
  for (const name of ["parallel", "answers"]) {
    const { page } = await opened(name, { width: 400 });
    const [wide, window] = await page.evaluate(() => [document.documentElement.scrollWidth, innerWidth]);
    assert.ok(wide <= window, `${name}: ${wide} of ${window}`);
  }
});
