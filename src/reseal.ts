import { ConfigError, readResealSettings } from './config/index.js';
import { describeKeyFault, findKeyFaults, SecretBox, SecretResealer } from './infra/crypto/index.js';
import { assertSession, createDatabaseClient, ServerContact } from './infra/database/index.js';

const HELP = `npm run reseal

Seals every stored secret (install data, signing secrets) with the newest key of SECRETS_KEYS. To change the key:
  1. Put the new key first in SECRETS_KEYS of every process, and restart every process.
  2. Repeat npm run reseal until it reports 0 left.
  3. Remove the old keys from SECRETS_KEYS.
The service can keep running. Needs DATABASE_URL and SECRETS_KEYS.

Exit code: 0 every secret has the newest key, 1 some secrets still have an older key, 2 it could not run, for example
because a key in SECRETS_KEYS is not the key that sealed secrets under its id.`;

const CONNECT_TIMEOUT_MS = 10_000;
/** The last statement counts the rows of whole tables. */
const STATEMENT_TIMEOUT_MS = 600_000;
/** Timeout of the connection that only checks whether the server is alive. */
const HEARTBEAT_TIMEOUT_MS = 10_000;

/** Prints the result per column, and returns the exit code. */
async function reseal(env: NodeJS.ProcessEnv): Promise<number> {
  const { databaseUrl, secretKeys } = readResealSettings(env);
  const settings = {
    url: databaseUrl,
    applicationName: 'partner-esim-reseal',
    connectTimeoutMs: CONNECT_TIMEOUT_MS,
    contact: new ServerContact(),
  };
  const client = createDatabaseClient({ ...settings, statementTimeoutMs: STATEMENT_TIMEOUT_MS });
  // Detects a lost server during a long statement: this connection then closes the other one.
  const heartbeat = createDatabaseClient({
    ...settings,
    statementTimeoutMs: HEARTBEAT_TIMEOUT_MS,
    hasHeartbeat: true,
  });
  try {
    await Promise.all([client.connect(), heartbeat.connect()]);
    await assertSession(client);
    const progress = (name: string, rows: number): void => console.error(`${name}: ${rows} resealed...`);
    const query = async (text: string): Promise<unknown[]> => (await client.query<object>(text)).rows;
    const faults = await findKeyFaults(query, secretKeys);
    const wrong = faults.filter(({ kind }) => kind === 'wrong');
    // Values sealed under the newest id are not read below. If its key had different bytes, the report would wrongly
    // show nothing left.
    if (wrong.length > 0) throw new Error(wrong.map(describeKeyFault).join(' '));
    for (const fault of faults) console.error(describeKeyFault(fault));
    const report = await new SecretResealer(client, new SecretBox({ secretKeys }), progress).run();
    for (const { name, resealed, unreadable, left } of report)
      console.log(`${name}: ${resealed} resealed, ${unreadable} could not be opened, ${left} left`);
    return report.some(({ left }) => left > 0) ? 1 : 0;
  } finally {
    await Promise.all([client.end(), heartbeat.end()]);
  }
}

if (process.argv.includes('--help')) {
  console.log(HELP);
} else {
  process.exitCode = await reseal(process.env).catch((error: unknown) => {
    console.error(
      error instanceof ConfigError ? error.message : `reseal failed: ${(error as Error).message}`,
    );
    return 2;
  });
}
