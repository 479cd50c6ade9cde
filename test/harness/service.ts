import { startRole, type RunningProcess } from '../../src/apps/role-process.js';
import type { Role } from '../../src/apps/process-resources.js';
import { loadConfig } from '../../src/config/index.js';
import { createLogger } from '../../src/infra/logging.js';
import { createTestDatabase, type TestDatabase } from './database.js';
import { HttpClient } from './http-client.js';
import { ADMIN_TOKEN, testEnvironment } from './settings.js';

export interface TestPartner {
  readonly id: string;
  /** A client with a sandbox key of this partner. */
  readonly sandbox: HttpClient;
  readonly sandboxKey: string;
}

export interface TestService {
  readonly database: TestDatabase;
  readonly process: RunningProcess;
  /** The admin API with a valid token. */
  readonly admin: HttpClient;
  /** The partner API with this key, or without one. */
  partnerApi(key: string | null): HttpClient;
  createPartner(name?: string): Promise<TestPartner>;
  createKey(partnerId: string, mode: 'sandbox' | 'live'): Promise<string>;
  stop(): Promise<void>;
}

export interface TestServiceOptions {
  readonly env?: Record<string, string>;
  readonly role?: Role;
  /** Another service's database, which this one then does not drop. */
  readonly database?: TestDatabase;
  /** Receives every log line of all levels. Without it, nothing is logged. */
  readonly logLines?: string[];
}

/** Starts the service in this process with a new database, on free ports. */
export async function startTestService(options: TestServiceOptions = {}): Promise<TestService> {
  const database = options.database ?? (await createTestDatabase());
  const { role = 'all', logLines } = options;
  const config = loadConfig(testEnvironment(database.url, options.env));
  const running = await (logLines === undefined
    ? startRole(role, config)
    : startRole(role, config, createLogger('trace', role, { write: (line) => void logLines.push(line) })));
  const admin = new HttpClient(running.admin?.url ?? '', ADMIN_TOKEN);
  const partnerApi = (key: string | null): HttpClient => new HttpClient(running.api?.url ?? '', key);
  const createKey = async (partnerId: string, mode: 'sandbox' | 'live'): Promise<string> =>
    (await expectCreated(admin, `/internal/v1/partners/${partnerId}/api-keys`, { mode })).key as string;
  return {
    database,
    process: running,
    admin,
    partnerApi,
    createKey,
    createPartner: async (name = 'Test Travel') => {
      const { id } = (await expectCreated(admin, '/internal/v1/partners', { name })) as { id: string };
      const sandboxKey = await createKey(id, 'sandbox');
      return { id, sandboxKey, sandbox: partnerApi(sandboxKey) };
    },
    stop: async () => {
      await running.stop();
      if (!options.database) await database.drop();
    },
  };
}

async function expectCreated(
  admin: HttpClient,
  path: string,
  body: unknown,
): Promise<Record<string, unknown>> {
  const answer = await admin.post(path, body);
  if (answer.status !== 201) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
  return answer.body.data as Record<string, unknown>;
}
