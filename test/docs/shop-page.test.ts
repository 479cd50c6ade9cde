import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { runProgram } from '../cli/cli-process.js';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { Page } from './page.js';

const page = new Page('docs/guides/shop-page.md');
const DESTINATIONS = '## 1. List the destinations';
const CHOOSE = '## 2. Choose the cards';
const PRINT = '## 3. Print the cards';
const PRICE = '## 4. Price the chosen days';

let service: TestService;
let partner: TestPartner;
let folder: string;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  folder = mkdtempSync(path.join(tmpdir(), 'esim-shop-page-'));
  writeFileSync(path.join(folder, 'cards.ts'), page.code(PRINT, 'typescript'));
});
afterAll(async () => {
  rmSync(folder, { recursive: true, force: true });
  await service.stop();
});

/** Output of a block of the page. */
async function paste(block: string, baseUrl = service.process.api!.url): Promise<string> {
  const env = {
    PATH: `${path.dirname(process.execPath)}:${process.env['PATH']}`,
    ...{ ESIM_BASE_URL: baseUrl, ESIM_API_KEY: partner.sandboxKey, NODE_NO_WARNINGS: '1' },
  };
  const { code, stdout, stderr } = await runProgram('bash', ['-ec', block], { env, cwd: folder });
  expect(code, stderr).toBe(0);
  return stdout;
}

describe('the shop page of the guide', () => {
  it.each([DESTINATIONS, CHOOSE, PRINT])('prints what the guide shows under %s', async (heading) => {
    expect(await paste(page.code(heading, 'bash'))).toBe(page.code(heading, 'text'));
  });

  it('sells the chosen days at the price that it shows', async () => {
    const [price = '', order = ''] = page.codes(PRICE, 'bash');
    expect(await paste(price)).toBe(page.code(PRICE, 'text'));
    const answer = await paste(order);
    expect(answer).toMatch(/^HTTP\/1.1 202 /);
    expect(JSON.parse(answer.split('\r\n\r\n')[1]!)).toMatchObject({
      data: { days: 7, total: { amount: 2_135, currency: 'USD' } },
    });
  });

  it('claims nothing that a package does not state', async () => {
    const { body } = await partner.sandbox.get('/v1/catalog/pkg_jp_2gb_daily');
    const silent = {
      ...(body.data as object),
      ...{ data_label: null, plan: { kind: 'total', days: null }, price_per_day: null },
      ...{ exit_countries: null, speed_policy: null, install_within_days: null },
      topup: { kinds: [], behavior: 'unknown', max_count: null },
    };
    const unclear = { full_speed_bytes: null, per: 'plan', then: 'unknown', kbps: null, resets: 'unknown' };
    const data = [
      { ...silent, title: 'A', fair_use: null },
      { ...silent, title: 'B', fair_use: unclear },
      { ...silent, title: 'C', fair_use: unclear, speed_policy: 'Terms apply.' },
    ];
    const api = createServer((_request, response) => response.end(JSON.stringify({ data })));
    await new Promise<void>((resolve) => api.listen(0, '127.0.0.1', resolve));
    const { port } = api.address() as AddressInfo;
    const printed = await paste('node cards.ts', `http://127.0.0.1:${port}`);
    await new Promise((resolve) => api.close(resolve));
    expect(printed).toBe('A | 1 day, 3.05 USD\nB | 1 day, 3.05 USD\nC | 1 day, 3.05 USD | Terms apply.\n');
  });

  it('names only fields of a package', async () => {
    const { body } = await partner.sandbox.get('/v1/catalog/pkg_jp_2gb_daily');
    const named = page.table(PRINT).concat(page.table('## Claims to leave out'));
    const fields = named.flatMap(([first = '', second = '']) =>
      [...`${first} ${second}`.matchAll(/`([a-z_]+)(?:\.[a-z_]+)?(?:: [^`]*)?`/g)].map(([, field]) => field!),
    );
    const values = ['then', 'min', 'max'];
    for (const field of fields.filter((each) => !values.includes(each)))
      expect(Object.keys(body.data as object), field).toContain(field);
    expect(fields.length).toBeGreaterThan(20);
  });
});
