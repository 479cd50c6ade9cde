<?php

// Written by `npm run generate` from docs/webhooks.md.

declare(strict_types=1);

/** Pass $secret as shown, with its prefix, and $rawBody as received, before any parsing. */
function verifyWebhookSignature(?string $header, string $rawBody, string $secret, ?int $nowSeconds = null): bool
{
    $timestamps = [];
    $signatures = [];
    foreach (explode(',', $header ?? '') as $part) {
        $part = trim($part);
        if (str_starts_with($part, 't=')) {
            $timestamps[] = substr($part, 2);
        } elseif (str_starts_with($part, 'v1=')) {
            $signatures[] = substr($part, 3);
        }
    }
    if ($secret === '' || count($timestamps) !== 1 || preg_match('/\A[0-9]{1,15}\z/', $timestamps[0]) !== 1) {
        return false;
    }
    if (abs(($nowSeconds ?? time()) - (int) $timestamps[0]) > 300) {
        return false;
    }

    $expected = hash_hmac('sha256', $timestamps[0] . '.' . $rawBody, $secret);
    foreach ($signatures as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}
