import { randomBytes } from 'node:crypto';
import { expect, inject, it } from 'vitest';
import { migrateDatabase } from '../../../src/apps/migration.js';
import { loadConfig } from '../../../src/config/index.js';
import { startRole } from '../../../src/apps/role-process.js';
import { dropDatabase, onDatabase } from '../../harness/database.js';
import { testEnvironment } from '../../harness/index.js';

it.each(['SQL_ASCII', 'LATIN1'])(
  'a database encoded in %s is neither migrated nor served',
  async (encoding) => {
    const url = new URL(inject('postgresUrl'));
    const name = `t_${randomBytes(6).toString('hex')}`;
    await onDatabase(
      url.href,
      `CREATE DATABASE ${name} TEMPLATE template0 ENCODING '${encoding}' LOCALE_PROVIDER libc LOCALE 'C'`,
    );
    url.pathname = `/${name}`;
    try {
      const reason = `the database is encoded in ${encoding} and the service needs UTF8`;
      await expect(migrateDatabase(url.href)).rejects.toThrow(reason);
      await expect(startRole('api', loadConfig(testEnvironment(url.href)))).rejects.toThrow(reason);
    } finally {
      await dropDatabase(url.href);
    }
  },
);
