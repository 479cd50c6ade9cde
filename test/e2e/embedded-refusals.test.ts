import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { createServer } from 'node:net';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { EmbeddedPlace } from '../harness/embedded-start.js';

let place: EmbeddedPlace;

beforeEach(async () => {
  place = await EmbeddedPlace.make();
});

afterEach(() => place.remove());

/** The lines on stderr of a start that must fail with exit code 1. */
async function refusal(env: Record<string, string> = {}): Promise<string[]> {
  const child = place.launch(env);
  expect(await child.exited()).toBe(1);
  expect(child.stdout).not.toMatch(/^ready$/m);
  return child.complaints;
}

const postgresWasMade = (): boolean => existsSync(path.join(place.dataDir, 'postgres'));

async function whileTaken(port: number, work: () => Promise<void>): Promise<void> {
  const occupant = createServer().listen(port, '127.0.0.1');
  await once(occupant, 'listening');
  try {
    await work();
  } finally {
    occupant.close();
  }
}

describe('npm start that cannot', () => {
  it('names a taken port in one line, and leaves no PostgreSQL running', async () => {
    for (const port of [place.port, place.adminPort]) {
      await whileTaken(port, async () => {
        const lines = await refusal();
        expect(lines).toEqual([expect.stringContaining(String(port))]);
        expect(lines[0]).toMatch(/in use/);
      });
      expect(await place.postgresPids()).toEqual([]);
    }
  });

  it('names a DATA_DIR that is a file in one line', async () => {
    writeFileSync(place.dataDir, 'in the way');
    expect(await refusalAsOneLine()).toContain(place.dataDir);
  });

  it('names a DATA_DIR below a file in one line', async () => {
    writeFileSync(place.dataDir, 'in the way');
    const below = path.join(place.dataDir, 'deeper');
    expect(await refusalAsOneLine({ DATA_DIR: below })).toContain(below);
  });

  it('names a file in the place of the cluster in one line', async () => {
    mkdirSync(place.dataDir);
    writeFileSync(path.join(place.dataDir, 'postgres'), 'in the way');
    expect(await refusalAsOneLine()).toContain(path.join(place.dataDir, 'postgres'));
  });

  it('lists every bad variable at once, before PostgreSQL is made or started', async () => {
    const bad = {
      PORT: 'abc',
      ADMIN_PORT: '70000',
      RATE_LIMIT_BURST: '0',
      WEBHOOK_TIMEOUT_MS: '1.5',
      WEBHOOK_RETRY_DELAYS_MS: '1,two',
      LOG_LEVEL: 'loud',
      ADMIN_TOKENS: 'portal:short',
      SECRETS_KEYS: 'dev:bm90IDMyIGJ5dGVz',
      WEBHOOK_ALLOW_PRIVATE_TARGETS: 'maybe',
    };
    const lines = await refusal(bad);
    const named = lines.map((line) => /[A-Z_]{4,}/.exec(line)?.[0]).filter(Boolean);
    expect(named.sort()).toEqual(Object.keys(bad).sort());
    expect(lines.join('\n')).not.toContain(bad.SECRETS_KEYS.slice(4));
    expect(postgresWasMade()).toBe(false);
  });

  it('is refused with NODE_ENV=production and no DATABASE_URL, and makes nothing', async () => {
    const lines = await refusal({ NODE_ENV: 'production' });
    expect(lines.join(' ')).toMatch(/DATABASE_URL .*NODE_ENV=production/);
    expect(existsSync(place.dataDir)).toBe(false);
  });

  it('needs a token to call the admin API with, and no digest alone', async () => {
    const said = await refusalAsOneLine({ ADMIN_TOKENS: `office:sha256=${'0'.repeat(64)}` });
    expect(said).toContain('ADMIN_TOKENS has only digests');
    expect(postgresWasMade()).toBe(false);
  });

  it('tells an unknown NODE_ENV from production', async () => {
    expect((await refusal({ NODE_ENV: 'prod' })).join(' ')).toContain('NODE_ENV');
    expect(postgresWasMade()).toBe(false);
  });

  /** Configuration errors have a heading and one line each; what stands in the way is one line. */
  async function refusalAsOneLine(env: Record<string, string> = {}): Promise<string> {
    const lines = (await refusal(env)).filter((line) => !line.startsWith('Configuration is invalid'));
    expect(lines).toHaveLength(1);
    return lines[0]!;
  }
});
