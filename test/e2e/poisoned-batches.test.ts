import { Agent } from 'node:http';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, statusOver, type TestService } from '../harness/index.js';

let service: TestService;

beforeAll(async () => {
  service = await startTestService({ env: { TRUST_PROXY: '1' } });
});
afterAll(() => service.stop());

const agent = new Agent({ keepAlive: true });
afterAll(() => agent.destroy());

/** The status of `GET /v1/me` as a proxy sends it on. */
function callThroughProxy(key: string, forwardedFor: string): Promise<number> {
  const url = `${service.process.api!.url}/v1/me`;
  const headers = { authorization: `Bearer ${key}`, 'x-forwarded-for': forwardedFor };
  return statusOver(agent, url, headers);
}

const tally = (statuses: readonly number[]): Record<number, number> =>
  Object.fromEntries(
    [...new Set(statuses)].map((status) => [status, statuses.filter((one) => one === status).length]),
  );

describe('one call in the batch of a turn (D43)', () => {
  it('fails nobody else, although its address has a zone: 61 strangers beside 50 calls of 5 partners', async () => {
    const partners = await Promise.all(Array.from({ length: 5 }, () => service.createPartner()));
    const unknownKey = `svc_${'sk'}_test_${'x'.repeat(32)}`;
    const strangers = Array.from({ length: 61 }, (_, nth) =>
      callThroughProxy(unknownKey, `fe80::${nth}%eth0`),
    );
    const others = Array.from({ length: 10 }, () =>
      partners.map(({ sandboxKey }) => callThroughProxy(sandboxKey, '203.0.113.7')),
    ).flat();
    expect(tally(await Promise.all(others))).toEqual({ 200: 50 });
    expect(tally(await Promise.all(strangers))).toEqual({ 401: 61 });
  });

  it('keeps the address of a known key without its zone, and counts it for the allow-list', async () => {
    const { id } = await service.createPartner();
    const answer = await service.admin.post(`/internal/v1/partners/${id}/api-keys`, {
      mode: 'sandbox',
      allowed_cidrs: ['fe80::/10'],
    });
    const key = answer.body.data.key as string;
    expect(await callThroughProxy(key, 'fe80::1%eth0')).toBe(200);
    expect(await callThroughProxy(key, '2001:db8::1')).toBe(403);
    const row = await eventually('the row of the call', async () => {
      const { rows } = await service.database.pool.query<{ remote_address: string }>(
        'SELECT remote_address FROM api_calls WHERE partner_id = $1 AND status = 200',
        [id],
      );
      return rows[0];
    });
    expect(row.remote_address).toBe('fe80::1');
  });
});
