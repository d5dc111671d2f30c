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
// A file for each delivery; better a row of your database.
$done = sys_get_temp_dir() . '/delivery-' . hash('sha256', $headers['webhook-id']);
if (!file_exists($done)) {
    file_put_contents('php://stdout', "$body\n"); // your work, or store the body for it: answer within 15 seconds
    touch($done);
}
http_response_code(200);
