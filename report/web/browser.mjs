// Debian's Chromium, driven by playwright-core: for tests and for screenshots.
//   node browser.mjs REPORT.html OUT.png [--dark] [--width N] [--full]
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export async function open(path, { dark = false, width = 1200, height = 1500 } = {}) {
  const browser = await chromium.launch({
    executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync"],
  });
  const page = await browser.newPage({ viewport: { width, height }, colorScheme: dark ? "dark" : "light", offline: true });
  const trouble = [];
  page.on("console", (message) => message.type() === "error" && trouble.push(message.text()));
  page.on("pageerror", (error) => trouble.push(String(error)));
  page.on("request", (request) => request.url().startsWith("http") && trouble.push(`request to ${request.url()}`));
  await page.goto(pathToFileURL(path).href);
  // A page is finished as it comes; its script then draws what one can point at. What is closed is drawn when it is opened.
  await page.waitForFunction(() => document.querySelector("main")
    && [...document.querySelectorAll(".plot")].every((plot) => !plot.checkVisibility() || plot.querySelector("canvas, svg > *")));
  return { browser, page, trouble };
}

if (process.argv[1] === import.meta.filename) {
  const [path, out, ...flags] = process.argv.slice(2);
  const width = Number(flags[flags.indexOf("--width") + 1]) || 1200;
  const { browser, page } = await open(path, { dark: flags.includes("--dark"), width });
  await page.screenshot({ path: out, fullPage: flags.includes("--full") });
  await browser.close();
}
