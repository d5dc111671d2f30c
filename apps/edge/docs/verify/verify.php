<?php

/**
 * verify throws unless one of a delivery's signatures was made with the secret and the delivery is at most five minutes
 * old. $body is the body as it arrived, as returned by file_get_contents('php://input'). Header names are in lower
 * case.
 */
function verify(string $secret, array $headers, string $body, ?int $now = null): void
{
    $text = preg_replace('/^whsec_/', '', $secret);
    $key = base64_decode($text, true);
    if ($key === false || strlen($key) < 24 || base64_encode($key) !== $text) {
        throw new RuntimeException('the secret is not whsec_ and the base64 encoding of 24 bytes or more');
    }
    $id = $headers['webhook-id'] ?? '';
    $timestamp = $headers['webhook-timestamp'] ?? '';
    $signatures = $headers['webhook-signature'] ?? '';
    if ($id === '' || $timestamp === '' || $signatures === '') {
        throw new RuntimeException('the signature headers are missing');
    }
    if (!preg_match('/^[0-9]{1,12}\z/', $timestamp)) {
        throw new RuntimeException('the timestamp is not a number of seconds');
    }
    if (abs(($now ?? time()) - (int) $timestamp) > 300) {
        throw new RuntimeException('the delivery is too old, or the clock is wrong');
    }
    $want = base64_encode(hash_hmac('sha256', "$id.$timestamp.$body", $key, true));
    foreach (explode(' ', $signatures) as $one) {
        [$version, $got] = explode(',', $one, 2) + ['', ''];
        if ($version === 'v1' && hash_equals($want, $got)) {
            return;
        }
    }
    throw new RuntimeException('no signature was made with the secret');
}
