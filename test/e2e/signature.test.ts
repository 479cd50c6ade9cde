import { spawnSync } from 'node:child_process';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  eventually,
  type ReceivedWebhook,
  startReceiver,
  startTestService,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { placeOrder } from '../harness/order-steps.js';

/** The receiver's side of spec section 6, by somebody who has read nothing but that section. */
const PYTHON_VERIFIER = `
import hashlib, hmac, sys, time
header, secret = sys.argv[1], sys.argv[2]
body = sys.stdin.buffer.read()
parts = [part.split('=', 1) for part in header.split(',')]
t = dict(parts)['t']
expected = hmac.new(secret.encode(), t.encode() + b'.' + body, hashlib.sha256).hexdigest()
fresh = abs(time.time() - int(t)) <= 300
valid = any(name == 'v1' and hmac.compare_digest(value, expected) for name, value in parts)
print('valid' if fresh and valid else 'refused')
`;

interface Signed {
  readonly header: string;
  readonly body: Buffer;
}

let service: TestService;
let receiver: TestReceiver;
let secret: string;
let webhook: ReceivedWebhook;
let signed: Signed;

beforeAll(async () => {
  service = await startTestService();
  receiver = await startReceiver();
  const partner = await service.createPartner();
  const endpoint = { mode: 'sandbox', url: receiver.url };
  const made = await service.admin.post(`/internal/v1/partners/${partner.id}/webhook-endpoints`, endpoint);
  secret = made.body.data.secret as string;
  await placeOrder(partner.sandbox, { package_id: 'pkg_fr_1gb_7d', reference: 'order "1" \\ <&>' });
  webhook = await eventually('the webhook', () => receiver.received[0]);
  signed = { header: String(webhook.headers['x-service-signature']), body: Buffer.from(webhook.body) };
});

afterAll(async () => {
  await service.stop();
  await receiver.close();
});

type Verifier = (signed: Signed, secret: string) => string;

const python: Verifier = ({ header, body }, key) => {
  const { stdout, stderr } = spawnSync('python3', ['-c', PYTHON_VERIFIER, header, key], { input: body });
  return stdout.toString().trim() || stderr.toString();
};

const openssl: Verifier = ({ header, body }, key) => {
  const [, t = '', v1 = ''] = /^t=(\d+),v1=([0-9a-f]{64})$/.exec(header) ?? [];
  const input = Buffer.concat([Buffer.from(`${t}.`), body]);
  const { stdout } = spawnSync('openssl', ['dgst', '-sha256', '-hmac', key, '-r'], { input });
  return stdout.toString().startsWith(`${v1} `) ? 'valid' : 'refused';
};

describe.each([
  ['python3', '--version', python],
  ['openssl', 'version', openssl],
] as const)('%s, which knows nothing of this code', (command, version, verify) => {
  const there = spawnSync(command, [version]).status === 0;
  if (!there) console.warn(`verification by ${command} is skipped: it is not installed`);

  it.skipIf(!there)('accepts what the service sent', () => {
    expect(verify(signed, secret)).toBe('valid');
  });

  it.skipIf(!there)('refuses it after one byte of body, signature, time or secret was changed', () => {
    const body = Buffer.from(signed.body);
    body[Math.floor(body.length / 2)]! ^= 1;
    expect(verify({ ...signed, body }, secret)).toBe('refused');
    expect(verify({ ...signed, header: changeLast(signed.header) }, secret)).toBe('refused');
    expect(verify({ ...signed, header: changeTime(signed.header, 1) }, secret)).toBe('refused');
    expect(verify(signed, changeLast(secret))).toBe('refused');
  });
});

describe('the delivery', () => {
  it('carries the documented headers and nothing else of ours', () => {
    const { headers } = webhook;
    expect(headers['x-service-signature']).toMatch(/^t=\d{10},v1=[0-9a-f]{64}$/);
    expect(headers['x-service-event']).toBe('order.issued');
    expect(headers['x-service-delivery']).toMatch(/^dlv_[0-9A-HJKMNP-TV-Z]{26}$/);
    expect(headers['content-type']).toBe('application/json');
    expect(Object.keys(headers).sort()).toEqual([
      ...['connection', 'content-length', 'content-type', 'host', 'user-agent'],
      ...['x-service-delivery', 'x-service-event', 'x-service-signature'],
    ]);
  });

  it('has the bytes of the event feed as its body, and the time of the attempt in its signature', async () => {
    const { rows } = await service.database.pool.query('SELECT body FROM events');
    expect(rows).toEqual([{ body: webhook.body }]);
    expect(Object.keys(JSON.parse(webhook.body))).toEqual(['id', 'type', 'created_at', 'data']);
    const t = Number(/^t=(\d+)/.exec(signed.header)![1]);
    expect(Math.abs(Date.now() / 1_000 - t)).toBeLessThan(60);
  });
});

function changeLast(text: string): string {
  return text.slice(0, -1) + (text.endsWith('0') ? '1' : '0');
}

function changeTime(header: string, seconds: number): string {
  return header.replace(/^t=(\d+)/, (_all, t: string) => `t=${Number(t) + seconds}`);
}
