import { spawnSync } from 'node:child_process';
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

const refusal = (env?: Record<string, string>, args?: readonly string[]): Promise<string[]> =>
  place.refusal(env, args);

const postgresWasMade = (): boolean => existsSync(path.join(place.dataDir, 'postgres'));

async function whileTaken(
  ports: readonly number[],
  work: () => Promise<void>,
  host = '127.0.0.1',
): Promise<void> {
  const occupants = ports.map((port) => createServer().listen(port, host));
  await Promise.all(occupants.map((occupant) => once(occupant, 'listening')));
  try {
    await work();
  } finally {
    for (const occupant of occupants) occupant.close();
  }
}

describe('a failing npm start', () => {
  it('names every occupied port at once, with its variable, and prints a command with free ports', async () => {
    const { port, adminPort, portalPort, installPort } = place;
    await whileTaken([port, adminPort, portalPort, installPort], async () => {
      const lines = await refusal();
      expect(lines).toEqual([
        'cannot start: 4 ports are already in use',
        `  PORT=${port}, partner API: port ${port} on 127.0.0.1: already in use`,
        `  ADMIN_PORT=${adminPort}, admin API: port ${adminPort} on 127.0.0.1: already in use`,
        `  PORTAL_PORT=${portalPort}, partner portal: port ${portalPort} on 127.0.0.1: already in use`,
        `  INSTALL_PORT=${installPort}, install page: port ${installPort} on 127.0.0.1: already in use`,
        'Stop the program that uses the port, or start on free ports:',
        expect.stringMatching(/^ {2}PORT=\d+ ADMIN_PORT=\d+ PORTAL_PORT=\d+ INSTALL_PORT=\d+ npm start$/),
      ]);
      expect(postgresWasMade()).toBe(false);
      const free = Object.fromEntries(
        [...lines.at(-1)!.matchAll(/(\w+)=(\d+)/g)].map(([, name, value]) => [name, value]),
      );
      for (const port of Object.values(free)) await whileTaken([Number(port)], () => Promise.resolve());
    });
    expect(await place.postgresPids()).toEqual([]);
  });

  it('names a port that another program uses on ::1, because localhost may resolve to it', async () => {
    const { port } = place;
    const check = async (): Promise<void> => {
      expect((await refusal()).slice(0, 2)).toEqual([
        'cannot start: a port is already in use',
        `  PORT=${port}, partner API: port ${port} on ::1, which is localhost too: already in use`,
      ]);
      expect(postgresWasMade()).toBe(false);
    };
    await whileTaken([port], check, '::1');
  });

  it('names a port that two of its own variables share', async () => {
    const lines = await refusal({ ADMIN_PORT: String(place.port) });
    expect(lines).toContain(`  ADMIN_PORT=${place.port}, admin API: PORT has the same port`);
    expect(lines[0]).toBe('cannot start: a port is already in use');
  });

  it('names the ports of a separately started role', async () => {
    await whileTaken([place.port, place.adminPort], async () => {
      const lines = await refusal(
        {
          ...{
            DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
            SECRETS_KEYS: `k:${Buffer.alloc(32).toString('base64')}`,
          },
          ADMIN_TOKENS: `office:${'0'.repeat(32)}`,
          OPS_PORT: String(place.adminPort),
        },
        ['api'],
      );
      expect(lines.slice(1, 3)).toEqual([
        expect.stringMatching(/^ {2}PORT=.* already in use$/),
        expect.stringMatching(/^ {2}OPS_PORT=.*probes and metrics.* already in use$/),
      ]);
      expect(lines.at(-1)).toMatch(/^ {2}PORT=\d+ OPS_PORT=\d+ npm start -- api$/);
    });
  });

  it('explains in one line that DATA_DIR is inside a file', async () => {
    writeFileSync(place.dataDir, 'in the way');
    const below = path.join(place.dataDir, 'deeper');
    expect(await refusalAsOneLine({ DATA_DIR: below })).toContain(below);
  });

  it('explains in one line that a file is where the cluster should be', async () => {
    mkdirSync(place.dataDir);
    writeFileSync(path.join(place.dataDir, 'postgres'), 'in the way');
    expect(await refusalAsOneLine()).toContain(path.join(place.dataDir, 'postgres'));
  });

  it('lists every invalid variable at once, before it creates or starts PostgreSQL', async () => {
    const bad = {
      NODE_ENV: 'prod',
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

  it('refuses NODE_ENV=production without DATABASE_URL, and creates nothing', async () => {
    const lines = await refusal({ NODE_ENV: 'production' });
    expect(lines.join(' ')).toMatch(/DATABASE_URL .*NODE_ENV=production/);
    expect(existsSync(place.dataDir)).toBe(false);
  });

  it('requires an admin token in plain text, because it cannot call the admin API with a digest', async () => {
    const said = await refusalAsOneLine({ ADMIN_TOKENS: `office:sha256=${'0'.repeat(64)}` });
    expect(said).toContain('ADMIN_TOKENS has only digests');
    expect(postgresWasMade()).toBe(false);
  });

  /** Configuration errors have a heading and one line each. Other refusals are one line. */
  async function refusalAsOneLine(env: Record<string, string> = {}): Promise<string> {
    const lines = (await refusal(env)).filter((line) => !line.startsWith('Configuration is invalid'));
    expect(lines).toHaveLength(1);
    return lines[0]!;
  }
});

it.each(['api', 'admin', 'portal', 'install', 'worker'])('npm run start:%s starts the role', (role) => {
  const env = { ...process.env, ENV_FILE: '', DATABASE_URL: '' };
  const { stderr } = spawnSync('npm', ['run', '--silent', `start:${role}`], { env, encoding: 'utf8' });
  expect(stderr).toContain('DATABASE_URL is required');
});
