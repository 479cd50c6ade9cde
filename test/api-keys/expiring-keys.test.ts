import { afterAll, beforeAll, expect, it } from 'vitest';
import { eventually, startTestService, type TestService } from '../harness/index.js';

const DAY_MS = 86_400_000;

let service: TestService;
beforeAll(async () => {
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '50' } });
});
afterAll(async () => {
  await service.stop();
});

async function sweeps(): Promise<number> {
  const { values } = await service.process.resources.metrics.getSingleMetric('sweep_runs_total')!.get();
  const own = values.find(
    ({ labels }) => labels['sweep'] === 'api_keys.expiring' && labels['outcome'] === 'ok',
  );
  return own?.value ?? 0;
}

it('warns once about a key that expires within a week, and about no other', async () => {
  const partner = await service.createPartner('Careful');
  const make = async (days: number | null): Promise<string> => {
    const expires_at = days === null ? null : new Date(Date.now() + days * DAY_MS).toISOString();
    const path = `/internal/v1/partners/${partner.id}/api-keys`;
    return (await service.admin.post(path, { mode: 'live', expires_at })).body.data.id as string;
  };
  const soon = await make(3);
  await make(30);
  await make(null);
  const revoked = await make(2);
  await service.admin.post(`/internal/v1/partners/${partner.id}/api-keys/${revoked}/revoke`);
  const alerts = async (): Promise<{ subject_id: string }[]> =>
    (await service.admin.get(`/internal/v1/alerts?type=key.expiring&partner_id=${partner.id}`)).body.data;
  await eventually('the alert is there', async () =>
    (await alerts()).some(({ subject_id }) => subject_id === soon),
  );
  const before = await sweeps();
  await eventually('two more sweeps pass', async () => (await sweeps()) >= before + 2);
  expect(
    (await alerts()).filter(({ subject_id }) => subject_id !== revoked).map(({ subject_id }) => subject_id),
  ).toEqual([soon]);
});

it('warns about the other keys when one alert cannot be stored (D43)', async () => {
  const partner = await service.createPartner('Unlucky');
  const { pool } = service.database;
  const made = await Promise.all(
    [1, 2, 3].map(async () => {
      const expires_at = new Date(Date.now() + 30 * DAY_MS).toISOString();
      const path = `/internal/v1/partners/${partner.id}/api-keys`;
      return (await service.admin.post(path, { mode: 'live', expires_at })).body.data.id as string;
    }),
  );
  const [first, ...others] = made.toSorted();
  await pool.query(`ALTER TABLE alerts ADD CONSTRAINT poisoned CHECK (subject_id <> '${first}') NOT VALID`);
  await pool.query(`UPDATE api_keys SET expires_at = now() + interval '1 day' WHERE id = ANY ($1)`, [made]);
  const warned = async (): Promise<string[]> => {
    const path = `/internal/v1/alerts?type=key.expiring&partner_id=${partner.id}`;
    const { data } = (await service.admin.get(path)).body as { data: { subject_id: string }[] };
    return data.map(({ subject_id }) => subject_id).sort();
  };
  await eventually('the others are there', async () => (await warned()).join() === others.join());
  await pool.query('ALTER TABLE alerts DROP CONSTRAINT poisoned');
  await eventually('that one is, too', async () => (await warned()).includes(first!));
});
