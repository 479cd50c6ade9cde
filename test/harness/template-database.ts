import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { asServiceRole, createServiceRole, createUnusualDatabase, DECOYS } from './unusual-database.ts';

export const TEMPLATE_DATABASE = 'template_esim';

/** A newly started server and its superuser. */
export interface NewServer {
  readonly dataDir: string;
  /** @param database `postgres` when omitted */
  readonly url: (database?: string) => string;
  /** Runs the migrations on a database. */
  readonly migrate: (databaseUrl: string) => Promise<void>;
}

/** Creates the role of the services under test, and the template database for the tests. */
export async function createTemplate({ dataDir, url, migrate }: NewServer): Promise<void> {
  const client = await connect(url());
  await createUnusualDatabase(client, TEMPLATE_DATABASE);
  await createServiceRole(client);
  await trustEverybody(client, path.join(dataDir, 'pg_hba.conf'));
  await client.end();
  const template = await connect(url(TEMPLATE_DATABASE));
  await template.query(DECOYS);
  await template.end();
  await migrate(asServiceRole(url(TEMPLATE_DATABASE)));
}

async function connect(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  await client.connect();
  return client;
}

/** Disables password checks, because SCRAM is deliberately slow and the tests open seven thousand connections. */
async function trustEverybody(client: Client, file: string): Promise<void> {
  writeFileSync(file, 'local all all trust\nhost all all 127.0.0.1/32 trust\n');
  await client.query('SELECT pg_reload_conf()');
}
