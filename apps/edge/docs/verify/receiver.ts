import { createServer, type IncomingMessage } from "node:http";
import { verify } from "./verify.ts";

const done = new Set<string>(); // better a table of your database: it outlives the program

// receive returns the status of the answer.
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
    console.log(body.toString()); // your work, or store the body for it: answer within 15 seconds
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
