import { execFileSync } from 'node:child_process';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  eventually,
  startTestService,
  type TestPartner,
  type TestService,
  PATIENCE_MS,
} from '../harness/index.js';
import { drawQrCode } from '../../src/esims/draw-qr-code.thread.js';
import { PROJECT_ROOT } from '../harness/child-process.js';
import type { Json } from '../harness/order-steps.js';

let service: TestService;
let busy: TestPartner;
let quiet: TestPartner;

beforeAll(async () => {
  // Sweeps run on the same thread, and a burst on a busy machine would include many of them.
  service = await startTestService({ env: { SWEEP_INTERVAL_MS: '60000' } });
  [busy, quiet] = [await service.createPartner(), await service.createPartner()];
});
afterAll(() => service.stop());

/** Issues eSIMs without a rendered QR code. */
async function issue(partner: TestPartner, count: number): Promise<readonly string[]> {
  const order = { package_id: 'pkg_fr_1gb_7d', quantity: 20 };
  for (let i = 0; i < count; i += 20) await partner.sandbox.post('/v1/orders', order);
  return eventually('they are issued', async () => {
    const { body } = await partner.sandbox.get('/v1/esims?limit=100');
    const ids = (body.data as Json[]).map(({ id }) => id as string);
    return ids.length >= count ? ids : null;
  });
}

/** CPU milliseconds that the event loop's thread spends on `calls`, independent of other load. */
async function loopTimeOf(calls: () => Promise<unknown>): Promise<number> {
  const before = process.threadCpuUsage();
  await calls();
  const { user, system } = process.threadCpuUsage(before);
  return (user + system) / 1_000;
}

it('keeps the event loop free for other calls during a burst of QR codes of one key (D43)', async () => {
  const esims = await issue(busy, 80);
  const readAll = (suffix: string) => () =>
    Promise.all(esims.map(async (id) => (await busy.sandbox.get(`/v1/esims/${id}${suffix}`)).status));
  await readAll('')();
  const reading = await loopTimeOf(readAll(''));
  let statuses: readonly number[] = [];
  const drawing = await loopTimeOf(async () => {
    const burst = readAll('/qr')();
    // Another partner is served in the meantime.
    const [own] = await issue(quiet, 1);
    expect((await quiet.sandbox.get(`/v1/esims/${own}/qr`)).status).toBe(200);
    statuses = await burst;
  });
  // On a very busy machine, the last calls get a 429.
  expect(statuses.filter((status) => status !== 200 && status !== 429)).toEqual([]);
  const eachMs = (drawing - reading) / esims.length;
  // Only a few, because rendering blocks this thread and the keep-alive connections would time out on a busy machine.
  const some = esims.slice(0, 16);
  const drawnHereMs = (await loopTimeOf(() => Promise.all(some.map(drawQrCode)))) / some.length;
  console.warn(
    `a QR code takes ${eachMs.toFixed(1)} ms of the event loop more than a read of its eSIM; ` +
      `drawn on it, it would take ${drawnHereMs.toFixed(1)}`,
  );
  expect(eachMs).toBeLessThan(drawnHereMs / 2);
});

it('renders a QR code once for repeated calls', async () => {
  const [id] = await issue(quiet, 1);
  const answers = await Promise.all(
    Array.from({ length: 30 }, () => quiet.sandbox.get(`/v1/esims/${id}/qr`)),
  );
  expect(new Set(answers.map(({ body }) => body.data.png_base64 as string)).size).toBe(1);
  expect(answers.every(({ status }) => status === 200)).toBe(true);
});

it('also renders in the built output', () => {
  const program = `
    await import('reflect-metadata');
    const { QrCodes } = await import('./dist/src/esims/qr-codes.js');
    const codes = new QrCodes();
    const { svg, pngBase64 } = await codes.draw('ptn_a', 'LPA:1$smdp.example.com$MATCHING');
    await codes.onApplicationShutdown();
    console.log(svg.slice(0, 4), Buffer.from(pngBase64, 'base64').subarray(1, 4).toString());`;
  const said = execFileSync(process.execPath, ['--input-type=module', '-e', program], {
    cwd: PROJECT_ROOT,
    encoding: 'utf8',
    timeout: PATIENCE_MS,
  });
  expect(said.trim()).toBe('<svg PNG');
});

it('renders a quiet zone of four modules on each side, as SVG and as PNG', async () => {
  const { svg, pngBase64 } = (await drawQrCode(`LPA:1$smdp.example.com$${'A1'.repeat(12)}`))!;
  const width = Number(/viewBox="0 0 (\d+) \1"/.exec(svg)![1]);
  const corners = [...svg.matchAll(/[ML](\d+) (\d+)/g)].flatMap(([, x, y]) => [Number(x), Number(y)]);
  const [first, last] = [Math.min(...corners), Math.max(...corners)];
  const module = first / 4;
  const modules = (last - first) / module;
  // A symbol of version v has 4 v + 17 modules.
  expect((modules - 17) % 4).toBe(0);
  expect(modules).toBeGreaterThanOrEqual(21);
  expect(width - last).toBe(first);
  // The PNG header contains the width.
  expect(Buffer.from(pngBase64, 'base64').readUInt32BE(16)).toBe(width);
});
