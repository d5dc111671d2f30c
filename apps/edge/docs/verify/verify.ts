import { createHmac, timingSafeEqual } from "node:crypto";

// verify throws unless one of the signatures of a delivery is by the secret and the delivery is at most five minutes
// old. body is the body as it arrived.
export function verify(
  secret: string,
  headers: Record<string, string | undefined>,
  body: Buffer,
  now: Date = new Date(),
): void {
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  const id = headers["webhook-id"] ?? "";
  const timestamp = headers["webhook-timestamp"] ?? "";
  const age = Math.abs(now.getTime() / 1000 - Number(timestamp));
  if (!/^\d+$/.test(timestamp) || age > 300) throw new Error("the delivery is too old");
  const want = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  for (const one of (headers["webhook-signature"] ?? "").split(" ")) {
    const [version, encoded = ""] = one.split(",");
    const got = Buffer.from(encoded, "base64");
    if (version === "v1" && got.length === want.length && timingSafeEqual(got, want)) return;
  }
  throw new Error("no signature is by the secret");
}
