// Reads {base, chromium, pages, console} from the standard input, opens the pages in Chromium and writes what is wrong
// with them as a list of sentences.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const input = JSON.parse(readFileSync(0, "utf8"));
const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const wrong = [];
const browser = await chromium.launch({
  executablePath: input.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});

// open returns a page in a context of its own. It adds to wrong what the page asks of other hosts and what its policy
// refuses.
async function open(name, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  page.on("request", (r) => {
    if (!r.url().startsWith(input.base) && !r.url().startsWith("data:")) wrong.push(`${name} asks another host: ${r.url()}`);
  });
  page.on("pageerror", (e) => wrong.push(`${name} throws ${e}`));
  await page.exposeFunction("reportViolation", (text) => wrong.push(`${name} violates its policy: ${text}`));
  await page.addInitScript(() =>
    addEventListener("securitypolicyviolation", (e) => window.reportViolation(`${e.effectiveDirective} ${e.blockedURI}`)),
  );
  return page;
}

// pageRules also has the rule for the size of links and buttons, which axe leaves out by itself.
const pageRules = { rules: { "target-size": { enabled: true } } };

async function checkPage(path, width) {
  const page = await open(path, { colorScheme: "light", viewport: { width, height: 800 } });
  const answer = await page.goto(input.base + path);
  if (answer.status() !== 200) wrong.push(`${path} is answered with ${answer.status()}`);
  const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
  if (scroll > width) wrong.push(`${path} is ${scroll} px wide, want ${width}`);
  await page.evaluate(axe);
  await checkRules(page, `${path} (light)`, pageRules, 10);
  await page.emulateMedia({ colorScheme: "dark" });
  await checkRules(page, `${path} (dark)`, pageRules, 10);
  await page.context().close();
}

async function checkRules(page, name, only, least) {
  const options = { resultTypes: ["violations"], selectors: false, preload: false, ...only };
  const result = await page.evaluate((o) => window.axe.run(o), options);
  if (result.passes.length < least) wrong.push(`${name}: axe has checked ${result.passes.length} rules, want ${least} or more`);
  for (const v of result.violations) {
    wrong.push(`${name}: ${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")}`);
  }
}

// checkChoice: the language of the samples is chosen with the keyboard alone.
async function checkChoice(path) {
  const page = await open(path, { viewport: { width: 1280, height: 800 } });
  await page.goto(input.base + path);
  const shown = () => page.evaluate(() => [...new Set([...document.querySelectorAll(".sample")].filter((e) => e.offsetParent).map((e) => e.className))].join());
  if ((await shown()) !== "sample curl") wrong.push(`${path} first shows ${await shown()}`);
  await page.focus("#in-curl");
  await page.keyboard.press("ArrowRight");
  if ((await shown()) !== "sample typescript") wrong.push(`${path} shows ${await shown()} after the arrow key`);
  await page.context().close();
}

// search finds an operation with the keyboard alone.
async function search(page, { words, id, heading }) {
  await page.getByRole("button", { name: "Show the contents" }).waitFor(); // the library has begun
  const field = page.getByLabel("Search");
  await field.focus();
  await page.keyboard.press("Shift+Tab"); // a focus by the keyboard
  await page.keyboard.press("Tab");
  const look = await field.evaluate((e) => {
    const { borderTopWidth, borderTopStyle, outlineStyle, outlineWidth } = getComputedStyle(e);
    return `${borderTopWidth} ${borderTopStyle} ${outlineStyle} ${outlineWidth}`;
  });
  if (look !== "1px solid solid 2px") wrong.push(`the field of the search has the border and the outline ${look}, want both`);
  await field.fill(words);
  await page.getByRole("link", { name: heading }).first().waitFor();
  await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { name: heading }).waitFor();
  await page.waitForFunction((h) => document.activeElement?.textContent.trim() === h, heading);
  if (!page.url().endsWith(`#/operations/${id}`)) wrong.push(`the search of ${words} leads to ${page.url()}, want ${id}`);
}

// onDisk returns what pages of the service keep beyond the tab, as another tab sees it.
async function onDisk(context) {
  const other = await context.newPage();
  await other.goto(input.base + "/docs/limits");
  const disk = await other.evaluate(() => JSON.stringify({ ...localStorage }));
  await other.close();
  return disk;
}

// A heading that folds is a button of the library with a button in it: the one thing that console.js cannot mend.
const libraryRules = { rules: { "nested-interactive": { enabled: false } } };

// checkOperations shows each operation, and sends the first one, which has a body.
async function checkOperations({ key, path, operations }) {
  const page = await open("the console with a body", { viewport: { width: 1280, height: 900 } });
  await page.goto(input.base + path);
  await page.evaluate(axe);
  for (const [i, { id, heading, hasBody }] of operations.entries()) {
    await page.evaluate((hash) => (location.hash = hash), `#/operations/${id}`);
    await page.getByRole("heading", { name: heading, exact: true }).waitFor();
    await checkRules(page, `the console: ${id}`, libraryRules, 10);
    if (!hasBody) continue;
    const editor = page.getByRole("textbox", { name: "Request body" });
    await editor.waitFor();
    const padding = await editor.evaluate((e) => parseFloat(getComputedStyle(e).paddingLeft));
    if (padding < 20) wrong.push(`${id}: the padding of the editor is ${padding} px, want room for the numbers of lines`);
    if (i > 0) continue;
    await page.getByRole("textbox", { name: "Authorization" }).fill(key);
    const [answer] = await Promise.all([
      page.waitForResponse((r) => r.request().method() === "POST"),
      page.getByRole("button", { name: /send/i }).click(),
    ]);
    if (answer.status() !== 201) wrong.push(`${id} of the console is answered with ${answer.status()}: ${await answer.text()}`);
  }
  await page.context().close();
}

// checkTabs: the key is kept nowhere after one of two tabs asks so, although the other one goes on.
async function checkTabs({ key, path, operation: { id, heading } }) {
  const first = await open("the first tab", {});
  const context = first.context();
  await first.goto(`${input.base}${path}#/operations/${id}`);
  await Promise.all([first.waitForEvent("load"), first.check("#keep")]);
  const second = await context.newPage();
  await second.goto(`${input.base}${path}#/operations/${id}`);
  await second.getByRole("textbox", { name: "Authorization" }).fill(key);
  if (!(await onDisk(context)).includes(key)) wrong.push("the second tab does not keep the key that it is asked to keep");
  await Promise.all([first.waitForEvent("load"), second.waitForEvent("load"), first.uncheck("#keep")]);
  await second.getByRole("heading", { name: heading }).waitFor();
  await second.getByRole("textbox", { name: "Authorization" }).fill(key);
  if ((await onDisk(context)).includes(key)) wrong.push("a second tab keeps the key after the first was asked not to");
  await first.goto(`${input.base}/docs/limits`);
  await first.evaluate((k) => localStorage.setItem("TryIt_late", k), key); // what a tab has written in between
  await second.reload();
  await second.getByRole("heading", { name: heading }).waitFor();
  if ((await onDisk(context)).includes(key)) wrong.push("the console leaves on the disk what is not to be kept");
  await context.close();
}

// checkTrouble: the console works without storage, and says when its document cannot be loaded.
async function checkTrouble({ path, operation: { id, heading } }) {
  const blocked = await open("the console without storage", {});
  await blocked.addInitScript(() => {
    for (const name of ["localStorage", "sessionStorage"]) {
      Object.defineProperty(window, name, { configurable: true, get() { throw new DOMException("blocked", "SecurityError"); } });
    }
  });
  await blocked.goto(`${input.base}${path}#/operations/${id}`);
  await blocked.getByRole("heading", { name: heading }).waitFor();
  await blocked.context().close();
  const alone = await open("the console without its document", {});
  await alone.route("**/openapi.json", (r) => r.abort());
  await alone.goto(input.base + path);
  await alone.getByText("could not be loaded").waitFor();
  await alone.context().close();
}

// checkConsole makes a call in the console with the key, and looks where the key is kept.
async function checkConsole({ key, path, operation, want }) {
  const page = await open("the console", { viewport: { width: 360, height: 800 } });
  await page.goto(input.base + path);
  await search(page, operation);
  await page.getByRole("textbox", { name: "Authorization" }).fill(key);
  const [answer] = await Promise.all([
    page.waitForResponse((r) => r.url().includes("/public/v1/")),
    page.getByRole("button", { name: /send/i }).click(),
  ]);
  if (answer.status() !== 200) wrong.push(`the call of the console is answered with ${answer.status()}: ${await answer.text()}`);
  await page.getByText(want).first().waitFor();
  await page.getByRole("status").filter({ hasText: "The response is 200" }).waitFor();
  await page.waitForFunction(() => /^send/i.test(document.activeElement?.textContent.trim())).catch(() =>
    wrong.push("the button that sends has not the focus after the answer"),
  );
  const field = await page.getByRole("textbox", { name: "Authorization" }).evaluate((e) => `${e.type} ${e.autocomplete} ${e.spellcheck}`);
  if (field !== "password off false") wrong.push(`the field of the key is ${field}, want password off false`);
  await page.evaluate(axe);
  await checkRules(page, "the console", libraryRules, 10);
  const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
  if (scroll > 360) wrong.push(`the console is ${scroll} px wide, want 360`);
  const tab = await page.evaluate(() => JSON.stringify({ ...sessionStorage }));
  if (!tab.includes(key)) wrong.push("the console does not keep the key in the tab");
  if ((await onDisk(page.context())).includes(key)) wrong.push("the console keeps the key beyond the tab");
  await Promise.all([page.waitForEvent("load"), page.check("#keep")]);
  if (!(await onDisk(page.context())).includes(key)) wrong.push("the console does not keep the key that it is asked to keep");
  await Promise.all([page.waitForEvent("load"), page.uncheck("#keep")]);
  if ((await onDisk(page.context())).includes(key)) wrong.push("the console keeps the key after it is asked not to");
  await page.evaluate(() => (document.getElementById("keep").checked = true)); // as a browser that restores forms
  await page.evaluate(() => dispatchEvent(new PageTransitionEvent("pageshow", { persisted: true })));
  if (await page.isChecked("#keep")) wrong.push("the box says that the key is kept, and it is not");
  await page.context().close();
}

for (const path of input.pages) await checkPage(path, 360);
await checkChoice("/docs/quick-start");
if (input.console) {
  for (const check of [checkConsole, checkOperations, checkTabs, checkTrouble]) await check(input.console);
}
await browser.close();
process.stdout.write(JSON.stringify(wrong));
