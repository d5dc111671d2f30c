// The client of @modelcontextprotocol/sdk, which speaks 2025-11-25.
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { through } from "./typescript.mjs";

export const connect = (run) =>
  through(run, {
    UnauthorizedError, version: "2025-11-25",
    client: () => new Client({ name: run.name, version: "1.0.0" }),
    transport: (url, options) => new StreamableHTTPClientTransport(url, options),
    finish: (transport, query) => transport.finishAuth(query.get("code")),
  });
