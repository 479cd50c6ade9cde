import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { createTestDatabase, type TestDatabase } from '../harness/index.js';
import { reconcileCommand } from './reconcile-command.js';

let database: TestDatabase;

beforeAll(async () => {
  database = await createTestDatabase();
});

afterAll(() => database.drop());

describe('the command', () => {
  it('answers one JSON object with --json', async () => {
    const { code, stdout } = await reconcileCommand(database.url, { args: ['--json'] });
    expect(code).toBe(0);
    expect(JSON.parse(stdout)).toMatchObject({
      checked: { wallets: 0, orders: 0 },
      differences: [],
      upstreams: [],
    });
  });

  it('explains itself with --help, without settings', async () => {
    const { code, stdout } = await reconcileCommand('', { args: ['--help'], env: { ADMIN_TOKENS: '' } });
    expect(code).toBe(0);
    for (const word of ['--since', '--no-upstream', '--json', 'Exit code']) expect(stdout).toContain(word);
  });

  it.each([
    ['an unknown option', ['--fix']],
    ['a time that is none', ['--since', 'yesterday']],
    ['a time to come', ['--since', '2999-01-01T00:00:00Z']],
  ])('exits with 2 for %s', async (_what, args) => {
    const { code, stdout, stderr } = await reconcileCommand(database.url, { args });
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toContain('npm run reconcile');
  });

  it('exits with 2 and one clear line when the database is away', async () => {
    const { code, stdout, stderr } = await reconcileCommand('postgres://nobody@127.0.0.1:9/none');
    expect([code, stdout]).toEqual([2, '']);
    expect(stderr).toMatch(/^could not run: .+$/);
  });

  it('exits with 2 and lists what is missing when the settings are not complete', async () => {
    const { code, stderr } = await reconcileCommand('', { env: { SECRETS_KEYS: '' } });
    expect(code).toBe(2);
    expect(stderr).toContain('DATABASE_URL');
    expect(stderr).toContain('SECRETS_KEYS');
  });
});
