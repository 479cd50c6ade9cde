import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { Transactions } from '../../src/infra/database/index.js';
import { PlacementGuard, ProviderOutcomeUnknown, ProviderUnavailable } from '../../src/providers/index.js';
import { RepeatLimitReached } from '../../src/providers/http/index.js';
import { useTestDataSource } from './esim-access-world.js';

const bed = useTestDataSource();

/** A guard as in another process, and the alerts to support. */
function newGuard(tell?: () => Promise<void>) {
  const told: string[] = [];
  const guard = new PlacementGuard(new Transactions(bed.dataSource), bed.dataSource.manager);
  guard.onRepeat('topup', async (_tx, { key }) => {
    await tell?.();
    told.push(key);
  });
  return { guard, told };
}

function newPlacement(repeat: 'same_request' | 'undocumented' = 'undocumented') {
  const key = randomUUID();
  const policy = { repeat, source: 'the test' };
  return { provider: 'any', operation: 'topup', key, reference: key, policy } as const;
}

const lost = () => Promise.reject(new ProviderOutcomeUnknown());

describe('a placement that is not documented as repeatable', () => {
  it('is sent at most twice when fifty calls try at once from two processes, and support is alerted once', async () => {
    const [one, other] = [newGuard(), newGuard()];
    const placement = newPlacement();
    let sent = 0;
    const send = () => {
      sent++;
      return lost();
    };
    const ends = await Promise.allSettled(
      Array.from({ length: 50 }, (_, i) => (i % 2 ? one : other).guard.run(placement, send)),
    );
    expect(sent).toBe(2);
    const refused = ends.filter(
      (end) => end.status === 'rejected' && end.reason instanceof RepeatLimitReached,
    );
    expect(refused).toHaveLength(48);
    expect([...one.told, ...other.told]).toEqual([placement.key]);
  });

  it('is not sent again while support cannot be alerted', async () => {
    const { guard } = newGuard(() => Promise.reject(new Error('no alert could be written')));
    const placement = newPlacement();
    await expect(guard.run(placement, lost)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    await expect(guard.run(placement, () => Promise.resolve('sent'))).rejects.toThrow('no alert');
    // The failed alert has rolled back the count, so another try is allowed.
    expect(await newGuard().guard.run(placement, () => Promise.resolve('sent'))).toBe('sent');
  });

  it('is not sent again where support cannot be alerted at all', async () => {
    const guard = new PlacementGuard(new Transactions(bed.dataSource), bed.dataSource.manager);
    const placement = newPlacement();
    await expect(guard.run(placement, lost)).rejects.toBeInstanceOf(ProviderOutcomeUnknown);
    await expect(guard.run(placement, lost)).rejects.toBeInstanceOf(RepeatLimitReached);
  });

  it('is not counted when it certainly had no effect', async () => {
    const { guard, told } = newGuard();
    const placement = newPlacement();
    const busy = () => Promise.reject(new ProviderUnavailable(1));
    for (let i = 0; i < 5; i++) await expect(guard.run(placement, busy)).rejects.toThrow(ProviderUnavailable);
    for (let i = 0; i < 5; i++)
      await guard.run(
        placement,
        () => Promise.resolve('refused'),
        (outcome) => 'value' in outcome,
      );
    expect(told).toEqual([]);
  });

  it('cannot be counted a third time by any statement', async () => {
    const placement = newPlacement();
    const insert = (placements: number) =>
      bed.database.pool.query(
        `INSERT INTO provider_placements (provider, operation, placement_key, provider_reference, placements)
         VALUES ('any', 'topup', $1, $1, $2)`,
        [placement.key, placements],
      );
    await expect(insert(3)).rejects.toThrow('provider_placements_one_repeat');
    await insert(2);
    await expect(
      bed.database.pool.query(
        `UPDATE provider_placements SET placements = placements + 1 WHERE placement_key = $1`,
        [placement.key],
      ),
    ).rejects.toThrow('provider_placements_one_repeat');
  });
});

describe('a placement that the provider documents as the same request', () => {
  it('is sent at every attempt', async () => {
    const { guard, told } = newGuard();
    const placement = newPlacement('same_request');
    for (let i = 0; i < 4; i++)
      await expect(guard.run(placement, lost)).rejects.toThrow(ProviderOutcomeUnknown);
    expect(told).toEqual([]);
  });
});
