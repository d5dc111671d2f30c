<?php

require 'verify.php';

$headers = array_change_key_case(getallheaders());
$body = file_get_contents('php://input', false, null, 0, 20_001);
try {
    verify(getenv('WEBHOOK_SECRET'), $headers, $body);
} catch (RuntimeException $refusal) {
    http_response_code(401);
    exit;
}
// One file per delivery; a row in your database is better.
$done = sys_get_temp_dir() . '/delivery-' . hash('sha256', $headers['webhook-id']);
if (!file_exists($done)) {
    file_put_contents('php://stdout', "$body\n"); // do your work here, or store the body: respond within 15 seconds
    touch($done);
}
http_response_code(200);
