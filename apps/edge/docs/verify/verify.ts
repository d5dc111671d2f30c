// An ES module: save it as verify.mts, or set "type": "module" in package.json.
import { createHmac, timingSafeEqual } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";

// verify throws unless one of a delivery's signatures was made with the secret and the delivery is at most five minutes
// old. headers are the headers of a Node.js request, with names in lower case; for a fetch Request, pass
// Object.fromEntries(request.headers). body is the body as it arrived.
export function verify(secret: string, headers: IncomingHttpHeaders, body: Buffer, now: Date = new Date()): void {
  const text = secret.replace(/^whsec_/, "");
  const key = Buffer.from(text, "base64");
  if (key.length < 24 || key.toString("base64") !== text) {
    throw new Error("the secret is not whsec_ and the base64 encoding of 24 bytes or more");
  }
  const [id, timestamp, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map((name) => {
    const value = headers[name];
    if (typeof value !== "string" || value === "") throw new Error(`the header ${name} is missing`);
    return value;
  }) as [string, string, string];
  if (!/^[0-9]{1,12}$/.test(timestamp)) throw new Error("the timestamp is not a number of seconds");
  const age = Math.abs(now.getTime() / 1000 - Number(timestamp));
  if (!(age <= 300)) throw new Error("the delivery is too old, or the clock is wrong");
  const want = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  for (const one of signatures.split(" ")) {
    const [version, encoded = ""] = one.split(",");
    const got = Buffer.from(encoded, "base64");
    if (version === "v1" && got.length === want.length && timingSafeEqual(got, want)) return;
  }
  throw new Error("no signature was made with the secret");
}
