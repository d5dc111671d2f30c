// The client of @modelcontextprotocol/client, which speaks 2026-07-28.
import { Client, StreamableHTTPClientTransport, UnauthorizedError } from "@modelcontextprotocol/client";
import { through } from "./typescript.mjs";

export const connect = (run) =>
  through(run, {
    UnauthorizedError, version: "2026-07-28",
    client: () => new Client({ name: run.name, version: "1.0.0" }, { versionNegotiation: { mode: { pin: "2026-07-28" } } }),
    transport: (url, options) => new StreamableHTTPClientTransport(url, options),
    finish: (transport, query) => transport.finishAuth(query),
  });
