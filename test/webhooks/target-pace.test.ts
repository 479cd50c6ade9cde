import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  eventually,
  startReceiver,
  startTestService,
  type TestPartner,
  type TestReceiver,
  type TestService,
} from '../harness/index.js';
import { recordEvents, registerEndpoint } from './support.js';

/** Limits per partner and mode: the burst, and the rate per second, plus one per second for each host. */
const BURST = 60;
const PER_SECOND = 21;
const EVENTS = 160;
/** A backlog of forty seconds. */
const MANY = 900;

let service: TestService;
let receiver: TestReceiver;
let partner: TestPartner;

beforeAll(async () => {
  service = await startTestService({ env: { LEASE_MS: '60000' } });
});
beforeEach(async () => {
  receiver = await startReceiver();
  partner = await service.createPartner();
});
afterEach(() => receiver.close());
afterAll(() => service.stop());

const record = (count: number, partnerId = partner.id): Promise<unknown> =>
  recordEvents(
    service,
    Array.from({ length: count }, () => ({ partnerId })),
  );

describe('a host that has not returned a 2xx yet', () => {
  it('receives at most 20 attempts a second from all endpoints of a partner until its first 2xx', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(404).end();
    await registerEndpoint(service, partner.id, { url: receiver.url });
    await registerEndpoint(service, partner.id, { url: `${receiver.url}/second` });
    const { received } = receiver;
    // Every attempt leaves after this moment, and the first may arrive late.
    const startedAtMs = performance.now();
    await record(EVENTS / 2);
    await eventually('more than the burst have come', () => received.length > BURST + 40);
    const elapsedMs = received.at(-1)!.receivedAtMs - startedAtMs;
    const most = BURST + 1 + (PER_SECOND * elapsedMs) / 1_000;
    expect(received.length).toBeLessThanOrEqual(Math.ceil(most) + 1);
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(200).end();
    await eventually('all have come', () => received.length === EVENTS);
  });

  it('delays neither another host of the partner nor another partner', async () => {
    receiver.answer = (_nth, _webhook, response) => void response.writeHead(404).end();
    await registerEndpoint(service, partner.id, { url: receiver.url });
    await record(MANY);
    await eventually('it is paced', () => receiver.received.length > BURST);
    const healthy = await startReceiver();
    const other = await service.createPartner();
    await registerEndpoint(service, partner.id, { url: healthy.url.replace('127.0.0.1', 'localhost') });
    await registerEndpoint(service, other.id, { url: healthy.url });
    await Promise.all([record(1), record(1, other.id)]);
    await eventually('both are delivered', () => healthy.received.length === 2);
    // Otherwise they would arrive after the other host's whole backlog.
    expect(receiver.received.length).toBeLessThan(MANY);
    await healthy.close();
  });
});
