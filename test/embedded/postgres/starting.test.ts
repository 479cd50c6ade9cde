import { once } from 'node:events';
import { chownSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { loadBinaries } from '../../../src/embedded/postgres/cluster.js';
import { EmbeddedPostgresError } from '../../../src/embedded/postgres/index.js';
import { postgresProcessesOf } from '../../../src/embedded/postgres/postgres-process.js';
import { overTcp } from '../../harness/database.js';
import { freePort } from '../../../chaos/free-port.js';
import {
  Application,
  isLinux,
  isRoot,
  keptRows,
  sharedCluster,
  newDataDir,
  postmasterPid,
  runs,
  sql,
  start,
} from './workbench.js';

if (!isRoot) console.warn('three tests are skipped: only root starts PostgreSQL through setpriv');

const mode = (file: string): string => (statSync(file).mode & 0o777).toString(8);

describe('embedded PostgreSQL: starting and stopping', () => {
  it('listens on its socket and on 127.0.0.1 with the given settings', async () => {
    const server = await start(await sharedCluster(), { settings: { fsync: 'off', max_connections: 7 } });
    const database = server.url('template1');
    expect(await sql(database, 'SELECT inet_server_addr() AS host')).toEqual([{ host: null }]);
    const [row] = await sql(
      overTcp(database).href,
      `SELECT current_database() AS db, current_setting('max_connections') AS connections,
              current_setting('shared_buffers') AS buffers, current_setting('jit') AS jit,
              current_setting('data_checksums') AS checksums, current_setting('server_encoding') AS encoding,
              host(inet_server_addr()) AS host, inet_server_port() AS port`,
    );
    expect(row).toEqual({
      db: 'template1',
      connections: '7',
      buffers: '64MB',
      jit: 'off',
      checksums: 'on',
      encoding: 'UTF8',
      host: '127.0.0.1',
      port: server.port,
    });
  });

  it('listens on 127.0.0.1 alone when the path is too long for a socket', async () => {
    const server = await start(path.join(newDataDir(), 'x'.repeat(80)));
    expect(await sql(server.url(), 'SELECT host(inet_server_addr()) AS host')).toEqual([
      { host: '127.0.0.1' },
    ]);
  });

  it('keeps the data, the port and the password across a restart', async () => {
    const dataDir = await sharedCluster();
    // Reserve a port that no other program gets while the server is down.
    const first = await start(dataDir, { port: await freePort() });
    await first.stop();

    const second = await start(dataDir);
    expect(second.url()).toBe(first.url());
    expect(await keptRows(second.url())).toEqual([{ answer: 42 }]);
  });

  it('lets nobody else read the data or the password, and requires the password', async () => {
    const dataDir = await sharedCluster();
    const server = await start(dataDir);
    expect(mode(path.dirname(dataDir))).toBe('700');
    expect(mode(dataDir)).toBe('700');
    expect(mode(`${dataDir}.password`)).toBe('600');
    const guess = new URL(server.url());
    guess.password = 'postgres';
    await expect(sql(guess.href, 'SELECT 1')).rejects.toThrow(/password authentication failed/);
  });

  it('has stopped when stop() resolves, however often it is called, and is not reported as crashed', async () => {
    const dataDir = await sharedCluster();
    const server = await start(dataDir);
    const pid = postmasterPid(dataDir);
    await Promise.all([server.stop(), server.stop()]);
    expect(runs(pid)).toBe(false);
    expect(await Promise.race([server.crashed, sleep(50, 'no crash')])).toBe('no crash');
  });

  it('reports a server that exits unexpectedly', async () => {
    const dataDir = await sharedCluster();
    const server = await start(dataDir);
    process.kill(postmasterPid(dataDir), 'SIGKILL');
    expect(await server.crashed).toMatch(/SIGKILL/);
  });

  it.runIf(isRoot)('runs as a user other than root, inside a folder that only root can enter', async () => {
    const dataDir = await sharedCluster();
    await start(dataDir);
    const closed = statSync(path.dirname(path.dirname(dataDir)));
    expect([closed.uid, mode(path.dirname(path.dirname(dataDir)))]).toEqual([0, '700']);
    expect(statSync(`/proc/${postmasterPid(dataDir)}`).uid).not.toBe(0);
  });

  it('does not receive Ctrl-C, so that the application can drain first', async () => {
    const application = Application.launch(await sharedCluster());
    const url = await application.ready();
    application.interruptGroup();
    expect(await sql(url, 'SELECT pg_sleep(0.2) IS NOT NULL AS answered')).toEqual([{ answered: true }]);
  });

  it('shares one server between two starts at the same moment', async () => {
    const dataDir = newDataDir();
    const starts = [start(dataDir), start(dataDir)];
    const urls = (await Promise.all(starts)).map((server) => server.url());
    expect(urls[1]).toBe(urls[0]);
    expect(await sql(urls[1] ?? '', 'SELECT 1 AS ok')).toEqual([{ ok: 1 }]);
  });

  it.runIf(isLinux)('leaves a server running that belongs to another live process', async () => {
    const dataDir = await sharedCluster();
    const url = await Application.launch(dataDir).ready();
    const guest = await start(dataDir);
    expect(guest.url()).toBe(url);
    await guest.stop();
    expect(await sql(url, 'SELECT 1 AS ok')).toEqual([{ ok: 1 }]);
  });
});

/** The message of a refused start, which must be one line of the module's error class. */
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

describe('embedded PostgreSQL: one-line refusals', () => {
  it('names a fixed port that is taken', async () => {
    const squatter = net.createServer().listen(0, '127.0.0.1');
    await once(squatter, 'listening');
    onTestFinished(() => void squatter.close());
    const { port } = squatter.address() as net.AddressInfo;
    expect(await refusalOf(start(await sharedCluster(), { port }))).toBe(
      `port ${port} on 127.0.0.1 is already in use by another program`,
    );
  });

  it('names a folder that is not writable', async () => {
    const dataDir = newDataDir();
    const file = path.dirname(path.dirname(dataDir)) + '/file';
    writeFileSync(file, '');
    expect(await refusalOf(start(`${file}/.data/postgres`))).toMatch(
      /^cannot write to the data folder .*\/file\/\.data: ENOTDIR/,
    );
    expect(await refusalOf(start('/proc/nowhere/postgres'))).toMatch(/^cannot write .*\/proc\/nowhere: E/);
  });

  it('names a folder with other content, and leaves it untouched', async () => {
    const dataDir = newDataDir();
    mkdirSync(dataDir, { recursive: true });
    writeFileSync(path.join(dataDir, 'letter.txt'), 'mine');
    expect(await refusalOf(start(dataDir))).toMatch(/holds files that are not a PostgreSQL data directory/);
    expect(readFileSync(path.join(dataDir, 'letter.txt'), 'utf8')).toBe('mine');
  });

  it('names the other major version that created the data', async () => {
    const dataDir = await sharedCluster();
    onTestFinished(() => writeFileSync(path.join(dataDir, 'PG_VERSION'), '18\n'));
    writeFileSync(path.join(dataDir, 'PG_VERSION'), '17\n');
    expect(await refusalOf(start(dataDir))).toMatch(
      /created by PostgreSQL 17, but the installed version is 18/,
    );
  });

  it('reports that the password of the data is missing', async () => {
    const dataDir = await sharedCluster();
    onTestFinished(() => renameSync(`${dataDir}.elsewhere`, `${dataDir}.password`));
    renameSync(`${dataDir}.password`, `${dataDir}.elsewhere`);
    expect(await refusalOf(start(dataDir))).toMatch(/password: ENOENT.*postgres\.password/);
  });

  it('reports why PostgreSQL itself refused', async () => {
    const attempt = start(await sharedCluster(), { settings: { fsync: 'off', no_such_setting: 1 } });
    expect(await refusalOf(attempt)).toBe(
      'PostgreSQL did not start: unrecognized configuration parameter "no_such_setting"',
    );
  });

  it('reports a start that is not ready in time, and leaves nothing running', async () => {
    const dataDir = await sharedCluster();
    // A recovery that takes a minute. Otherwise the server may be ready at the first check.
    const signal = path.join(dataDir, 'recovery.signal');
    onTestFinished(() => rmSync(signal, { force: true }));
    writeFileSync(signal, '');
    const settings = { fsync: 'off', restore_command: 'sleep 60' };
    expect(await refusalOf(start(dataDir, { startTimeoutMs: -1, settings }))).toMatch(/not ready in time/);
    expect(await postgresProcessesOf(dataDir)).toEqual([]);
  });

  it('reports that there are no binaries for this platform', async () => {
    expect(await refusalOf(loadBinaries('plan9-x64'))).toMatch(/for plan9-x64: set DATABASE_URL/);
  });

  it.runIf(isRoot)(
    'reports a user without an entry in /etc/passwd, with the command that adds one',
    async () => {
      const dataDir = newDataDir();
      mkdirSync(dataDir, { recursive: true });
      chownSync(dataDir, 54_321, 54_321);
      expect(await refusalOf(start(dataDir))).toMatch(
        /user id 54321 has no entry in \/etc\/passwd.*\(echo 'esim:x:54321:54321:.*>> \/etc\/passwd\), or set DATABASE_URL$/,
      );
    },
  );

  it.runIf(isRoot)('reports that root has no setpriv', async () => {
    vi.stubEnv('PATH', '/nowhere');
    onTestFinished(() => void vi.unstubAllEnvs());
    expect(await refusalOf(start(newDataDir()))).toMatch(/setpriv is missing: install util-linux/);
  });
});
