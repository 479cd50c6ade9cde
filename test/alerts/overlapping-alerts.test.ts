import { afterAll, beforeAll, expect, it } from 'vitest';
import { Alerts } from '../../src/alerts/index.js';
import { newId } from '../../src/common/ids.js';
import { Transactions } from '../../src/infra/database/index.js';
import { startTestService, type TestService } from '../harness/index.js';

let service: TestService;

beforeAll(async () => {
  service = await startTestService();
});
afterAll(() => service.stop());

it('lists alerts of overlapping transactions in the order in which they were raised', async () => {
  const app = service.process.admin!.nest;
  const [alerts, transactions] = [
    app.get(Alerts, { strict: false }),
    app.get(Transactions, { strict: false }),
  ];
  const subjectId = newId('whe');
  const raise = (place: number) => ({
    type: 'balance.low' as const,
    partnerId: null,
    subjectId,
    details: { place },
  });
  await transactions.run(async (outer) => {
    // The outer transaction starts first and raises its first alert later.
    await outer.manager.query('SELECT now()');
    await transactions.run((inner) => alerts.raise(inner, raise(1)));
    await alerts.raise(outer, raise(2));
    await alerts.raise(outer, raise(3));
    await transactions.run((inner) => alerts.raise(inner, raise(4)));
  });
  const places: unknown[] = [];
  const times: string[] = [];
  let cursor = '';
  do {
    const { body } = await service.admin.get(
      `/internal/v1/alerts?subject_id=${subjectId}&limit=2${cursor && `&cursor=${cursor}`}`,
    );
    for (const alert of body.data as { details: { place: number }; created_at: string }[]) {
      places.push(alert.details.place);
      times.push(alert.created_at);
    }
    cursor = (body.next_cursor as string | null) ?? '';
  } while (cursor);
  expect(places).toEqual([1, 2, 3, 4]);
  expect(times).toEqual(times.toSorted());
});
