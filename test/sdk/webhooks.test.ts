import { createHmac } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { unwrapWebhook, type WebhookHeaders, WebhookVerificationError } from '../../sdk/src/index.js';
import { newSigningSecret, signWebhook } from '../../src/webhooks/signature.js';
import { sharedVectors } from '../docs/signature-vectors.js';

const NOW = 1_795_080_600;
const secret = newSigningSecret();
const body =
  '{"id":"evt_1","type":"esim.activated","created_at":"2026-11-19T09:30:00.412Z","data":{"name":"Zoë"}}';
const own = (timestampSeconds = NOW, signed = body): Record<string, string> => ({
  'X-Service-Signature': signWebhook({ timestampSeconds, body: signed, secrets: [secret] }),
});
/** As the public specification has it, written apart from the service and the SDK. */
const standard = (timestamp = NOW, id = 'evt_1'): Record<string, string> => {
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64');
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': `v1,AAAA v1,${signature}`,
  };
};

async function reasonOf(
  raw: unknown,
  headers: WebhookHeaders,
  secrets: string | string[] = secret,
): Promise<string> {
  try {
    const event = await unwrapWebhook(raw as string, headers, secrets, { nowSeconds: NOW });
    return `ok ${event.type}`;
  } catch (error) {
    return (error as WebhookVerificationError).reason;
  }
}

describe('unwrapWebhook', () => {
  it.each([
    ['text', body, own(), 'ok esim.activated'],
    ['bytes', Buffer.from(body), new Headers(own()), 'ok esim.activated'],
    ['the headers of Standard Webhooks', body, standard(), 'ok esim.activated'],
    ['300 s old', body, own(NOW - 300), 'ok esim.activated'],
    ['301 s old', body, own(NOW - 301), 'timestamp_too_old'],
    ['301 s ahead', body, standard(NOW + 301), 'timestamp_in_future'],
    ['another body', body.replace('Zoë', 'Zoe'), own(), 'no_match'],
    ['another id', body, { ...standard(), 'webhook-id': 'evt_2' }, 'no_match'],
    ['no header', body, {}, 'no_signature'],
    ['half a header', body, { 'x-service-signature': 'v1=00' }, 'malformed_signature'],
    ['a parsed body', JSON.parse(body), own(), 'body_was_parsed'],
    ['no event', '[]', own(NOW, '[]'), 'invalid_body'],
  ])('says of %s: %s', async (_name, raw, headers, expected) => {
    expect(await reasonOf(raw, headers as WebhookHeaders)).toBe(expected);
  });

  it('takes either of two secrets during a rotation', async () => {
    expect(await reasonOf(body, own(), [newSigningSecret(), secret])).toBe('ok esim.activated');
    expect(await reasonOf(body, standard(), [secret, newSigningSecret()])).toBe('ok esim.activated');
    expect(await reasonOf(body, own(), [secret, ''])).toBe('ok esim.activated');
    expect(await reasonOf(body, own(), newSigningSecret())).toBe('no_match');
  });

  it.each([
    ['none', ''],
    ['an empty list', []],
    ['two that are empty', ['', '']],
    ['a variable that is not set', undefined],
  ])('says of %s that the secret is empty, instead of blaming the signature', async (_name, secrets) => {
    const unwrapped = unwrapWebhook(body, own(), secrets as string | string[], { nowSeconds: NOW });
    await expect(unwrapped).rejects.toThrow(
      new TypeError('the signing secret is empty: is WEBHOOK_SECRET set?'),
    );
    // Whatever came: also what has no signature at all.
    await expect(unwrapWebhook('', {}, secrets as string)).rejects.toThrow(TypeError);
  });

  it('judges the vectors of the documentation as the service does', async () => {
    for (const { name, header, body: base64, secret: used, now, expected } of sharedVectors()) {
      const headers = header === null ? {} : { 'x-service-signature': header };
      const options = now === null ? {} : { nowSeconds: now };
      const verdict = await unwrapWebhook(Buffer.from(base64, 'base64'), headers, used, options).then(
        () => true,
        // Some vectors are no events: their signature is good all the same.
        (error: unknown) => (error as WebhookVerificationError).reason === 'invalid_body',
      );
      expect(verdict, name).toBe(expected);
    }
  });
});
