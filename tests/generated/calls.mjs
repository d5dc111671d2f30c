// Makes the calls in <name>-calls.ts and writes the responses to <name>-answers.json.
import { readFileSync, writeFileSync } from "node:fs";

const name = process.argv[2];
const { clients } = JSON.parse(readFileSync("input.json", "utf8"));
const { calls } = await import(`./${name}-calls.ts`);
const schemas = name === "orval" ? await import("./zod.ts") : undefined;
const pascal = (id) => id.replace(/(?:^|-)(.)/g, (_, letter) => letter.toUpperCase());

const answers = [];
for (const [i, expected] of clients[name].calls.entries()) {
  const problems = [];
  const wrong = (text) => problems.push(`${expected.id}: ${text}`);
  let answer = { status: 0, data: null };
  try {
    answer = await calls[i]();
  } catch (e) {
    wrong(e.stack);
  }
  if (answer.status !== expected.status) wrong(`the answer is ${answer.status} ${JSON.stringify(answer.data)}, want ${expected.status}`);
  if (schemas && expected.status < 300) {
    const schema = schemas[`${pascal(expected.id)}Response`];
    const read = schema?.safeParse(answer.data);
    if (!read?.success) wrong(`zod: ${schema ? read.error.message : "no schema"} in ${JSON.stringify(answer.data)}`);
  }
  answers.push({ data: answer.data, problems });
}
writeFileSync(`${name}-answers.json`, JSON.stringify(answers));
