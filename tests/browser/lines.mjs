// Reads {chromium, documents} from the standard input, opens each document in Chromium, and writes the lines that it
// draws, without blank lines and list markers.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const input = JSON.parse(readFileSync(0, "utf8"));
const browser = await chromium.launch({
  executablePath: input.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"],
});
const context = await browser.newContext({ viewport: { width: 30000, height: 800 }, javaScriptEnabled: true });
const page = await context.newPage();
await page.route("**/*", (route) => route.abort());

// All text has the same size, so that the words of a line begin at the same height.
const css = `* { font: 16px/24px monospace !important; vertical-align: baseline !important; text-indent: 0 !important;
  font-style: normal !important; letter-spacing: 0 !important; text-transform: none !important; float: none !important }
  td, th { padding: 0 12px !important } body { margin: 8px }`;

// draw puts a document into the page with innerHTML, which parses as editors do, and returns its lines.
function draw({ html, css }) {
  document.head.innerHTML = "";
  document.body.innerHTML = html;
  const style = document.createElement("style");
  style.textContent = css;
  document.head.append(style);
  for (const a of document.querySelectorAll("a[href]")) {
    const href = a.getAttribute("href");
    if (/^(https?:|mailto:)/.test(href) && !a.textContent.includes(href.replace(/^mailto:/, ""))) {
      a.append(a.textContent.trim() === "" ? href : ` (${href})`);
    }
  }
  for (const marker of document.querySelectorAll('[style*="mso-list:Ignore"]')) marker.remove(); // Word's own markers
  for (const img of document.querySelectorAll("img[alt]")) {
    if (/^\p{Extended_Pictographic}+$/u.test(img.alt)) img.replaceWith(img.alt);
    else img.remove();
  }
  const words = [];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let n; (n = walker.nextNode()); ) {
    for (const m of n.data.matchAll(/[^\s\u00a0]+/g)) {
      const range = document.createRange();
      range.setStart(n, m.index);
      range.setEnd(n, m.index + m[0].length);
      const box = range.getBoundingClientRect();
      if (box.height > 0 && getComputedStyle(n.parentElement).visibility === "visible") {
        words.push({ text: m[0], top: box.top, left: box.left, right: box.right });
      }
    }
  }
  const lines = [];
  let last = null;
  for (const w of words) {
    if (!last || Math.abs(w.top - last.top) > 4) lines.push(w.text);
    else lines[lines.length - 1] += (w.left - last.right > 3 ? " " : "") + w.text;
    last = w;
  }
  return lines;
}

const out = [];
for (const html of input.documents) out.push(await page.evaluate(draw, { html, css }));
await browser.close();
process.stdout.write(JSON.stringify(out));
