<?php

/**
 * verify throws unless one of the signatures of a delivery is by the secret and the delivery is at most five minutes
 * old. $body is the body as it arrived, as file_get_contents('php://input') returns it; the names of headers are in
 * lower case.
 */
function verify(string $secret, array $headers, string $body, ?int $now = null): void
{
    $key = base64_decode(preg_replace('/^whsec_/', '', $secret), true);
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    if ($key === false || !preg_match('/^\d+\z/', $timestamp) || abs(($now ?? time()) - (int) $timestamp) > 300) {
        throw new RuntimeException('the delivery is too old');
    }
    $want = base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $one) {
        [$version, $got] = explode(',', $one, 2) + ['', ''];
        if ($version === 'v1' && hash_equals($want, $got)) {
            return;
        }
    }
    throw new RuntimeException('no signature is by the secret');
}
