// Reads {chromium, start, email, password, javaScript, client} from the standard input. It opens the
// authorization request at start in Chromium, signs in if the page asks for it, approves, and writes
// {address, pages, wrong}: where the browser was led, the titles of the pages, and sentences about faults.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const input = JSON.parse(readFileSync(0, "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const out = { address: "", pages: [], wrong: [] };
const browser = await chromium.launch({
  executablePath: input.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const origin = new URL(input.start).origin;
const context = await browser.newContext({ javaScriptEnabled: input.javaScript, viewport: { width: 360, height: 800 } });
const page = await context.newPage();
page.setDefaultTimeout(30_000);
page.on("pageerror", (e) => out.wrong.push(`a page throws ${e}`));
page.on("console", (m) => m.type() === "error" && !m.text().includes("Failed to load resource") && out.wrong.push(`a page reports ${m.text()}`));

// The client is not running: its page is made here, and the address is all that counts.
await page.route(
  (url) => url.origin !== origin,
  (route) => {
    if (route.request().url().startsWith(input.client)) {
      out.address = route.request().url();
      return route.fulfill({ contentType: "text/html", body: "<!doctype html><html lang=en><title>Client</title><h1>Connected</h1>" });
    }
    out.wrong.push(`a page asks another host: ${route.request().url()}`);
    return route.abort();
  },
);

// look checks the current page.
async function look() {
  const title = await page.title();
  out.pages.push(title);
  if (!input.javaScript) return;
  const width = await page.evaluate(() => document.documentElement.scrollWidth);
  if (width > 360) out.wrong.push(`${title} is ${width} px wide, want 360`);
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const result = await page.evaluate(() =>
      window.axe.run({ resultTypes: ["violations"], rules: { "target-size": { enabled: true } } }),
    );
    for (const v of result.violations) {
      out.wrong.push(`${title} (${colorScheme}): ${v.id}: ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")}`);
    }
  }
}

await page.goto(input.start);
await look();
if (await page.getByLabel("Password").count()) {
  await page.getByLabel("Email address").fill(input.email);
  await page.getByLabel("Password").fill("not " + input.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.locator('[aria-invalid="true"]').waitFor();
  await look();
  await page.getByLabel("Password").fill(input.password);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("button", { name: "Approve" }).waitFor();
  await look();
}
await page.locator("summary").click();
await page.getByLabel("Drafts only", { exact: false }).check();
if (input.javaScript) await look();
await page.getByRole("button", { name: "Approve" }).click();
await page.getByText("Connected", { exact: true }).waitFor();
await browser.close();
process.stdout.write(JSON.stringify(out));
