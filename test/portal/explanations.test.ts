import { createHmac } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
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
import { type ServerIdentity, TestAuthority } from '../webhooks/sending/certificates.js';
import { https } from '../webhooks/sending/receivers.js';
import { afterThisTest } from '../webhooks/sending/sender.js';
import { openPortal, type PortalBrowser } from '../harness/portal.js';

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;
let browser: PortalBrowser;

beforeAll(async () => {
  service = await startTestService({
    env: { LEASE_MS: '60000', WEBHOOK_TIMEOUT_MS: '5000', WEBHOOK_RETRY_DELAYS_MS: '60000' },
  });
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

/** The explanation of a test event that has failed with the fault. */
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

async function secureReceiver(identity: ServerIdentity): Promise<string> {
  const port = await https(
    identity,
    (request, response) => void request.resume().on('end', () => response.end()),
  );
  return `https://localhost:${port}/hook`;
}

const status =
  (code: number) =>
  (_nth: number, _hook: unknown, response: ServerResponse): void =>
    void response.writeHead(code, { location: 'https://elsewhere.example/' }).end();

describe('a delivery whose attempt waits for a response', () => {
  it('is explained as waiting, and not as never attempted', async () => {
    let answer = (): void => undefined;
    receiver.answer = (_nth, _webhook, response) => {
      answer = () => void response.writeHead(200).end();
    };
    const before = receiver.received.length;
    const endpoint = await makeEndpoint(receiver.url);
    const { id } = (await browser.post(`webhook-endpoints/${endpoint.id}/test`)).body.data as { id: string };
    await eventually('it is under way', () => receiver.received.length > before);
    const { data } = (await browser.get(`deliveries/${id}/explanation`)).body;
    expect(data).toMatchObject({
      cause: 'not_tried',
      summary: expect.stringMatching(
        /^The first attempt (has started|is waiting for the response of your server)\.$/,
      ),
      evidence: [expect.stringMatching(/^Attempt 1 started at \d{4}-.+ and is still in progress\.$/)],
      next: 'Attempt 1 of at most 1 ends when your server responds, or after 5 s.',
    });
    answer();
  });
});

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
    const cure = String(explanation['cure']).replace(/\d{4}-\S+Z/, '{time}');
    expect({ ...explanation, cure }).toMatchObject({ cause, ...IN_WORDS[cause], next_at: null });
    expect(explanation['next']).toContain('only once');
    expect(explanation['evidence']).toEqual([expect.stringMatching(/^Attempt 1 at .+ after \d+ ms\.$/)]);
  });

  it('is explained: refused', async () => {
    const explanation = await explained(await makeEndpoint('http://127.0.0.1:9/hook'));
    expect(explanation).toMatchObject({ cause: 'refused', owner: 'you' });
  });

  it('is explained: dns', async () => {
    const { cause } = await explained(await makeEndpoint('http://no-such-host.invalid/hook'));
    // Without a network, no name server responds.
    expect(['dns', 'dns_unanswered']).toContain(cause);
  });

  it.each([
    ['tls_expired', { days: -1 }],
    ['tls_wrong_host', { names: ['another.example'] }],
  ] as const)('is explained: %s', async (cause, leaf) => {
    const authority = new TestAuthority();
    afterThisTest(() => authority.remove());
    const before = getCACertificates('default');
    setDefaultCACertificates([...before, authority.certificate]);
    try {
      const explanation = await explained(await makeEndpoint(await secureReceiver(authority.issue(leaf))));
      expect(explanation).toMatchObject({ cause, ...IN_WORDS[cause] });
    } finally {
      setDefaultCACertificates(before);
    }
  });

  it('is explained: tls_untrusted', async () => {
    const authority = new TestAuthority();
    afterThisTest(() => authority.remove());
    const explanation = await explained(await makeEndpoint(await secureReceiver(authority.selfSigned())));
    expect(explanation).toMatchObject({ cause: 'tls_untrusted', owner: 'you' });
  });

  it.each([
    ['tls: CERT_HAS_EXPIRED', 'tls_expired'],
    ['tls: ERR_TLS_CERT_ALTNAME_INVALID', 'tls_wrong_host'],
    ['tls: DEPTH_ZERO_SELF_SIGNED_CERT', 'tls_untrusted'],
    ['tls: EPROTO', 'tls_handshake'],
    ['tls: ERR_SSL_WRONG_VERSION_NUMBER', 'tls_handshake'],
    ['tls: TLS_FLOOD', 'tls_handshake'],
    ['tls: TLS_TOO_COSTLY', 'tls_handshake'],
    ['protocol: INFORMATIONAL_FLOOD', 'too_much_before_status'],
    ['dns: RESOLVER_UNAVAILABLE', 'our_side'],
    ['dns: ENOTFOUND', 'dns'],
    ['dns: ESERVFAIL', 'dns_unanswered'],
    ['dns: ETIMEOUT', 'dns_unanswered'],
    ['connect: EHOSTUNREACH', 'unreachable'],
    ['connect: EMFILE', 'our_side'],
    ['target_refused', 'target_refused'],
    ['protocol: HPE_INVALID_CONSTANT', 'protocol'],
  ] as const)('maps the error %s to the cause %s', (error, cause) => {
    expect(causeOf({ outcome: 'failed', statusCode: null, error })).toBe(cause);
  });

  it('has a text and an owner for every cause', () => {
    expect(Object.keys(IN_WORDS).sort()).toEqual([...CAUSES].sort());
    expect(IN_WORDS.interrupted.owner).toBe('us');
  });
});

describe('the explanation of a pending delivery or a disabled endpoint', () => {
  it('shows when it continues', async () => {
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
      next: 'Attempt 2 of at most 2 starts automatically.',
    });
    expect(Date.parse(waiting.next_at)).toBeGreaterThan(Date.now());
    await browser.post(`webhook-endpoints/${endpoint.id}/disable`);
    const held = (await browser.get(`deliveries/${delivery!.id}/explanation`)).body.data;
    expect(held).toMatchObject({
      next: 'We send the event when the endpoint is switched on.',
      next_at: null,
    });
    const off = (await browser.get(`webhook-endpoints/${endpoint.id}/explanation`)).body.data;
    expect(off).toMatchObject({ cause: 'switched_off', owner: 'you' });
    expect(off.evidence.join()).toContain('Pending deliveries: 1.');
  });
});

describe('the signature doctor', () => {
  const body =
    '{"id":"evt_1","type":"order.issued","created_at":"2026-11-22T10:00:00.000Z","data":{"name":"Zoë"}}';
  const euro =
    '{"id":"evt_1","type":"order.issued","created_at":"2026-11-22T10:00:00.000Z","data":{"name":"5 €, “quoted”"}}';
  const now = (): number => Math.floor(Date.now() / 1_000);
  const clockOffBy = (seconds: number): string => new Date(Date.now() + seconds * 1_000).toISOString();
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

  const digest = (secret: string | Buffer, text: string): string =>
    createHmac('sha256', secret).update(text).digest('hex');
  const bareSecret = (): string => own.secret.replace('whsec_', '');

  /** A correct computation of the signature, and those of receivers that make a mistake. */
  const computations: readonly (readonly [string, (t: string) => string])[] = [
    ['valid', (t) => digest(own.secret, `${t}.${body}`)],
    ['signature_changed', (t) => `v1=${digest(own.secret, `${t}.${body}`).toUpperCase()}`],
    ['signature_changed', (t) => Buffer.from(digest(own.secret, `${t}.${body}`), 'hex').toString('base64')],
    ['wrong_secret', (t) => digest('of another environment', `${t}.${body}`)],
    ['old_secret', (t) => digest(old, `${t}.${body}`)],
    ['other_endpoint', (t) => digest(sibling.secret, `${t}.${body}`)],
    ['other_mode', (t) => digest(live.secret, `${t}.${body}`)],
    ['timestamp_missing', () => digest(own.secret, body)],
    ['whitespace_changed', (t) => digest(own.secret, `${t}.${body}\n`)],
    ['reserialized_json', (t) => digest(own.secret, `${t}.${JSON.stringify(JSON.parse(body), null, 2)}`)],
    [
      'reserialized_json',
      (t) => digest(own.secret, `${t}.${body.replaceAll('":', '": ').replaceAll(',"', ', "')}`),
    ],
    ['reserialized_json', (t) => digest(own.secret, `${t}.${body.replace('ë', String.raw`\u00eb`)}`)],
    ['wrong_charset', (t) => digest(own.secret, `${t}.${Buffer.from(body).toString('latin1')}`)],
    ['secret_without_prefix', (t) => digest(bareSecret(), `${t}.${body}`)],
    ['secret_decoded', (t) => digest(Buffer.from(bareSecret(), 'base64'), `${t}.${body}`)],
  ];

  const cases: readonly (readonly [
    string,
    () => readonly [header: string | null, received: string, more?: object],
  ])[] = [
    ['valid', () => [signWebhook({ timestampSeconds: now(), body, secrets: [own.secret, old] }), body]],
    ['header_missing', () => [null, body]],
    ['header_malformed', () => ['sha256=abc', body]],
    [
      'signature_changed',
      () => [sign(own.secret).toUpperCase().replace('T=', 't=').replace('V1=', 'v1='), body],
    ],
    ['stale', () => [sign(own.secret, body, now() - 400), body]],
    ['clock_off', () => [sign(own.secret, body, now() + 400), body]],
    ['clock_off', () => [sign(own.secret), body, { received_at: clockOffBy(-1_000) }]],
    ['clock_off', () => [sign(own.secret), body, { received_at: clockOffBy(400) }]],
    ['valid', () => [sign(own.secret, body, now() - 4_000), body, { received_at: clockOffBy(-3_990) }]],
    ['old_secret', () => [sign(old), body]],
    ['other_endpoint', () => [sign(sibling.secret), body]],
    ['other_mode', () => [sign(live.secret), body]],
    ['whitespace_changed', () => [sign(own.secret), `${body}\n`]],
    ['reserialized_json', () => [sign(own.secret), JSON.stringify(JSON.parse(body), null, 2)]],
    ['wrong_charset', () => [sign(own.secret), Buffer.from(body).toString('latin1')]],
    ['secret_without_prefix', () => [sign(own.secret.replace('whsec_', '')), body]],
    ['secret_decoded', () => [sign(Buffer.from(own.secret.replace('whsec_', ''), 'base64')), body]],
    [
      'wrong_charset',
      () => [sign(own.secret, euro), new TextDecoder('windows-1252').decode(Buffer.from(euro))],
    ],
    ['unknown', () => [sign('of nobody'), body]],
    ...computations.map(
      ([diagnosis, compute]) =>
        [
          diagnosis,
          () => {
            const t = now();
            return [sign(own.secret, body, t), body, { computed: compute(String(t)) }] as const;
          },
        ] as const,
    ),
  ];

  it.each(cases)('reports %s, and shows no secret', async (diagnosis, make) => {
    const [header, received, more = {}] = make();
    const headers: Record<string, string> = header === null ? {} : { 'X-Service-Signature': header };
    const answer = await browser.post('signature-doctor', {
      ...{ endpoint_id: own.id, headers, body: received },
      ...more,
    });
    expect(answer.body.data?.diagnosis, answer.text).toBe(diagnosis);
    expect(answer.body.data.seconds_off === null).toBe(!['clock_off', 'stale'].includes(diagnosis));
    for (const { secret } of [own, sibling, live]) expect(answer.text).not.toContain(secret.slice(6, 20));
    expect(answer.text).not.toMatch(/[0-9a-f]{64}/);
  });

  it('reports by how many seconds a clock is off, and in which direction', async () => {
    const header = sign(own.secret);
    const secondsOff = async (more: object): Promise<number> => {
      const request = { endpoint_id: own.id, headers: { 'X-Service-Signature': header }, body, ...more };
      return (await browser.post('signature-doctor', request)).body.data.seconds_off as number;
    };
    const t = Number(/^t=(\d+)/.exec(header)![1]);
    const at = (off: number): object => ({ received_at: new Date((t + off) * 1_000).toISOString() });
    expect(await secondsOff(at(400))).toBe(400);
    expect(await secondsOff(at(-7_200))).toBe(-7_200);
  });

  it("accepts no endpoint of another partner, and tries no other partner's secret", async () => {
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
