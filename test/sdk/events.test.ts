import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { EsimClient, isApiError, SQL_STORE_TABLES, SqlCursorStore } from '../../sdk/src/index.js';
import { FileCursorStore } from '../../sdk/src/node/file-stores.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { size } from '../harness/size.js';
import { recordEvents } from '../webhooks/support.js';

/** A full proof takes 10,000. */
const DELIVERIES = size('SDK_DELIVERIES', 1_000, 10_000);

let service: TestService;
let partner: TestPartner;
let esim: EsimClient;
let folder: string;
beforeAll(async () => {
  service = await startTestService();
  folder = await mkdtemp(path.join(tmpdir(), 'cursor-'));
  await service.database.pool.query(SQL_STORE_TABLES);
});
beforeEach(async () => {
  partner = await service.createPartner();
  esim = new EsimClient({ apiKey: partner.sandboxKey, baseUrl: service.process.api!.url });
});
afterAll(async () => {
  await service.stop();
  await rm(folder, { recursive: true });
});

describe('events.reconcile', () => {
  it(`finds exactly those of ${DELIVERIES} events that no webhook delivered, and resumes where it ended`, async () => {
    await recordEvents(
      service,
      Array.from({ length: DELIVERIES }, () => ({ partnerId: partner.id })),
    );
    const { rows } = await service.database.pool.query<{ id: string }>(
      'SELECT id FROM events WHERE partner_id = $1',
      [partner.id],
    );
    const dropped = new Set(rows.map(({ id }) => id).filter(() => Math.random() < 0.03));
    const known = new Set(rows.map(({ id }) => id).filter((id) => !dropped.has(id)));
    const handle = ({ id }: { id: string }): boolean => known.size < known.add(id).size;
    const cursorStore = new FileCursorStore(path.join(folder, 'cursor'));
    const first = await esim.events.reconcile({ cursorStore, handle });
    expect([...first.missed].sort()).toEqual([...dropped].sort());
    expect(first.read).toBe(DELIVERIES);
    expect(await esim.events.reconcile({ cursorStore, handle })).toEqual({ read: 0, missed: [] });
    await recordEvents(service, [{ partnerId: partner.id }]);
    expect((await esim.events.reconcile({ cursorStore, handle })).missed).toHaveLength(1);
  });

  it('fails at once when its cursor cannot be stored', async () => {
    const store = new FileCursorStore('/proc/nowhere/cursor');
    await expect(store.save('1')).rejects.toMatchObject({ code: 'ENOENT' });
  });

  it('reads a page again whose handler died, and stores its cursor in SQL', async () => {
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    const cursorStore = new SqlCursorStore(async (text, parameters) => {
      return (await service.database.pool.query<Record<string, unknown>>(text, [...parameters])).rows;
    }, partner.id);
    const seen: string[] = [];
    const dying = esim.events.reconcile({
      cursorStore,
      handle: ({ id }) => {
        if (seen.push(id) === 2) throw new Error('died');
        return true;
      },
    });
    await expect(dying).rejects.toThrow('died');
    expect(await cursorStore.load()).toBeNull();
    expect((await esim.events.reconcile({ cursorStore, handle: () => true })).missed).toEqual(seen);
    expect(await cursorStore.load()).toEqual(expect.any(String));
  });
});

describe('events.stream', () => {
  it('yields every event once, in feed order, as it arrives, and ends quietly on abort', async () => {
    await recordEvents(service, [{ partnerId: partner.id, iccid: '8910000000000000000' }]);
    const stop = new AbortController();
    const seen: string[] = [];
    for await (const { data } of esim.events.stream({ signal: stop.signal })) {
      seen.push((data as { iccid: string }).iccid);
      if (seen.length === 4) stop.abort(new Error('enough'));
      else
        await recordEvents(service, [{ partnerId: partner.id, iccid: `891000000000000000${seen.length}` }]);
    }
    expect(seen).toEqual([0, 1, 2, 3].map((n) => `891000000000000000${n}`));
  });

  it('ends quietly while it waits for events, and yields nothing of a page after the abort', async () => {
    for await (const _event of esim.events.stream({ signal: AbortSignal.timeout(1_000) }))
      expect.unreachable('nothing happened');
    for await (const _event of esim.events.stream({ signal: AbortSignal.abort() }))
      expect.unreachable('the signal came first');
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    const stop = new AbortController();
    const saved: string[] = [];
    const save = (cursor: string): Promise<void> => Promise.resolve(void saved.push(cursor));
    const cursorStore = { load: () => Promise.resolve(null), save };
    let seen = 0;
    for await (const _event of esim.events.stream({ signal: stop.signal, cursorStore })) {
      seen++;
      stop.abort();
    }
    // The page was not completed, so it is read again.
    expect({ seen, saved }).toEqual({ seen: 1, saved: [] });
  });

  it("throws errors other than its signal's, even after an abort", async () => {
    const stop = new AbortController();
    const save = (): Promise<void> => {
      stop.abort();
      return Promise.reject(new Error('the disk is full'));
    };
    await recordEvents(service, [{ partnerId: partner.id }]);
    const stream = esim.events.stream({
      signal: stop.signal,
      cursorStore: { load: () => Promise.resolve(null), save },
    });
    expect(await stream.next()).toMatchObject({ done: false });
    await expect(stream.next()).rejects.toThrow('the disk is full');
    const refused = esim.events.stream({ after: 'nowhere', signal: new AbortController().signal }).next();
    await expect(refused).rejects.toMatchObject({ code: 'invalid_cursor' });
  });

  it('starts after the last event that the caller has', async () => {
    await recordEvents(service, [{ partnerId: partner.id }, { partnerId: partner.id }]);
    const [first, second] = (await esim.events.list()).data;
    for await (const event of esim.events.stream({ after: first!.id })) {
      expect(event.id).toBe(second!.id);
      break;
    }
  });
});

describe('a reader of the feed after a long absence', () => {
  it('resumes at its stored cursor after its events are gone, although an event id would be refused', async () => {
    const cursorStore = new SqlCursorStore(async (text, parameters) => {
      return (await service.database.pool.query<Record<string, unknown>>(text, [...parameters])).rows;
    }, partner.id);
    const record = (iccid: string): Promise<unknown> =>
      recordEvents(service, [{ partnerId: partner.id, iccid }]);
    const iccidOf = ({ data }: { data: object }): string => (data as { iccid: string }).iccid;
    await record('8910000000000000001');
    let last = '';
    for await (const event of esim.events.stream({ cursorStore })) {
      last = event.id;
      // This event is on a separate page. Requesting that page confirms the first one as handled.
      if (iccidOf(event) === '8910000000000000002') break;
      await record('8910000000000000002');
    }
    const stored = await cursorStore.load();
    // The second page was not completed, so the stream reads it again.
    for await (const event of esim.events.stream({ cursorStore })) {
      expect(event.id).toBe(last);
      break;
    }
    await service.database.pool.query('DELETE FROM events WHERE partner_id = $1', [partner.id]);
    await record('8910000000000000003');
    const refused = await esim.events
      .stream({ after: last })
      .next()
      .catch((thrown: unknown) => thrown);
    expect(isApiError(refused, 'invalid_cursor')).toBe(true);
    for await (const event of esim.events.stream({ cursorStore })) {
      expect(iccidOf(event)).toBe('8910000000000000003');
      break;
    }
    // The guide warns of this: the second event, which was never handled, is silently missed.
    expect((await esim.events.list({ after: stored! })).data.map(iccidOf)).toEqual(['8910000000000000003']);
  });
});
