import { createHmac } from 'node:crypto';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { verifyWebhookSignature } from '../../src/webhooks/index.js';
import { recordEvent, registerEndpoint, type RegisteredEndpoint } from './support.js';

const BOTH = ['document', 'standard'];

let service: TestService;
let partner: TestPartner;
let receiver: TestReceiver;
let endpoint: RegisteredEndpoint;

beforeAll(async () => {
  service = await startTestService({
    env: { LEASE_MS: '60000', WEBHOOK_RETRY_DELAYS_MS: '1100,1100,1100,1100,1100' },
  });
});
beforeEach(async () => {
  partner = await service.createPartner();
  receiver = await startReceiver();
});
afterEach(() => receiver.close());
afterAll(() => service.stop());

async function register(schemes?: readonly string[]): Promise<void> {
  const fields = { url: receiver.url, ...(schemes ? { signature_schemes: schemes } : {}) };
  endpoint = await registerEndpoint(service, partner.id, fields);
}

const arrived = (count: number): Promise<readonly ReceivedWebhook[]> =>
  eventually(`${count} webhooks`, () => (receiver.received.length >= count ? receiver.received : null));

/**
 * Verifies by the public specification of Standard Webhooks, without the service's code: any matching signature is
 * valid.
 */
function verifies({ headers, body }: ReceivedWebhook, secret: string): boolean {
  const key = Buffer.from(secret.replace('whsec_', ''), 'base64');
  const signed = `${String(headers['webhook-id'])}.${String(headers['webhook-timestamp'])}.${body}`;
  const expected = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
  return String(headers['webhook-signature']).split(' ').includes(expected);
}

describe('an endpoint with the "standard" scheme (D49)', () => {
  it('receives the Standard Webhooks headers alongside our own, and libraries verify them with the same secret', async () => {
    await register(BOTH);
    // Libraries require 24 to 64 bytes.
    expect(Buffer.from(endpoint.secret.replace('whsec_', ''), 'base64')).toHaveLength(30);
    await recordEvent(service, { partnerId: partner.id });
    const [webhook] = await arrived(1);
    const { headers, body } = webhook!;
    expect(headers['webhook-id']).toBe((JSON.parse(body) as { id: string }).id);
    expect(String(headers['x-service-signature'])).toContain(`t=${String(headers['webhook-timestamp'])},`);
    expect(verifies(webhook!, endpoint.secret)).toBe(true);
    expect(verifies({ ...webhook!, body: `${body} ` }, endpoint.secret)).toBe(false);
    expect(
      verifyWebhookSignature({
        header: String(headers['x-service-signature']),
        body,
        secret: endpoint.secret,
      }),
    ).toBe(true);
  });

  it('receives the same id and a fresh timestamp with each attempt, and both signatures during a rotation', async () => {
    await register(BOTH);
    let fail = (): void => undefined;
    receiver.answer = (nth, _webhook, response) => {
      if (nth === 0) fail = () => void response.writeHead(500).end();
      else response.writeHead(200).end();
    };
    await recordEvent(service, { partnerId: partner.id });
    await arrived(1);
    const rotated = await service.admin.post(`${endpoint.path}/rotate-secret`, {});
    fail();
    const { secret } = rotated.body.data as { secret: string };
    const [first, second] = await arrived(2);
    expect(second!.headers['webhook-id']).toBe(first!.headers['webhook-id']);
    expect(Number(second!.headers['webhook-timestamp'])).toBeGreaterThan(
      Number(first!.headers['webhook-timestamp']),
    );
    expect(verifies(second!, secret) && verifies(second!, endpoint.secret)).toBe(true);
    expect(verifies(first!, secret)).toBe(false);
  });

  it('uses the scheme from the next attempt after it is enabled, until it is disabled', async () => {
    await register();
    const read = async (): Promise<unknown> =>
      (await service.admin.get(endpoint.path)).body.data.signature_schemes;
    expect(await read()).toEqual(['document']);
    await recordEvent(service, { partnerId: partner.id });
    const [before] = await arrived(1);
    expect(Object.keys(before!.headers).filter((name) => name.startsWith('webhook-'))).toEqual([]);
    const { path } = endpoint;
    const patched = await service.admin.call('PATCH', path, {
      body: { signature_schemes: ['standard', 'document'] },
    });
    expect(patched.body.data.signature_schemes).toEqual(BOTH);
    await service.admin.post(`${endpoint.path}/test`);
    const tested = (await arrived(2))[1]!;
    expect(verifies(tested, endpoint.secret)).toBe(true);
    await service.admin.call('PATCH', path, { body: { signature_schemes: ['document'] } });
    expect(await read()).toEqual(['document']);
    await recordEvent(service, { partnerId: partner.id });
    expect((await arrived(3))[2]!.headers['webhook-id']).toBeUndefined();
  });

  it.each([[[]], [['standard']], [['document', 'document']], [['document', 'other']], ['document'], [null]])(
    'refuses the schemes %j',
    async (signature_schemes) => {
      const collection = `/internal/v1/partners/${partner.id}/webhook-endpoints`;
      const body = { mode: 'sandbox', url: receiver.url, signature_schemes };
      expect((await service.admin.post(collection, body)).status).toBe(400);
    },
  );
});
