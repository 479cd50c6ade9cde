import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startTestService, type TestPartner, type TestService } from '../harness/index.js';
import { type CallHolder, startCallHolder } from './call-holder.js';
import { CliUser } from './cli-process.js';

let service: TestService;
let partner: TestPartner;
let liveKey: string;
let user: CliUser;
/** Two URLs of the same service, each of which records the keys it received. */
let production: CallHolder;
let laptop: CallHolder;

beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner();
  liveKey = await service.createKey(partner.id, 'live');
});
afterAll(() => service.stop());

beforeEach(async () => {
  const url = service.process.api?.url ?? '';
  [production, laptop] = [
    await startCallHolder(url, () => 'answered'),
    await startCallHolder(url, () => 'answered'),
  ];
  user = new CliUser();
});
afterEach(async () => {
  await Promise.all([production.close(), laptop.close()]);
  user.remove();
});

async function login(key: string, baseUrl: string): Promise<void> {
  const finished = await user.run(['login', '--base-url', baseUrl], { stdin: `${key}\n` });
  expect(finished).toMatchObject({ code: 0 });
}

const keysAt = ({ authorizations }: CallHolder): string[] => [...new Set(authorizations)];

describe('a stored key', () => {
  it.each(['live first', 'sandbox first'])('is sent only to the URL it was stored for: %s', async (order) => {
    const logins = [
      () => login(liveKey, production.url),
      () => login(partner.sandboxKey, `${laptop.url}/v1/`),
    ];
    for (const each of order === 'live first' ? logins : logins.toReversed()) await each();
    expect(await user.run(['orders', 'list', '--live'])).toMatchObject({ code: 0 });
    expect(await user.run(['orders', 'list'])).toMatchObject({ code: 0 });
    expect(keysAt(production)).toEqual([`Bearer ${liveKey}`]);
    expect(keysAt(laptop)).toEqual([`Bearer ${partner.sandboxKey}`]);
  });

  it('is refused for another URL with instructions, while a key from the environment is allowed', async () => {
    await login(liveKey, production.url);
    const args = ['orders', 'list', '--live'];
    for (const refused of [
      await user.run([...args, '--base-url', laptop.url]),
      await user.run(args, { env: { ESIM_BASE_URL: laptop.url } }),
    ]) {
      expect(refused.code).toBe(3);
      expect(refused.stderr).toContain(production.url);
      expect(refused.stderr).toContain(`esim login --base-url ${laptop.url}`);
      expect(refused.stderr).toContain('ESIM_API_KEY');
      expect(refused.stderr).not.toContain(liveKey);
    }
    expect(laptop.authorizations).toEqual([]);
    const env = { ESIM_API_KEY: liveKey };
    expect(await user.run([...args, '--base-url', laptop.url], { env })).toMatchObject({ code: 0 });
    const sameUrl = `${production.url.replace('http:', 'HTTP:')}/v1/`;
    expect(await user.run([...args, '--base-url', sameUrl])).toMatchObject({ code: 0 });
  });

  it('is used if an earlier version stored only this key, and refused if that version stored several keys', async () => {
    const file = path.join(user.home, '.config/partner-esim/credentials.json');
    mkdirSync(path.dirname(file), { recursive: true });
    const keep = (keys: object): void => writeFileSync(file, JSON.stringify({ baseUrl: laptop.url, keys }));
    keep({ sandbox: partner.sandboxKey });
    expect(await user.run(['orders', 'list'])).toMatchObject({ code: 0 });
    keep({ sandbox: partner.sandboxKey, live: liveKey });
    const refused = await user.run(['orders', 'list', '--live']);
    expect(refused).toMatchObject({ code: 3, stderr: expect.stringContaining('esim login') });
    expect(keysAt(laptop)).toEqual([`Bearer ${partner.sandboxKey}`]);
    await login(liveKey, production.url);
    expect(await user.run(['orders', 'list', '--live'])).toMatchObject({ code: 0 });
    expect(keysAt(production)).toEqual([`Bearer ${liveKey}`]);
  });
});

describe('a Live key', () => {
  it('is sent over https only', async () => {
    const place = ['--base-url', 'http://api.example.com'];
    const env = { ESIM_API_KEY: liveKey };
    for (const finished of [
      await user.run(['login', ...place], { stdin: liveKey }),
      await user.run(['orders', 'list', ...place], { env }),
    ])
      expect(finished).toMatchObject({ code: 2, stderr: expect.stringContaining('https') });
  });
});

describe('--live', () => {
  it.each([
    ['orders place', ['orders', 'place', '-p', 'pkg_fr_1gb_7d', '--live']],
    ['orders list', ['orders', 'list', '--live']],
  ])('is refused by %s with a Sandbox key in ESIM_API_KEY, and nothing is sent', async (_name, args) => {
    const env = { ESIM_API_KEY: partner.sandboxKey, ESIM_BASE_URL: laptop.url };
    const refused = await user.run(args, { env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('Sandbox key') });
    expect(laptop.authorizations).toEqual([]);
  });

  it('explains how to use the Live key while ESIM_API_KEY holds a Sandbox key', async () => {
    const env = { ESIM_API_KEY: partner.sandboxKey, ESIM_LIVE_KEY: liveKey };
    const args = ['orders', 'list', '--live'];
    const before = await user.run(args, { env });
    expect(before.stderr).toContain('Run `unset ESIM_API_KEY`, then `esim login` with a Live key');
    expect(before.stderr).toContain('ESIM_LIVE_KEY is not read');
    await login(liveKey, production.url);
    const refused = await user.run(args, { env });
    expect(refused).toMatchObject({ code: 2, stderr: expect.stringContaining('to use the stored Live key') });
    expect(refused.stderr).toContain('Run `unset ESIM_API_KEY`');
    expect(await user.run(args)).toMatchObject({ code: 0 });
  });
});
