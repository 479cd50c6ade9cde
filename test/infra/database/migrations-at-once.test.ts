import { randomBytes } from 'node:crypto';
import { Client } from 'pg';
import { expect, inject, it } from 'vitest';
import { migrateDatabase } from '../../../src/apps/migration.js';

it('two migrations of an empty database at once both end, one of them with everything done', async () => {
  const server = new Client({ connectionString: inject('postgresUrl') });
  await server.connect();
  const name = `t_${randomBytes(6).toString('hex')}`;
  try {
    await server.query(`CREATE DATABASE ${name}`);
    const url = new URL(inject('postgresUrl'));
    url.pathname = `/${name}`;
    // One that waited in a statement would be waited for by CREATE INDEX CONCURRENTLY, for ever.
    const reports = await Promise.all([migrateDatabase(url.href), migrateDatabase(url.href)]);
    const [none, all] = reports.map(({ migrations }) => migrations.length).sort((a, b) => a - b);
    expect([none, all! > 20]).toEqual([0, true]);
  } finally {
    await server.query(`DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    await server.end();
  }
});
