// What the two TypeScript clients have in common.
import { Provider, refresh } from "./provider.mjs";

export async function through(run, library) {
  const provider = new Provider(run.name, run.callback.url);
  const url = new URL(`${run.base}/mcp`);
  const open = () => library.transport(url, { authProvider: provider });
  let transport = open();
  try {
    await library.client().connect(transport);
    throw new Error("the client connected without a token");
  } catch (e) {
    if (!(e instanceof library.UnauthorizedError)) throw e;
  }
  await run.approve(provider.authorizationUrl);
  const query = await run.callback.next();
  if (query.get("state") !== provider.kept.state) throw new Error(`the state came back as ${query.get("state")}`);
  await library.finish(transport, query);
  transport = open();
  const client = library.client();
  await client.connect(transport);
  return {
    listTools: () => client.listTools(),
    callTool: (call) => client.callTool(call),
    tokens: () => ({ ...provider.kept.tokens }),
    refreshed: async () => {
      const { status, ...tokens } = await refresh(run.base, provider.kept.client.client_id, provider.kept.tokens.refresh_token);
      if (status !== 200) throw new Error(`a refresh is answered with ${status} ${JSON.stringify(tokens)}`);
      return tokens;
    },
    refresh: (token) => refresh(run.base, provider.kept.client.client_id, token),
    protocol: () => client.getNegotiatedProtocolVersion?.() ?? transport.protocolVersion ?? library.version,
    close: () => client.close(),
  };
}
