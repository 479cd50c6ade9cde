import { readFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { eventually, startTestService, type TestService } from '../harness/index.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import { whyMissing } from '../harness/why-missing.js';
import { outputOf } from './program.js';

/** The collection waits for eSIMs while other tests keep the machine busy. */
const RUN_MS = 240_000;
const COLLECTION = path.join(PROJECT_ROOT, 'docs/postman.json');
const missing = whyMissing('newman', '--version');
if (missing) console.warn(`docs/postman.json is not run: ${missing}`);

describe.skipIf(missing !== null)('the Postman collection', () => {
  let service: TestService;
  beforeAll(async () => {
    service = await startTestService();
  });
  afterAll(() => service.stop());

  /** Imports and runs the collection or one of its folders. newman exits with 1 when a test fails. */
  async function newman(key: string, ...options: readonly string[]): Promise<string> {
    const variables = ['--env-var', `base_url=${service.process.api!.url}`, '--env-var', `api_key=${key}`];
    const command = ['newman', 'run', COLLECTION, '--color', 'off', ...variables, ...options] as const;
    return outputOf(command, PROJECT_ROOT, '', RUN_MS);
  }

  it('passes from top to bottom, twice in a row', { timeout: 2 * RUN_MS }, async () => {
    const { sandboxKey } = await service.createPartner();
    const requests = readFileSync(COLLECTION, 'utf8').match(/"request": \{/g) ?? [];
    for (let i = 0; i < 2; i++)
      expect(await newman(sandboxKey)).toMatch(new RegExp(`assertions │ +${requests.length} │ +0 │`));
  });

  it('passes folder by folder for a partner that has ordered nothing', { timeout: RUN_MS }, async () => {
    const { sandboxKey } = await service.createPartner();
    expect(await newman(sandboxKey, '--folder', 'Sandbox')).toMatch(/assertions │ +3 │ +0 │/);
  });

  it('orders nothing by itself with a Live key', { timeout: RUN_MS }, async () => {
    const { id } = await service.createPartner();
    const key = await service.createKey(id, 'live');
    await expect(newman(key, '--folder', 'eSIMs')).rejects.toThrow();
    const calls = `/internal/v1/partners/${id}/requests?route=/v1/esims`;
    await eventually('its calls are logged', async () => {
      const { body } = await service.admin.get(calls);
      return (body.data as unknown[]).length > 0;
    });
    const { body } = await service.admin.get(`/internal/v1/partners/${id}/requests?method=POST`);
    const succeeded = (body.data as { status: number }[]).filter(({ status }) => status < 400);
    expect(succeeded).toEqual([]);
  });
});
