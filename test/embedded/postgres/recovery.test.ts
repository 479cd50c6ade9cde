import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it, onTestFinished } from 'vitest';
import { openCluster } from '../../../src/embedded/postgres/cluster.js';
import { choosePort } from '../../../src/embedded/postgres/port.js';
import { isRunning, postgresProcessesOf } from '../../../src/embedded/postgres/postgres-process.js';
import {
  Application,
  isLinux,
  keptRows,
  LateSetpriv,
  lockFile,
  sharedCluster,
  newDataDir,
  postmasterPid,
  runs,
  sql,
  start,
  strangerOwning,
  until,
} from './workbench.js';

const ANSWER = [{ answer: 42 }];
const MAX_KILLS = 10;

if (!isLinux) console.warn('some tests are skipped: the signal of a dead parent exists on Linux only');

describe('embedded PostgreSQL: recovery by the next start (D2)', () => {
  it('recovers after a SIGKILL of the application, which no server outlives', async () => {
    const dataDir = await sharedCluster();
    const application = Application.launch(dataDir);
    await application.ready();
    await application.kill();
    if (isLinux) {
      await until(async () => (await postgresProcessesOf(dataDir)).length === 0);
      expect(existsSync(lockFile(dataDir))).toBe(false);
    }
    expect(await keptRows((await start(dataDir)).url())).toEqual(ANSWER);
  });

  it.runIf(isLinux)(
    'leaves no server behind that had not yet requested its parent-death signal',
    async () => {
      const dataDir = await sharedCluster();
      const setpriv = new LateSetpriv();
      const application = Application.launch(dataDir, setpriv.env);
      const pid = await setpriv.begins();
      await application.kill();
      setpriv.goOn();
      // Otherwise the server would start and keep running.
      const serves = (): boolean =>
        existsSync(lockFile(dataDir)) && readFileSync(lockFile(dataDir), 'utf8').includes('ready');
      await until(async () => !(await isRunning(pid)) || serves());
      expect(await isRunning(pid), 'a server runs on').toBe(false);
    },
  );

  it('recovers after a SIGKILL of the application and the server', async () => {
    const dataDir = await sharedCluster();
    const application = Application.launch(dataDir);
    await application.ready();
    process.kill(postmasterPid(dataDir), 'SIGKILL');
    await application.kill();
    expect(await keptRows((await start(dataDir)).url())).toEqual(ANSWER);
  });

  it.runIf(isLinux)(
    'recovers after a SIGKILL of one PostgreSQL process and of the application, which hangs the server',
    async () => {
      const dataDir = await sharedCluster();
      const application = Application.launch(dataDir);
      await application.ready();
      const postmaster = postmasterPid(dataDir);
      const [child] = (await postgresProcessesOf(dataDir)).filter((pid) => pid !== postmaster);
      expect(child).toBeGreaterThan(0);
      process.kill(child!, 'SIGKILL');
      // The application's death stops the server while the server is restarting its processes.
      await sleep(15);
      await application.kill();
      expect(await keptRows((await start(dataDir)).url())).toEqual(ANSWER);
    },
  );

  it.runIf(isLinux)('recovers while a session of the killed server is still computing', async () => {
    const dataDir = await sharedCluster();
    const killed = await start(dataDir);
    const session = sql(killed.url(), 'DO $$ BEGIN LOOP END LOOP; END $$').catch(() => 'cut');
    const busy = `SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DO %' AND state = 'active'`;
    await until(async () => (await sql(killed.url(), busy)).length > 0);
    process.kill(postmasterPid(dataDir), 'SIGKILL');
    await killed.crashed;
    expect(await keptRows((await start(dataDir)).url())).toEqual(ANSWER);
    expect(await session).toBe('cut');
  });

  it('adopts a server that lives without its application, and stops it', async () => {
    const dataDir = await sharedCluster();
    const pid = await orphanServer(dataDir);

    const adopted = await start(dataDir);
    expect(postmasterPid(dataDir)).toBe(pid);
    expect(await keptRows(adopted.url())).toEqual(ANSWER);
    await adopted.stop();
    await until(() => !runs(pid));
    expect(existsSync(lockFile(dataDir))).toBe(false);
  });

  it('reports the end of an adopted server', async () => {
    const dataDir = await sharedCluster();
    const pid = await orphanServer(dataDir);
    const adopted = await start(dataDir);
    process.kill(pid, 'SIGINT');
    expect(await adopted.crashed).toMatch(/ended/);
  });

  it('recovers despite a stale lock that names an unrelated live process', async () => {
    const dataDir = await sharedCluster();
    const lock = await crashLeavingLock(dataDir);
    const stranger = await strangerOwning(dataDir);
    writeFileSync(lockFile(dataDir), lock.replace(/^\d+/, String(stranger)));
    expect(await keptRows((await start(dataDir)).url())).toEqual(ANSWER);
    expect(runs(stranger)).toBe(true);
  });

  it('recovers despite a stale lock that names the live server of another cluster', async () => {
    const [dataDir, otherDir] = [await sharedCluster(), newDataDir()];
    const lock = await crashLeavingLock(dataDir);
    const other = await start(otherDir);
    writeFileSync(lockFile(dataDir), lock.replace(/^\d+/, String(postmasterPid(otherDir))));
    expect(await keptRows((await start(dataDir)).url())).toEqual(ANSWER);
    expect(await sql(other.url(), 'SELECT 1 AS ok')).toEqual([{ ok: 1 }]);
  });

  it('recovers despite a lock file that a power failure has truncated', async () => {
    const dataDir = await sharedCluster();
    await crashLeavingLock(dataDir);
    writeFileSync(lockFile(dataDir), '');
    expect(await keptRows((await start(dataDir)).url())).toEqual(ANSWER);
  });

  it('recovers after a SIGKILL in the middle of initdb', async () => {
    const dataDir = await killedInInitdb();
    const first = await start(dataDir);
    expect(await sql(first.url(), 'SELECT 1 AS ok')).toEqual([{ ok: 1 }]);
    await first.stop();
    await start(dataDir);
    expect(draftsOf(dataDir)).toEqual([]);
  });

  it('recreates a data directory that initdb did not finish, and deletes nothing', async () => {
    const dataDir = newDataDir();
    mkdirSync(path.join(dataDir, 'base'), { recursive: true });
    writeFileSync(path.join(dataDir, 'PG_VERSION'), '18\n');
    expect(await sql((await start(dataDir)).url(), 'SELECT 1 AS ok')).toEqual([{ ok: 1 }]);
    expect(namesBeside(dataDir).filter((name) => name.startsWith('postgres.incomplete-'))).toHaveLength(1);
  });
});

/** Kills a server and returns the lock file that it leaves. */
async function crashLeavingLock(dataDir: string): Promise<string> {
  const server = await start(dataDir);
  const lock = readFileSync(lockFile(dataDir), 'utf8');
  process.kill(postmasterPid(dataDir), 'SIGKILL');
  await server.crashed;
  return lock;
}

/** Starts a server of this cluster without a live supervisor. */
async function orphanServer(dataDir: string): Promise<number> {
  const { postgres, prefix } = await openCluster(dataDir, false);
  const port = await choosePort(dataDir, undefined);
  // Without the parent-death signal that would tie it to this process.
  const words = prefix.map((word) => (word === 'INT' ? 'clear' : word));
  const settings = ['-c', 'listen_addresses=127.0.0.1', '-c', 'unix_socket_directories='];
  const [file = '', ...args] = [...words, postgres, '-D', dataDir, '-p', String(port), ...settings];
  const server = spawn(file, args, { stdio: 'ignore', detached: true });
  const ended = once(server, 'exit');
  onTestFinished(async () => {
    server.kill('SIGKILL');
    await ended;
  });
  await until(() => existsSync(lockFile(dataDir)) && /ready/.test(readFileSync(lockFile(dataDir), 'utf8')));
  return server.pid ?? 0;
}

/** Returns a data directory with only a draft, by killing applications until one dies during initdb. */
async function killedInInitdb(): Promise<string> {
  for (let nth = 0; nth < MAX_KILLS; nth++) {
    const dataDir = newDataDir();
    const application = Application.launch(dataDir);
    const hasBegun = (draft: string): boolean =>
      existsSync(path.join(path.dirname(dataDir), draft, 'PG_VERSION'));
    await until(() => existsSync(dataDir) || draftsOf(dataDir).some(hasBegun));
    await application.kill();
    // On a busy machine the kill may come too late, when initdb is complete.
    if (!existsSync(dataDir)) return dataDir;
  }
  throw new Error(`${MAX_KILLS} kills have all left a data directory`);
}

function draftsOf(dataDir: string): string[] {
  return namesBeside(dataDir).filter((name) => name.includes('.draft-'));
}

function namesBeside(dataDir: string): string[] {
  return existsSync(path.dirname(dataDir)) ? readdirSync(path.dirname(dataDir)) : [];
}
