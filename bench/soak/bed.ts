import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Cleanups } from '../cleanups.js';
import { DatabaseServer } from '../service/database-server.js';
import { createPartners, createEndpoint } from '../service/partners.js';
import { type ServiceOptions, ServiceProcess } from '../service/service-process.js';
import { WorkedQueue } from '../service/worked-queue.js';
import { Caller } from './caller.js';
import { LOCK_WAIT_SETTINGS, LockWaitLog } from './lock-waits.js';
import type { SoakProcesses } from './sampler.js';

const DATABASE = 'bench_soak';
const PARTNERS = 30;
/** The shortest that the settings allow. */
const RETENTION = {
  CALL_LOG_RETENTION_DAYS: '1',
  EVENT_RETENTION_DAYS: '1',
  SANDBOX_EVENT_RETENTION_DAYS: '1',
  WEBHOOK_ATTEMPT_RETENTION_DAYS: '1',
  SANDBOX_ORDER_RETENTION_DAYS: '1',
  ALERT_RETENTION_DAYS: '1',
};

/** The service with its roles apart, partners with an endpoint each, a receiver and those who call. */
export class SoakBed {
  private constructor(
    readonly server: DatabaseServer,
    readonly database: string,
    readonly processes: SoakProcesses,
    readonly caller: Caller,
    readonly lockWaits: LockWaitLog,
    private readonly queue: WorkedQueue,
  ) {}

  static async open(cleanups: Cleanups): Promise<SoakBed> {
    const server = cleanups.stopping(await DatabaseServer.start(LOCK_WAIT_SETTINGS));
    const databaseUrl = await server.createDatabase(DATABASE);
    const partners = await createPartners(server, DATABASE, PARTNERS);
    const env = {
      ...RETENTION,
      WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
      LISTS_PER_PARTNER: '100',
      SECRETS_KEYS: `bench:${randomBytes(32).toString('base64')}`,
    };
    const start = async (role: ServiceOptions['role']): Promise<ServiceProcess> =>
      cleanups.stopping(await ServiceProcess.start({ role, databaseUrl, env }));
    const processes = { api: await start('api'), admin: await start('admin'), worker: await start('worker') };
    const receiver = await startReceiver(cleanups);
    for (const { partnerId } of partners) await createEndpoint(processes.admin, partnerId, receiver);
    const { adminUrl, adminToken } = processes.admin;
    const caller = cleanups.stopping(
      await Caller.start({ apiUrl: processes.api.apiUrl, adminUrl, adminToken, partners }),
    );
    const lockWaits = new LockWaitLog(server.statementLog);
    return new SoakBed(server, DATABASE, processes, caller, lockWaits, new WorkedQueue(server, DATABASE));
  }

  /**
   * Calls a second that the service can take for ever: what 32 callers manage, over the time until the worker has done
   * its part too.
   */
  async calibrate(durationMs: number): Promise<number> {
    await this.caller.press(32, durationMs / 4);
    await this.untilDone();
    const startedAtMs = performance.now();
    const { calls, seconds, errors } = await this.caller.press(32, durationMs);
    await this.untilDone();
    const inAllSeconds = (performance.now() - startedAtMs) / 1_000;
    process.stderr.write(
      `soak: ${calls} calls in ${seconds.toFixed(1)} s, the worker was done after ${inAllSeconds.toFixed(1)} s, errors ${JSON.stringify(errors)}\n`,
    );
    return calls / inAllSeconds;
  }

  private async untilDone(): Promise<void> {
    await this.queue.drain();
    const owed = `SELECT 1 FROM webhook_deliveries WHERE status = 'pending' LIMIT 1`;
    while ((await this.server.query(owed, [], this.database)).length > 0) await sleep(100);
  }
}

/** Takes every webhook and answers at once. */
async function startReceiver(cleanups: Cleanups): Promise<string> {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200).end();
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  cleanups.stopping({
    stop: () => {
      server.close();
      server.closeAllConnections();
      return Promise.resolve();
    },
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
}
