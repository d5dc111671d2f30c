// The person in front of the browser: signs in and answers the consent page by its labels.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const limit = 30_000;

/**
 * Opens the authorize address in Chromium, signs in, approves or denies, and waits until the browser arrives at the
 * redirect address. problems receives a sentence for each fault of a page. Returns the address where the browser ended.
 */
export async function answer({ executablePath, url, email, password, javaScript, redirect, deny = false }, problems) {
  const browser = await chromium.launch({
    executablePath, args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
  });
  try {
    const context = await browser.newContext({ javaScriptEnabled: javaScript, viewport: { width: 360, height: 800 } });
    const page = await context.newPage();
    page.setDefaultTimeout(limit);
    page.on("pageerror", (e) => problems.push(`${page.url()} throws ${e}`));
    page.on("console", (m) => {
      if (m.type() === "error" && /Content Security Policy|Refused/i.test(m.text())) problems.push(`a page breaks its policy: ${m.text()}`);
    });
    const arrived = arrival(context, page, redirect);
    const first = await page.goto(url);
    if (first.status() >= 400) throw new Error(`the authorize address is answered with ${first.status()}: ${await first.text()}`);
    await check(page, "the sign-in page", javaScript, problems);
    await page.getByLabel(/e-?mail/i).first().fill(email);
    await page.getByLabel(/password/i).first().fill(password);
    await page.getByRole("button", { name: /^(sign|log) in$|^continue$/i }).first().click();
    const approve = page.getByRole("button", { name: /^(approve|allow|authori[sz]e|grant)/i }).first();
    await approve.waitFor().catch(async () => {
      throw new Error(`after signing in there is no button that approves: ${page.url()} ${await text(page)}`);
    });
    const refuse = page.getByRole("button", { name: /^(deny|cancel|refuse|decline|do not allow|don't allow)/i }).first();
    if (!(await refuse.isVisible())) problems.push("the consent page has no visible button that denies");
    await check(page, "the consent page", javaScript, problems);
    await sameEase(approve, refuse, problems);
    await (deny ? refuse : approve).click();
    return await Promise.race([
      arrived,
      new Promise((_, reject) => setTimeout(() => reject(new Error("the browser did not arrive at the client")), limit)),
    ]).catch(async (e) => {
      throw new Error(`${e.message}: it is at ${page.url()} ${await text(page)}`);
    });
  } finally {
    await browser.close();
  }
}

// arrival resolves with the first address under redirect that the browser asks for.
function arrival(context, page, redirect) {
  return new Promise((resolve) => {
    context.on("request", (r) => {
      if (r.isNavigationRequest() && r.url().startsWith(redirect)) r.response().finally(() => resolve(r.url()));
    });
  });
}

async function text(page) {
  return (await page.locator("body").innerText().catch(() => "")).slice(0, 500);
}

// check runs axe in both colour schemes, and looks for what is wider than a phone. Without JavaScript,
// it checks only the width.
async function check(page, name, javaScript, problems) {
  await page.locator("main, form").first().waitFor();
  const scroll = await page.evaluate(() => document.documentElement.scrollWidth);
  if (scroll > 360) problems.push(`${name} is ${scroll} px wide, want 360`);
  const scripts = await page.evaluate(() => document.scripts.length);
  if (scripts > 0) problems.push(`${name} has ${scripts} scripts, want none`);
  if (!javaScript) return;
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    const options = { resultTypes: ["violations"], selectors: false, preload: false, rules: { "target-size": { enabled: true } } };
    const result = await page.evaluate((o) => window.axe.run(o), options);
    if (result.passes.length < 8) problems.push(`${name} (${colorScheme}): axe has checked ${result.passes.length} rules, want 8 or more`);
    for (const v of result.violations) {
      problems.push(`${name} (${colorScheme}): ${v.id} (${v.impact}): ${v.nodes.slice(0, 3).map((n) => n.html.slice(0, 200)).join(" | ")}`);
    }
  }
}

// sameEase: denying takes as many clicks as approving, and its button is not smaller.
async function sameEase(approve, refuse, problems) {
  const [a, r] = [await approve.boundingBox(), await refuse.boundingBox().catch(() => null)];
  if (a && r && r.height < a.height * 0.9) problems.push(`the button that denies is ${r.height} px high, the other one ${a.height}`);
}
