package docs

// WebhookGuide is a part of the OpenAPI document: what a receiver of webhooks must know.
const WebhookGuide = `## Webhooks

The service sends a POST to each webhook that has chosen the event: post.published (all of the post is out, its delayed parts included), post.failed, post.status_changed (every other change: it was scheduled or made a draft), approval.requested and approval.resolved. The body is a JSON array with one post: id, event, occurredAt, group, state, content, contentType, publishDate, releaseId, releaseURL, error, errorCode, integration and, where there is one, customer; of an approval also approval. It has at most 20,000 bytes: a longer content is cut, and contentTruncated is true then. If that does not suffice, approval is left out: read it with GET /posts/{id}/approval. The values of errorCode are those of GET /posts/{id}. A test that somebody asks for has the event webhook.test and a post that does not exist; a webhook cannot choose this event.

Answer with 2xx within 15 seconds. Everything else, also a redirect, is tried again: ten attempts in all, 5 seconds, 5 and 30 minutes, 2, 5, 10, 14, 20 and 24 hours apart, give or take 20 %. Retry-After of a 429 or 503 is honoured up to a day. 410 disables the webhook at once, and so do five days in which nothing succeeded. A delivery may arrive twice, with the same webhook-id, and deliveries may arrive in another order than they happened: compare occurredAt.

Every delivery is signed, in two forms. Check one of them, on the body as it arrived, before you decode it, and refuse timestamps that are more than five minutes old. The key is the secret without whsec_, decoded as base64.

- Standard Webhooks: webhook-id, webhook-timestamp (seconds since 1970) and webhook-signature, which is v1, a comma and the base64 of HMAC-SHA256(key, webhook-id + "." + webhook-timestamp + "." + body). For 24 hours after a rotation it has two signatures, separated by a space: one that matches suffices. The library standardwebhooks does all of this: new Webhook(secret).verify(body, headers).
- X-Service-Signature: sha256= and the hex of HMAC-SHA256(key, X-Service-Timestamp + "." + body), by the current secret. X-Service-Event has the event, X-Service-Delivery the id of the delivery, which is the same in every attempt, and X-Webhook-Attempt the number of the attempt, from 1.`
