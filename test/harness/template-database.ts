import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { Client } from 'pg';
import { asServiceRole, createServiceRole, createUnusualDatabase, DECOYS } from './unusual-database.ts';

export const TEMPLATE_DATABASE = 'template_esim';

/** A server that was just started, with its superuser. */
export interface NewServer {
  readonly dataDir: string;
  /** @param database `postgres` when omitted */
  readonly url: (database?: string) => string;
  /** Runs the migrations on the database of a URL. */
  readonly migrate: (databaseUrl: string) => Promise<void>;
}

/** Makes the role of the services under test, and the database that those of the tests are cloned from. */
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

/** Seven thousand connections without a proof of the password: that of SCRAM is meant to take its time. */
async function trustEverybody(client: Client, file: string): Promise<void> {
  writeFileSync(file, 'local all all trust\nhost all all 127.0.0.1/32 trust\n');
  await client.query('SELECT pg_reload_conf()');
}
