import { createServer, type IncomingMessage } from "node:http";
import { verify } from "./verify.ts";

const done = new Set<string>(); // a table in your database is better: it outlives the program

// receive returns the status of the response.
async function receive(request: IncomingMessage): Promise<number> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > 20_000) return 413;
    chunks.push(chunk);
  }
  const body = Buffer.concat(chunks);
  try {
    verify(process.env.WEBHOOK_SECRET!, request.headers, body);
  } catch {
    return 401;
  }
  const id = request.headers["webhook-id"] as string;
  if (!done.has(id)) {
    console.log(body.toString()); // do your work here, or store the body: respond within 15 seconds
    done.add(id);
  }
  return 200;
}

createServer((request, response) => {
  receive(request).then(
    (status) => response.writeHead(status).end(),
    () => response.destroy(),
  );
}).listen(Number(process.env.PORT));
