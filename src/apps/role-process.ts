import type { Logger } from 'pino';
import { endsWithin } from '../common/time-limit.js';
import { type AppConfig, ConfigError, loadConfig } from '../config/index.js';
import { startAdmin } from './admin.app.js';
import { startApi } from './api.app.js';
import { assertPortsAreFree } from './free-ports.js';
import type { RunningApp, RunningHttpApp } from './http-app.js';
import { startInstall } from './install.app.js';
import { OpsProbe, startOps } from './ops.js';
import { startPortal } from './portal.app.js';
import { openProcess, type ProcessResources, type Role } from './process-resources.js';
import { startWorker } from './worker.app.js';

/** Shares of the shutdown timeout during which running calls may finish before they are cut. */
const CALLS_SHARE = 0.75;
const WATCHING_SHARE = 0.1;

/** A running process and its apps. */
export interface RunningProcess {
  readonly resources: ProcessResources;
  readonly api: RunningHttpApp | null;
  readonly admin: RunningHttpApp | null;
  readonly portal: RunningHttpApp | null;
  readonly install: RunningHttpApp | null;
  /** URL for provider callbacks; null if this process does not accept them. */
  readonly callbacksUrl: string | null;
  /** Makes `/readyz` return 200; only needed after `startRole(..., 'when told')`. */
  becomeReady(): void;
  /** Closes API, portal, install page and worker concurrently, then admin and ops, then the connections. Safe to call twice. */
  stop(): Promise<void>;
}

/**
 * Starts one role, or all of them in one process (D3), and resolves when it is up.
 * @param ready `when told`: the caller must prepare something before `/readyz` may return 200
 */
export async function startRole(
  role: Role,
  config: AppConfig,
  logger?: Logger,
  ready: 'at once' | 'when told' = 'at once',
): Promise<RunningProcess> {
  const resources = await openProcess(config, role, logger);
  const probe = new OpsProbe(resources);
  const working: RunningApp[] = [];
  /** Admin and ops, which respond until the end. */
  const watching: RunningApp[] = [];
  const begin = async <T extends RunningApp>(
    wanted: boolean,
    started: RunningApp[],
    start: () => Promise<T>,
  ): Promise<T | null> => {
    if (!wanted) return null;
    const app = await start();
    started.push(app);
    return app;
  };
  let stopping: Promise<void> | undefined;
  const stop = (): Promise<void> => (stopping ??= stopAll());
  const stopAll = async (): Promise<void> => {
    probe.setReady(false);
    const { shutdownTimeoutMs } = config;
    // Close everything that accepts work concurrently: callers that do not read their responses must not keep the
    // workers from draining. A queue whose server has just come back may never finish closing; nothing is lost then
    // (D1).
    const closed = Promise.all(working.map((app) => app.close(shutdownTimeoutMs * CALLS_SHARE)));
    if (!(await endsWithin(closed, shutdownTimeoutMs)))
      resources.logger.warn({ event: 'process.stop_cut' }, 'app did not close in time');
    const share = working.length > 0 ? WATCHING_SHARE : CALLS_SHARE;
    await Promise.all(watching.map((app) => app.close(shutdownTimeoutMs * share)));
    await resources.close();
  };
  const becomeReady = (): void => probe.setReady(stopping === undefined);
  try {
    const all = role === 'all';
    const admin = await begin(all || role === 'admin', watching, () =>
      startAdmin(resources.of('admin'), all ? probe : null),
    );
    await begin(!all, watching, () => startOps(resources, probe));
    const worker = await begin(all || role === 'worker', working, () => startWorker(resources.of('worker')));
    const api = await begin(all || role === 'api', working, () => startApi(resources.of('api')));
    const portal = await begin(all || role === 'portal', working, () => startPortal(resources.of('portal')));
    const install = await begin(all || role === 'install', working, () =>
      startInstall(resources.of('install')),
    );
    if (ready === 'at once') becomeReady();
    return {
      resources,
      api,
      admin,
      portal,
      install,
      callbacksUrl: worker?.callbacksUrl ?? null,
      becomeReady,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

/**
 * Runs a role as its own process. Prints `ready` on stdout and stops on SIGTERM or SIGINT. If the start fails, prints
 * one clear line and exits with code 1.
 */
export async function runRole(role: Role): Promise<void> {
  try {
    const config = loadConfig(process.env, role);
    await assertPortsAreFree(role, config);
    const running = await startRole(role, config);
    onStopSignal(config.shutdownTimeoutMs, () => running.stop());
    console.log('ready');
  } catch (error) {
    console.error(describeStartError(error));
    process.exit(1);
  }
}

/** One line for an error that a person can fix, e.g. a taken port. */
export function describeStartError(error: unknown): string {
  if (error instanceof ConfigError) return error.message;
  const { code, port, address, message } = error as NodeJS.ErrnoException & {
    port?: number;
    address?: string;
  };
  if (code === 'EADDRINUSE') return `cannot start: port ${port} on ${address} is already in use`;
  if (code === 'EACCES') return `cannot start: no permission (${message})`;
  return `cannot start: ${message}`;
}

/** Together with the apps' deadline, this stays within the promised 5 s. */
const GRACE_MS = 800;

/**
 * Stops once, cleanly, on SIGINT or SIGTERM; a second signal exits at once. One handler for the whole process, because
 * Nest's own shutdown hooks would close several apps independently and send the signal again.
 */
export function onStopSignal(deadlineMs: number, stop: () => Promise<void>): void {
  let stopping = false;
  const handle = (): void => {
    if (stopping) process.exit(1);
    stopping = true;
    // If work does not end in time, another worker takes it over when its lease lapses.
    setTimeout(() => process.exit(1), deadlineMs + GRACE_MS).unref();
    stop().then(
      () => process.exit(0),
      (error: unknown) => {
        console.error(`stop failed: ${(error as Error).message}`);
        process.exit(1);
      },
    );
  };
  process.on('SIGINT', handle);
  process.on('SIGTERM', handle);
}
