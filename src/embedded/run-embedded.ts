/**
 * Runs everything in one process for `npm start` without `DATABASE_URL`, on a machine with no servers installed (D2).
 * Owns no table: it uses the service's own admin API, as the portal does.
 * Called by `main.ts` alone; tests and the bench use `postgres/` for their own servers.
 * Flow: settings, PostgreSQL, simulated wholesaler, migration, all roles, demo partner, banner, `ready`.
 */
import type { Logger } from 'pino';
import { migrateDatabase } from '../apps/migration.js';
import { assertPortsAreFree } from '../apps/free-ports.js';
import { describeStartError, onStopSignal, type RunningProcess, startRole } from '../apps/role-process.js';
import { ConfigError, loadConfig, type AppConfig } from '../config/index.js';
import { createDatabaseClient } from '../infra/database/index.js';
import { LogDestination } from '../infra/log-destination.js';
import { createLogger } from '../infra/logging.js';
import { type BannerFacts, renderBanner, shellWord } from './banner.js';
import {
  AdminClient,
  connectReceiver,
  demoKey,
  disconnectReceiver,
  findOrCreatePartner,
  keepDemoKeys,
  makePortalLink,
  prepareLiveDemo,
  readDemoWebhook,
  teamLines,
} from './demo.js';
import { seedOrderInReview } from './demo-review.js';
import { type DataDirectory, openDataDirectory, withDevelopmentDefaults } from './development-settings.js';
import { type EmbeddedPostgres, startEmbeddedPostgres } from './postgres/index.js';
import { markRunning } from './running-mark.js';
import { startWebhookReceiver, startWholesalerSimulator, type WebhookReceiver } from './demo-counterparts.js';

const DATABASE = 'esim';
/**
 * Time limit for stopping PostgreSQL after the apps have stopped. If the process exits first, PostgreSQL keeps running;
 * the user can press Ctrl-C again.
 */
const POSTGRES_STOP_MS = 10_000;

/** `npm start` on a fresh machine: PostgreSQL, every role, a demo partner and a receiver in one process. */
export async function runEmbedded(): Promise<void> {
  const stops: (() => Promise<void>)[] = [];
  let stopping: Promise<void> | undefined;
  // A failed start and Ctrl-C may both call this. The second call waits for the first, and nothing is stopped twice.
  const stopAll = (): Promise<void> => (stopping ??= stopInReverse(stops));
  try {
    await start(stops, stopAll);
  } catch (error) {
    console.error(describeStartError(error));
    await stopAll().catch(() => undefined);
    process.exit(1);
  }
}

async function stopInReverse(stops: (() => Promise<void>)[]): Promise<void> {
  for (let stop = stops.pop(); stop; stop = stops.pop()) await stop();
}

async function start(stops: (() => Promise<void>)[], stopAll: () => Promise<void>): Promise<void> {
  if (process.env['NODE_ENV'] === 'production') {
    throw new ConfigError([
      'DATABASE_URL is required with NODE_ENV=production: the embedded PostgreSQL is for development only',
    ]);
  }
  const directory = openDataDirectory(process.env);
  // Validate all other variables first: a wrong one must not cost a start of PostgreSQL.
  const checked = withDevelopmentDefaults(process.env, directory, 'postgres://embedded');
  const settings = loadConfig(checked);
  const adminToken = firstToken(checked['ADMIN_TOKENS']!);
  stops.push(await markRunning(directory.runningFile, checked['API_URL']!));
  await assertPortsAreFree('all', settings);
  tell(`PostgreSQL in ${shellWord(directory.postgres)}`);
  const postgres = await startEmbeddedPostgres({ dataDir: directory.postgres });
  stops.push(() => postgres.stop());
  const databaseUrl = await createDatabase(postgres);
  const wholesaler = await startWholesalerSimulator(process.env, directory.wholesalerFile);
  if (wholesaler) stops.push(() => wholesaler.close());
  const env = withDevelopmentDefaults(process.env, directory, databaseUrl, wholesaler?.env);
  const config = loadConfig(env);
  onStopSignal(config.shutdownTimeoutMs + POSTGRES_STOP_MS, async () => {
    console.log('stopping');
    await stopAll();
    console.log('stopped');
  });
  endWithPostgres(postgres);
  tell('migrations');
  await migrateDatabase(databaseUrl);

  const toTerminal = process.stdout.isTTY;
  const receiver = await startReceiver(config, directory);
  if (receiver) stops.push(() => receiver.close());
  const logger = chooseLogger(config, directory, toTerminal);
  tell('API, admin API, portal, install page and worker');
  const running = await startRole('all', config, logger, 'when told');
  stops.push(() => running.stop());
  tell('the demo partner and the catalogs');
  const demo = await prepare(running, receiver, directory, adminToken, wholesaler !== null, databaseUrl);
  running.becomeReady();
  console.log(
    renderBanner({
      apiUrl: running.api!.url,
      installUrl: config.install.url ?? running.install!.url,
      receiverUrl: receiver?.url ?? null,
      demoFile: directory.demoFile,
      logFile: toTerminal ? directory.logFile : null,
      ...demo,
      // Counted from the start of the process, because the user also waited for the build.
      startedInMs: performance.now(),
    }),
  );
  console.log('ready');
}

/** Prints the current step and the time so far: a first start takes several seconds on a small machine. */
function tell(step: string): void {
  console.log(`starting, ${(performance.now() / 1_000).toFixed(1)} s: ${step}`);
}

/** Null when private targets are refused (D35), because the demo's receiver listens on loopback. */
async function startReceiver(config: AppConfig, directory: DataDirectory): Promise<WebhookReceiver | null> {
  if (!config.webhooks.allowPrivateTargets) return null;
  return startWebhookReceiver(readDemoWebhook(directory.webhookSecretFile), (line) => console.log(line));
}

async function prepare(
  running: RunningProcess,
  receiver: WebhookReceiver | null,
  directory: DataDirectory,
  adminToken: string,
  withLive: boolean,
  databaseUrl: string,
): Promise<Pick<BannerFacts, 'apiKey' | 'live' | 'portalLink'>> {
  const admin = new AdminClient(running.admin!.url, adminToken);
  const partnerId = await findOrCreatePartner(admin);
  const place = {
    admin,
    partnerId,
    apiUrl: running.api!.url,
    file: directory.demoFile,
    teamLines: teamLines(running.admin!.url, adminToken, partnerId),
  };
  const apiKey = await demoKey(place, 'sandbox');
  const file = directory.webhookSecretFile;
  if (receiver) receiver.setSecret(await connectReceiver(admin, partnerId, receiver.url, file));
  else await disconnectReceiver(admin, partnerId, file);
  const live = withLive ? await prepareLiveDemo(place) : null;
  keepDemoKeys(place);
  await seedOrderInReview(place.apiUrl, apiKey, databaseUrl);
  // Created last, because its code expires after five minutes.
  return { apiKey, live, portalLink: await makePortalLink(admin, partnerId) };
}

/** @throws ConfigError when only token digests are configured */
function firstToken(adminTokens: string): string {
  const tokens = adminTokens.split(',').map((named) => named.slice(named.indexOf(':') + 1).trim());
  const token = tokens.find((each) => !each.startsWith('sha256='));
  if (token === undefined)
    throw new ConfigError([
      'ADMIN_TOKENS has only digests, but npm start needs a token to call the admin API. Add a plain token.',
    ]);
  return token;
}

async function createDatabase(postgres: EmbeddedPostgres): Promise<string> {
  const settings = { url: postgres.url(), applicationName: 'partner-esim-start', connectTimeoutMs: 10_000 };
  const client = createDatabaseClient(settings);
  await client.connect();
  try {
    const { rowCount } = await client.query('SELECT 1 FROM pg_database WHERE datname = $1', [DATABASE]);
    if (rowCount === 0) await client.query(`CREATE DATABASE ${DATABASE}`);
  } finally {
    await client.end();
  }
  return postgres.url(DATABASE);
}

/** Ends the process with a message when its PostgreSQL has ended. */
function endWithPostgres(postgres: EmbeddedPostgres): void {
  void postgres.crashed.then((reason) => {
    console.error(`the embedded PostgreSQL stopped: ${reason}. Your data is kept; run npm start again`);
    process.exit(1);
  });
}

/** At a terminal, banner and webhooks are printed and the JSON lines go to a file. A pipe gets everything. */
function chooseLogger(config: AppConfig, directory: DataDirectory, toTerminal: boolean): Logger {
  if (!toTerminal) return createLogger(config.logLevel, 'all');
  return createLogger(config.logLevel, 'all', new LogDestination({ dest: directory.logFile }));
}
