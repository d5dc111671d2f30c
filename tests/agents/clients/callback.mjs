// The loopback address at which a client waits for its code.
import { createServer } from "node:http";

/** Returns {url, next, close}. next resolves with the query of the next visit. */
export async function listen() {
  const visits = [];
  const waiting = [];
  const server = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url, "http://127.0.0.1");
    response.setHeader("Connection", "close");
    response.end("You can close this page.");
    if (pathname !== "/callback") return;
    const resolve = waiting.shift();
    if (resolve) resolve(searchParams);
    else visits.push(searchParams);
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}/callback`,
    next: () => (visits.length ? Promise.resolve(visits.shift()) : new Promise((resolve) => waiting.push(resolve))),
    close: () => server.close(),
  };
}
