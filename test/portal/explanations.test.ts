import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { causeOf, CAUSES, IN_WORDS } from '../../src/webhooks/failure-causes.js';
import { signWebhook } from '../../src/webhooks/index.js';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { openPortal, type PortalBrowser } from '../harness/portal.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let browser: PortalBrowser;

beforeAll(async () => {
  service = await startTestService({ env: { WEBHOOK_TIMEOUT_MS: '1500', WEBHOOK_RETRY_DELAYS_MS: '60000' } });
  receiver = await startReceiver();
  partner = await service.createPartner();
  browser = await openPortal(service.admin, service.process.portal!.url, partner.id);
});
afterAll(async () => {
  await service.stop();
  await receiver.close();
});

interface Made {
  readonly id: string;
  readonly secret: string;
}

async function makeEndpoint(url: string, mode = 'sandbox'): Promise<Made> {
  return (await browser.post('webhook-endpoints', { mode, url })).body.data as Made;
}

/** The explanation of a test that has met the fault. */
async function explained(endpoint: Made): Promise<Record<string, unknown>> {
  const sent = await browser.post(`webhook-endpoints/${endpoint.id}/test`);
  const { id } = sent.body.data as { id: string };
  await eventually(
    'the attempt has ended',
    async () => (await browser.get(`deliveries/${id}`)).body.data.status === 'failed',
  );
  const explanation = (await browser.get(`deliveries/${id}/explanation`)).body.data as Record<
    string,
    unknown
  >;
  expect((await service.admin.get(`/internal/v1/deliveries/${id}/explanation`)).body.data).toEqual(
    explanation,
  );
  return explanation;
}

const status =
  (code: number) =>
  (_nth: number, _hook: unknown, response: ServerResponse): void =>
    void response.writeHead(code, { location: 'https://elsewhere.example/' }).end();

describe('a delivery that failed', () => {
  it.each([
    ['redirect', status(302)],
    ['unauthorized', status(401)],
    ['not_found', status(404)],
    ['gone', status(410)],
    ['rate_limited', status(429)],
    ['client_error', status(422)],
    ['server_error', status(500)],
    [
      'reset',
      (_nth: number, _hook: unknown, response: ServerResponse): void => void response.socket?.destroy(),
    ],
    ['timeout', () => undefined],
  ] as const)('is explained: %s', async (cause, answer) => {
    receiver.answer = answer;
    const explanation = await explained(await makeEndpoint(receiver.url));
    expect(explanation).toMatchObject({ cause, ...IN_WORDS[cause], next_at: null });
    expect(explanation['next']).toContain('last attempt');
    expect(explanation['evidence']).toEqual([expect.stringMatching(/^Attempt 1, at .+ after \d+ ms\.$/)]);
  });

  it.each([
    ['refused', 'http://127.0.0.1:9/hook'],
    ['dns', 'http://no-such-host.invalid/hook'],
  ])('is explained: %s', async (cause, url) => {
    expect(await explained(await makeEndpoint(url))).toMatchObject({ cause, owner: 'you' });
  });

  it.each([
    ['tls: CERT_HAS_EXPIRED', 'tls_expired'],
    ['tls: ERR_TLS_CERT_ALTNAME_INVALID', 'tls_wrong_host'],
    ['tls: DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_untrusted'],
    ['connect: EHOSTUNREACH', 'unreachable'],
    ['target_refused', 'target_refused'],
    ['protocol: HPE_INVALID_CONSTANT', 'protocol'],
  ] as const)('of the error %s has the cause %s', (error, cause) => {
    expect(causeOf({ outcome: 'failed', statusCode: null, error })).toBe(cause);
  });

  it('has words for every cause, and says whose it is', () => {
    expect(Object.keys(IN_WORDS).sort()).toEqual([...CAUSES].sort());
    expect(IN_WORDS.interrupted.owner).toBe('us');
  });
});

describe('what waits and what is switched off', () => {
  it('say when it goes on', async () => {
    receiver.answer = status(503);
    const endpoint = await makeEndpoint(receiver.url);
    await partner.sandbox.post('/v1/orders', { package_id: 'pkg_fr_1gb_7d' });
    const list = async () =>
      (await browser.get(`webhook-endpoints/${endpoint.id}/deliveries`)).body.data as {
        id: string;
        attempt_count: number;
      }[];
    await eventually('an attempt', async () => (await list())[0]?.attempt_count === 1);
    const [delivery] = await list();
    const waiting = (await browser.get(`deliveries/${delivery!.id}/explanation`)).body.data;
    expect(waiting).toMatchObject({
      cause: 'server_error',
      next: 'Attempt 2 of at most 2 follows by itself.',
    });
    expect(Date.parse(waiting.next_at)).toBeGreaterThan(Date.now());
    await browser.post(`webhook-endpoints/${endpoint.id}/disable`);
    const held = (await browser.get(`deliveries/${delivery!.id}/explanation`)).body.data;
    expect(held).toMatchObject({ next: 'It is sent when the endpoint is switched on.', next_at: null });
    const off = (await browser.get(`webhook-endpoints/${endpoint.id}/explanation`)).body.data;
    expect(off).toMatchObject({ cause: 'switched_off', owner: 'you' });
    expect(off.evidence.join()).toContain('1 deliveries wait');
  });
});

describe('the signature doctor', () => {
  const body =
    '{"id":"evt_1","type":"order.issued","created_at":"2026-11-22T10:00:00.000Z","data":{"name":"Zoë"}}';
  const now = (): number => Math.floor(Date.now() / 1_000);
  const sign = (secret: string | Buffer, text: string | Buffer = body, t = now()): string =>
    `t=${t},v1=${createHmac('sha256', secret).update(`${t}.`).update(text).digest('hex')}`;

  let own: Made;
  let sibling: Made;
  let live: Made;
  let old: string;
  beforeAll(async () => {
    own = await makeEndpoint(receiver.url);
    sibling = await makeEndpoint(receiver.url);
    live = await makeEndpoint(receiver.url, 'live');
    old = own.secret;
    const rotated = await browser.post(`webhook-endpoints/${own.id}/rotate-secret`);
    own = { id: own.id, secret: rotated.body.data.secret as string };
  });

  const cases: readonly (readonly [string, () => readonly [header: string | null, received: string]])[] = [
    ['valid', () => [signWebhook({ timestampSeconds: now(), body, secrets: [own.secret, old] }), body]],
    ['header_missing', () => [null, body]],
    ['header_malformed', () => ['sha256=abc', body]],
    [
      'signature_changed',
      () => [sign(own.secret).toUpperCase().replace('T=', 't=').replace('V1=', 'v1='), body],
    ],
    ['clock_off', () => [sign(own.secret, body, now() - 400), body]],
    ['old_secret', () => [sign(old), body]],
    ['other_endpoint', () => [sign(sibling.secret), body]],
    ['other_mode', () => [sign(live.secret), body]],
    ['whitespace_changed', () => [sign(own.secret), `${body}\n`]],
    ['reserialized_json', () => [sign(own.secret), JSON.stringify(JSON.parse(body), null, 2)]],
    ['wrong_charset', () => [sign(own.secret), Buffer.from(body).toString('latin1')]],
    ['secret_without_prefix', () => [sign(own.secret.replace('whsec_', '')), body]],
    ['secret_decoded', () => [sign(Buffer.from(own.secret.replace('whsec_', ''), 'base64')), body]],
    ['unknown', () => [sign('of nobody'), body]],
  ];

  it.each(cases)('says %s, and shows no secret', async (diagnosis, make) => {
    const [header, received] = make();
    const headers: Record<string, string> = header === null ? {} : { 'X-Service-Signature': header };
    const answer = await browser.post('signature-doctor', { endpoint_id: own.id, headers, body: received });
    expect(answer.body.data?.diagnosis).toBe(diagnosis);
    expect(answer.body.data.seconds_off === null).toBe(diagnosis !== 'clock_off');
    for (const { secret } of [own, sibling, live]) expect(answer.text).not.toContain(secret.slice(6, 20));
    expect(answer.text).not.toMatch(/[0-9a-f]{64}/);
  });

  it("knows no endpoint of another partner, and tries no other partner's secret", async () => {
    const other = await service.createPartner('Other');
    const theirs = await openPortal(service.admin, service.process.portal!.url, other.id);
    const ask = (endpoint: string) =>
      theirs.post('signature-doctor', {
        endpoint_id: endpoint,
        headers: { 'x-service-signature': sign(own.secret) },
        body,
      });
    expect((await ask(own.id)).status).toBe(404);
    const made = await theirs.post('webhook-endpoints', { mode: 'sandbox', url: receiver.url });
    expect((await ask(made.body.data.id as string)).body.data.diagnosis).toBe('unknown');
  });
});
