import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { expectProblem, invalidFields } from '../harness/expect-problem.js';
import { issueEsim, issueEsims } from '../harness/order-steps.js';

const GB = 1_000_000_000;
const ONE_GB = 'pkg_fr_1gb_7d';

let service: TestService;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
  device = new EsimDevice(api);
});

afterAll(() => service.stop());

describe('consume', () => {
  it('crosses each level once, at exactly its boundary, and never on the way between', async () => {
    const id = await device.activeEsim();
    const steps: [number, number[]][] = [
      [499_999_999, []],
      [1, [50]],
      [1, [50]],
      [299_999_998, [50]],
      [1, [50, 80]],
      [199_999_999, [50, 80]],
      [1, [50, 80, 100]],
      [1, [50, 80, 100]],
    ];
    for (const [bytes, levels] of steps) {
      await device.played(id, 'consume', { bytes });
      expect((await device.usage(id))['thresholds_crossed']).toEqual(levels);
      expect(await device.levels(id)).toEqual(levels);
    }
  });

  it('announces a level with exactly the documented data', async () => {
    const id = await device.activeEsim();
    const esim = await device.played(id, 'consume', { bytes: 600_000_000 });
    const event = (await device.events(id)).at(-1)!;
    expect(event['type']).toBe('esim.usage.threshold');
    expect(event['data']).toEqual({
      ...(await device.identity(id)),
      threshold_percent: 50,
      used_bytes: 600_000_000,
      total_bytes: GB,
      as_of: esim['data'].as_of,
      version: esim['version'],
    });
  });

  it('announces several levels crossed at once one by one, ascending, in the feed', async () => {
    const ids = await issueEsims(api, ONE_GB, 12);
    for (const id of ids) await device.played(id, 'activate');
    await Promise.all(ids.map((id) => device.played(id, 'consume', { bytes: 5 * GB })));
    const levels = await Promise.all(ids.map((id) => device.levels(id)));
    expect(levels).toEqual(ids.map(() => [50, 80, 100]));
  });

  it('is capped at what was bought, which depletes the eSIM', async () => {
    const id = await device.activeEsim();
    const esim = await device.played(id, 'consume', { bytes: 10 ** 15 });
    expect(esim).toMatchObject({
      status: 'depleted',
      data: { total_bytes: GB, used_bytes: GB, remaining_bytes: 0, unlimited: false },
    });
    expect(await device.played(id, 'consume', { percent: 1 })).toMatchObject({ data: { used_bytes: GB } });
    expect(await device.usage(id)).toMatchObject({ percent_used: 100, used_bytes: GB, source: 'simulated' });
    expect(await device.levels(id)).toHaveLength(3);
  });

  it('takes percent of the total, rounded up to whole bytes', async () => {
    const id = await device.activeEsim();
    await service.database.pool.query('UPDATE esims SET total_bytes = 1001 WHERE id = $1', [id]);
    expect(await device.played(id, 'consume', { percent: 1 })).toMatchObject({ data: { used_bytes: 11 } });
    expect(await device.played(id, 'consume', { percent: 48 })).toMatchObject({
      data: { used_bytes: 11 + 481 },
    });
    expect((await device.usage(id))['thresholds_crossed']).toEqual([]);
    expect(await device.played(id, 'consume', { percent: 1 })).toMatchObject({ data: { used_bytes: 503 } });
    expect((await device.usage(id))['thresholds_crossed']).toEqual([50]);
  });

  it('loses nothing and announces nothing twice when twenty reports come at once', async () => {
    const id = await device.activeEsim();
    const answers = await Promise.all(
      Array.from({ length: 20 }, () => device.play(id, 'consume', { percent: 4 })),
    );
    expect(answers.map((answer) => answer.status)).toEqual(answers.map(() => 200));
    expect(await device.usage(id)).toMatchObject({ used_bytes: 800_000_000, thresholds_crossed: [50, 80] });
    expect(await device.levels(id)).toEqual([50, 80]);
  });

  it('needs an eSIM in use', async () => {
    const id = await issueEsim(api, ONE_GB);
    expectProblem(await device.play(id, 'consume', { bytes: 1 }), 409, 'esim_not_ready');
    await device.played(id, 'activate');
    await device.played(id, 'expire');
    expectProblem(await device.play(id, 'consume', { bytes: 1 }), 409, 'esim_not_ready');
  });

  it.each([
    [{ bytes: 1, percent: 1 }, ''],
    [{}, ''],
    [{ bytes: null, percent: null }, ''],
    [{ bytes: 0 }, '/bytes'],
    [{ bytes: 10 ** 15 + 1 }, '/bytes'],
    [{ bytes: 1.5 }, '/bytes'],
    [{ bytes: '1' }, '/bytes'],
    [{ percent: 0 }, '/percent'],
    [{ percent: 101 }, '/percent'],
    [{ percent: 0.5 }, '/percent'],
    [{ percent: true }, '/percent'],
    [{ bytes: 1, megabytes: 1 }, '/megabytes'],
  ])('refuses %j', async (body, pointer) => {
    expect(new Set(invalidFields(await device.play(refusing, 'consume', body)))).toEqual(new Set([pointer]));
  });

  it('takes one of the two although the other is null', async () => {
    expect(await device.played(refusing, 'consume', { bytes: 7, percent: null })).toMatchObject({
      data: { used_bytes: 7 },
    });
  });

  it('takes bytes only for an unlimited eSIM, and never announces a level', async () => {
    const id = await device.activeEsim('pkg_fr_unlimited_7d');
    expect(invalidFields(await device.play(id, 'consume', { percent: 50 }))).toEqual(['/percent']);
    const esim = await device.played(id, 'consume', { bytes: 5_000 * GB });
    expect(esim).toMatchObject({
      status: 'active',
      data: { total_bytes: null, used_bytes: 5_000 * GB, remaining_bytes: null, unlimited: true },
    });
    expect(await device.usage(id)).toMatchObject({
      percent_used: null,
      total_bytes: null,
      thresholds_crossed: [],
    });
    expect(await device.eventTypes(id)).toEqual(['esim.activated']);
  });

  let refusing: string;
  beforeAll(async () => {
    refusing = await device.activeEsim();
  });
});
