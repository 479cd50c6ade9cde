import { describe, expect, it } from 'vitest';
import { signEsimAccessRequest } from '../../src/providers/esim-access/esim-access-api.js';
import { describeConformance } from './conformance.js';
import { type EsimAccessWorld, makeEsimAccessWorld, useEsimAccess } from './esim-access-world.js';
import { newOrder, provision } from './provider-world.js';

let world: EsimAccessWorld;
const bed = useEsimAccess((fresh) => (world = fresh));

describeConformance('eSIM Access', () => makeEsimAccessWorld(bed.dataSource));

describe('eSIM Access', () => {
  it('signs like the published example', () => {
    const signature = signEsimAccessRequest({
      timestamp: '1628670421',
      requestId: '4ce9d9cdac9e4e17b3a2c66c358c1ce2',
      accessCode: '11111',
      secretKey: '1111',
      body: '{"imsi":"326543826"}',
    });
    expect(signature).toBe('7eb765e27df5373dea2dbc8c41a7d9557743e46c8054750f3d851b3fd01d0835');
  });

  it('writes neither keys nor activation codes to the log', async () => {
    const { profiles } = await provision(world.provider, newOrder(world));
    const log = JSON.stringify(world.logLines);
    expect(log).toContain('provider.call');
    expect(log).not.toContain(profiles[0]!.matchingId);
    expect(log.toLowerCase()).not.toContain('signature');
  });
});
