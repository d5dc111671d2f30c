// mcp-remote, which puts a remote server behind standard input and output, and prints the address to authorize.
import { mkdtempSync, readFileSync, readdirSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { refresh } from "./provider.mjs";

const { resolve } = createRequire(import.meta.url);

export async function connect(run) {
  const { port } = new URL(run.callback.url);
  run.callback.close(); // mcp-remote listens there itself
  const kept = mkdtempSync(join(tmpdir(), "mcp-remote-"));
  const metadata = JSON.stringify({ client_name: run.name });
  const transport = new StdioClientTransport({
    command: process.execPath,
    args: [
      resolve("mcp-remote/dist/proxy.js"), `${run.base}/mcp`, port, "--host", "127.0.0.1", "--callback-path", "/callback",
      "--transport", "http-only", "--allow-http", "--auth-timeout", "120", "--static-oauth-client-metadata", metadata,
    ],
    // There is no browser on this path, so it only prints the address.
    env: { PATH: "/nonexistent", HOME: kept, MCP_REMOTE_CONFIG_DIR: kept },
    stderr: "pipe",
  });
  let log = "";
  let asked = false;
  const approved = new Promise((done, failed) => {
    transport.stderr?.on("data", (text) => {
      log += text;
      const found = /authorize this client by visiting:\s+(\S+)\s/.exec(log);
      if (!found || asked) return;
      asked = true;
      run.approve(found[1]).then(done, failed);
    });
  });
  const client = new Client({ name: run.name, version: "1.0.0" });
  const connected = client.connect(transport, { timeout: 120_000 });
  await Promise.race([approved.then(() => connected), connected]).catch((e) => {
    throw new Error(`${e}\n${log}`);
  });
  const find = (name, dir = kept) => {
    for (const entry of readdirSync(dir, { withFileTypes: true, recursive: true })) {
      if (entry.isFile() && entry.name.endsWith(name)) return JSON.parse(readFileSync(join(entry.parentPath ?? entry.path, entry.name), "utf8"));
    }
    throw new Error(`mcp-remote has stored no ${name}:\n${log}`);
  };
  const id = () => find("client_info.json").client_id;
  return {
    listTools: () => client.listTools(),
    callTool: (call) => client.callTool(call),
    tokens: () => find("tokens.json"),
    refreshed: async () => {
      const { status, ...tokens } = await refresh(run.base, id(), find("tokens.json").refresh_token);
      if (status !== 200) throw new Error(`a refresh is answered with ${status} ${JSON.stringify(tokens)}`);
      return tokens;
    },
    refresh: (token) => refresh(run.base, id(), token),
    protocol: () => "", // what it speaks is not shown
    close: () => client.close(),
  };
}
