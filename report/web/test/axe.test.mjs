// Every kind of page, and one with everything that a document may have, held against axe: headings, names, contrast, what a keyboard
// reaches. The samples are those that `cargo test -p taut-report -p taut-document` writes.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { open } from "../browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const pages = ["document", "sample-report", "edges-report", "comparison-report", "gate-worse", "gate-history", "fleet-report", "lab", "guard-replay", "budget-answers", "probe-ways"];

for (const name of pages) {
  test(`axe finds nothing on the page ${name}, wide and light, narrow and dark`, async () => {
    const { browser, page } = await open(new URL(`../../../target/${name}.html`, import.meta.url).pathname, { width: 1280 });
    try {
      await page.evaluate(axe);
      const found = async (how) => {
        const { violations } = await page.evaluate("axe.run()");
        assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 160)}`), [], how);
      };
      await found("wide and light");
      await page.setViewportSize({ width: 390, height: 900 });
      await page.emulateMedia({ colorScheme: "dark" });
      await found("narrow and dark");
    } finally {
      await browser.close();
    }
  });
}
