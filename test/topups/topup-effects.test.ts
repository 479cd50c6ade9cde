import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type HttpClient, startTestService, type TestService } from '../harness/index.js';
import { EsimDevice } from '../harness/esim-device.js';
import { issueEsim } from '../harness/order-steps.js';
import { BASE, DAY_MS, GB, topUp, TOPUP_DAYS } from './topup-steps.js';

let service: TestService;
let api: HttpClient;
let device: EsimDevice;

beforeAll(async () => {
  service = await startTestService();
  api = (await service.createPartner()).sandbox;
  device = new EsimDevice(api);
});

afterAll(() => service.stop());

/** Levels announced and counted as announced, after using up to `bytes` in all. */
async function usedUpTo(id: string, bytes: number): Promise<{ announced: number[]; crossed: number[] }> {
  const { used_bytes } = await device.usage(id);
  if (bytes > used_bytes) await device.played(id, 'consume', { bytes: bytes - (used_bytes as number) });
  return {
    announced: await device.levels(id),
    crossed: (await device.usage(id))['thresholds_crossed'] as number[],
  };
}

describe('a data top-up', () => {
  it('makes a depleted eSIM active again', async () => {
    const id = await device.activeEsim();
    expect(await device.played(id, 'consume', { percent: 100 })).toMatchObject({ status: 'depleted' });
    await topUp(api, id);
    expect(await device.read(id)).toMatchObject({
      status: 'active',
      data: { total_bytes: 2 * GB, used_bytes: GB, remaining_bytes: GB },
    });
    expect(await device.played(id, 'consume', { percent: 100 })).toMatchObject({
      status: 'depleted',
      data: { used_bytes: 2 * GB },
    });
  });

  it('opens a cycle: of the new total each level is announced once, none below it', async () => {
    const id = await device.activeEsim();
    expect((await usedUpTo(id, 0.8 * GB)).announced).toEqual([50, 80]);
    await topUp(api, id);
    // 40 % of the new total: nothing is reached, and nothing of the old total is announced again.
    expect(await usedUpTo(id, GB - 1)).toEqual({ announced: [50, 80], crossed: [] });
    expect(await usedUpTo(id, GB)).toEqual({ announced: [50, 80, 50], crossed: [50] });
    expect(await usedUpTo(id, 1.6 * GB - 1)).toMatchObject({ crossed: [50] });
    expect(await usedUpTo(id, 1.6 * GB)).toMatchObject({ crossed: [50, 80] });
    expect(await usedUpTo(id, 2 * GB)).toEqual({
      announced: [50, 80, 50, 80, 100],
      crossed: [50, 80, 100],
    });
    const last = (await device.events(id)).at(-1)!;
    expect(last['data']).toMatchObject({ threshold_percent: 100, used_bytes: 2 * GB, total_bytes: 2 * GB });
  });

  it('counts levels that the usage has already reached of the new total as announced', async () => {
    const id = await device.activeEsim();
    await usedUpTo(id, GB);
    await topUp(api, id);
    // Exactly 50 % of the new total.
    expect(await usedUpTo(id, GB)).toEqual({ announced: [50, 80, 100], crossed: [50] });
    expect(await usedUpTo(id, 1.2 * GB)).toEqual({ announced: [50, 80, 100], crossed: [50] });
    expect(await usedUpTo(id, 2 * GB)).toEqual({
      announced: [50, 80, 100, 80, 100],
      crossed: [50, 80, 100],
    });
  });

  it('is compared in integers: a byte below half is below half, even where floats say otherwise', async () => {
    const total = 9_000_000_000_000_003;
    for (const [usedBytes, crossed] of [
      [4_500_000_000_000_001, []],
      [4_500_000_000_000_002, [50]],
    ] as const) {
      const id = await device.activeEsim();
      await service.database.pool.query('UPDATE esims SET total_bytes = $2, used_bytes = $3 WHERE id = $1', [
        id,
        total - GB,
        usedBytes,
      ]);
      await topUp(api, id);
      expect(await device.usage(id)).toMatchObject({ total_bytes: total, thresholds_crossed: crossed });
    }
  });
});

describe('the days of a top-up', () => {
  it('extend the present end of a running eSIM', async () => {
    const id = await device.activeEsim();
    const before = Date.parse((await device.read(id))['expires_at'] as string);
    await topUp(api, id);
    await topUp(api, id, TOPUP_DAYS);
    expect(Date.parse((await device.read(id))['expires_at'] as string)).toBe(before + 14 * DAY_MS);
  });

  it('wait for the start of an eSIM that has not started', async () => {
    const id = await issueEsim(api, BASE);
    await topUp(api, id);
    const waiting = await device.read(id);
    expect(waiting).toMatchObject({
      status: 'issued',
      profile_status: 'released',
      expires_at: null,
      data: { total_bytes: 2 * GB },
    });
    const started = await device.played(id, 'activate');
    const validityMs =
      Date.parse(started['expires_at'] as string) - Date.parse(started['activated_at'] as string);
    expect(validityMs).toBe(14 * DAY_MS);
  });

  it('leave data, cycle and status as they are when the top-up adds nothing else', async () => {
    const id = await device.activeEsim();
    await usedUpTo(id, GB);
    await topUp(api, id, TOPUP_DAYS);
    expect(await device.read(id)).toMatchObject({ status: 'depleted', data: { total_bytes: GB } });
    expect((await device.usage(id))['thresholds_crossed']).toEqual([50, 80, 100]);
  });

  it('extend an unlimited eSIM, which stays without a total', async () => {
    const id = await device.activeEsim('pkg_fr_unlimited_7d');
    const before = Date.parse((await device.read(id))['expires_at'] as string);
    await topUp(api, id, TOPUP_DAYS);
    expect(await device.read(id)).toMatchObject({
      status: 'active',
      expires_at: new Date(before + 7 * DAY_MS).toISOString(),
      data: { total_bytes: null, remaining_bytes: null, unlimited: true },
    });
  });
});
