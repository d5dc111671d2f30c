// Reads a run from the standard input, carries it out with one client, and writes {protocol, problems}. A run has the members
//   client: sdk, client or mcp-remote
//   base, second: the addresses of two processes on one database
//   executablePath, email, password, javaScript: the browser and the person in front of it
//   session: the person's session, to revoke the grant
//   tools: the names of the tools, sorted
//   calls: [{tool, arguments, fails}], in this order
//   ttl: the lifetime of an access token in seconds
import { readFileSync } from "node:fs";
import { answer } from "./person.mjs";
import { listen } from "./callback.mjs";

const run = JSON.parse(readFileSync(0, "utf8"));
const problems = [];
const { connect } = await import(`./${run.client}.mjs`);
const callback = await listen();
const sleep = (seconds) => new Promise((resolve) => setTimeout(resolve, seconds * 1000));

const bare = await fetch(`${run.base}/mcp`, { method: "POST", body: "{}", headers: { "Content-Type": "application/json" } });
if (bare.status !== 401) problems.push(`a request without a token is answered with ${bare.status}, want 401`);
const challenge = bare.headers.get("www-authenticate") ?? "";
if (!/^Bearer /i.test(challenge) || !/resource_metadata="[^"]+"/.test(challenge) || !/scope="[^"]+"/.test(challenge)) {
  problems.push(`the challenge is ${challenge || "missing"}, want Bearer with resource_metadata and scope`);
}

let came = 0;
const approve = async (url) => {
  came++;
  return answer({ ...run, url: String(url), redirect: callback.url }, problems);
};
const client = await connect({ ...run, callback, approve });
if (came !== 1) problems.push(`the person was asked ${came} times, want once`);

const { tools } = await client.listTools();
const names = tools.map((t) => t.name).sort();
if (names.join() !== run.tools.join()) problems.push(`tools/list has ${names}, want ${run.tools}`);
for (const call of run.calls) await make(call);

const before = await client.tokens();
await sleep(run.ttl + 1);
const late = await client.callTool({ name: "service_list_channels", arguments: {} });
if (late.isError) problems.push(`after the token's end: ${JSON.stringify(late)}`);
const after = await client.tokens();
if (before.access_token === after.access_token) problems.push("the access token is the same after its end");
if (came !== 1) problems.push("the person was asked again to refresh a token");

await revoke();
await client.close().catch(() => {});
callback.close();
process.stdout.write(JSON.stringify({ protocol: client.protocol(), problems }));
process.exit(0);

async function make({ tool, arguments: args, fails }) {
  let result;
  try {
    result = await client.callTool({ name: tool, arguments: args });
  } catch (e) {
    problems.push(`${tool} ${JSON.stringify(args)} throws ${e}`);
    return;
  }
  const text = result.content?.[0]?.text ?? "";
  if (Boolean(result.isError) !== fails) {
    problems.push(`${tool} ${JSON.stringify(args)}: got ${JSON.stringify(result).slice(0, 600)}, want ${fails ? "an error" : "a success"}`);
    return;
  }
  let output;
  try {
    output = JSON.parse(text).output;
  } catch {
    problems.push(`${tool}: the text is no JSON with output: ${text.slice(0, 300)}`);
    return;
  }
  if (!fails && result.structuredContent === undefined) problems.push(`${tool} has no structuredContent`);
  if (fails && result.structuredContent !== undefined) problems.push(`${tool}: an error has structuredContent`);
  if (fails && (typeof output?.errors !== "string" || !output.errors)) problems.push(`${tool}: an error without output.errors: ${text.slice(0, 300)}`);
}

// revoke ends the grant in the person's session. Another process must refuse the token within a second, and the
// refresh token must no longer yield a token.
async function revoke() {
  const session = { auth: run.session, "Content-Type": "application/json" };
  const { access_token: token, refresh_token: refresh } = await client.refreshed();
  const probe = () =>
    fetch(`${run.second}/public/v1/is-connected`, { headers: { Authorization: token } }).then((r) => r.status);
  const alive = await probe();
  if (alive !== 200) problems.push(`before the revocation the second process answers ${alive}, want 200`);
  const listed = await (await fetch(`${run.base}/user/approved-apps`, { headers: session })).json();
  const apps = Array.isArray(listed) ? listed : (Object.values(listed).find(Array.isArray) ?? []);
  const mine = apps.filter((a) => JSON.stringify(a).includes(run.name));
  if (mine.length !== 1) {
    problems.push(`/user/approved-apps has ${mine.length} entries named ${run.name}, want 1: ${JSON.stringify(listed).slice(0, 500)}`);
    return;
  }
  const gone = await fetch(`${run.base}/user/approved-apps/${mine[0].id}`, { method: "DELETE", headers: session });
  const began = performance.now();
  if (!gone.ok) problems.push(`DELETE /user/approved-apps/${mine[0].id}: ${gone.status} ${await gone.text()}`);
  while ((await probe()) !== 401) {
    if (performance.now() - began > 1000) {
      problems.push("the second process takes the token for more than a second after the revocation");
      break;
    }
    await sleep(0.01);
  }
  const again = await client.refresh(refresh);
  if (again.status !== 400 || again.error !== "invalid_grant") problems.push(`a refresh after the revocation: got ${JSON.stringify(again)}, want 400 invalid_grant`);
}
