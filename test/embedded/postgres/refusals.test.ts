import { once } from 'node:events';
import { chownSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadBinaries } from '../../../src/embedded/postgres/cluster.js';
import { EmbeddedPostgresError } from '../../../src/embedded/postgres/index.js';
import { postgresProcessesOf } from '../../../src/embedded/postgres/postgres-process.js';
import { isRoot, sharedCluster, newDataDir, start } from './workbench.js';

if (!isRoot) console.warn('two tests are skipped: only root starts PostgreSQL through setpriv');

/** What a start is refused with: always one line of the error class of the module. */
async function refusalOf(attempt: Promise<unknown>): Promise<string> {
  const error = await attempt.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(EmbeddedPostgresError);
  const { message } = error as EmbeddedPostgresError;
  expect(message).not.toContain('\n');
  return message;
}

describe('embedded PostgreSQL: says in one line why it cannot start', () => {
  it('the fixed port is taken', async () => {
    const squatter = net.createServer().listen(0, '127.0.0.1');
    await once(squatter, 'listening');
    onTestFinished(() => void squatter.close());
    const { port } = squatter.address() as net.AddressInfo;
    expect(await refusalOf(start(await sharedCluster(), { port }))).toBe(
      `port ${port} on 127.0.0.1 is already in use by another program`,
    );
  });

  it('the folder cannot be written', async () => {
    const dataDir = newDataDir();
    const file = path.dirname(path.dirname(dataDir)) + '/file';
    writeFileSync(file, '');
    expect(await refusalOf(start(`${file}/.data/postgres`))).toMatch(
      /^cannot write to the data folder .*\/file\/\.data: ENOTDIR/,
    );
    expect(await refusalOf(start('/proc/nowhere/postgres'))).toMatch(/^cannot write .*\/proc\/nowhere: E/);
  });

  it('the folder holds something else, which stays untouched', async () => {
    const dataDir = newDataDir();
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(path.join(dataDir, 'letter.txt'), 'mine');
    expect(await refusalOf(start(dataDir))).toMatch(/holds files that are not a PostgreSQL data directory/);
    expect(readFileSync(path.join(dataDir, 'letter.txt'), 'utf8')).toBe('mine');
  });

  it('another major version made the data', async () => {
    const dataDir = await sharedCluster();
    onTestFinished(() => writeFileSync(path.join(dataDir, 'PG_VERSION'), '18\n'));
    writeFileSync(path.join(dataDir, 'PG_VERSION'), '17\n');
    expect(await refusalOf(start(dataDir))).toMatch(/made by PostgreSQL 17, .*installed version is 18/);
  });

  it('the password of the data is gone', async () => {
    const dataDir = await sharedCluster();
    onTestFinished(() => renameSync(`${dataDir}.elsewhere`, `${dataDir}.password`));
    renameSync(`${dataDir}.password`, `${dataDir}.elsewhere`);
    expect(await refusalOf(start(dataDir))).toMatch(/password: ENOENT.*postgres\.password/);
  });

  it('PostgreSQL itself refuses', async () => {
    const attempt = start(await sharedCluster(), { settings: { fsync: 'off', no_such_setting: 1 } });
    expect(await refusalOf(attempt)).toBe(
      'PostgreSQL did not start: unrecognized configuration parameter "no_such_setting"',
    );
  });

  it('it is not ready in time, and nothing is left running', async () => {
    const dataDir = await sharedCluster();
    // A restore that goes on for a minute: otherwise it may be ready before it is looked at for the first time.
    const signal = path.join(dataDir, 'recovery.signal');
    onTestFinished(() => rmSync(signal, { force: true }));
    writeFileSync(signal, '');
    const settings = { fsync: 'off', restore_command: 'sleep 60' };
    expect(await refusalOf(start(dataDir, { startTimeoutMs: -1, settings }))).toMatch(/not ready in time/);
    expect(await postgresProcessesOf(dataDir)).toEqual([]);
  });

  it('there are no binaries for this platform', async () => {
    expect(await refusalOf(loadBinaries('plan9-x64'))).toMatch(/for plan9-x64: set DATABASE_URL/);
  });

  it.runIf(isRoot)('the user has no entry in /etc/passwd, with the command that adds one', async () => {
    const dataDir = newDataDir();
    mkdirSync(dataDir, { recursive: true });
    chownSync(dataDir, 54_321, 54_321);
    expect(await refusalOf(start(dataDir))).toMatch(
      /user id 54321 has no entry in \/etc\/passwd.*\(echo 'esim:x:54321:54321:.*>> \/etc\/passwd\), or set DATABASE_URL$/,
    );
  });

  it.runIf(isRoot)('root has no setpriv', async () => {
    vi.stubEnv('PATH', '/nowhere');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await refusalOf(start(newDataDir()))).toMatch(/setpriv is missing: install util-linux/);
  });
});
