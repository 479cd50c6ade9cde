import type { EnvReader } from './env-reader.js';

/** Where the database is, for transactions and for what needs a session. */
interface DatabaseUrls {
  readonly databaseUrl: string;
  readonly databaseDirectUrl: string;
  readonly databaseIsPooled: boolean;
}

/** A second address says that the first one leads to a pooler: only then do the two differ. */
export function readDatabaseUrls(read: EnvReader): DatabaseUrls {
  const databaseUrl = readDatabaseUrl(read);
  const direct = read.url('DATABASE_DIRECT_URL', ['postgres:', 'postgresql:']);
  return {
    databaseUrl,
    databaseDirectUrl: direct ?? databaseUrl,
    databaseIsPooled: direct !== undefined && direct !== databaseUrl,
  };
}

/** Required but for the embedded start, which sets it. */
export function readDatabaseUrl(read: EnvReader): string {
  const url = read.url('DATABASE_URL', ['postgres:', 'postgresql:']);
  if (url === undefined && read.text('DATABASE_URL') === undefined) {
    read.problems.push('DATABASE_URL is required (only `npm start` without it runs an embedded PostgreSQL)');
  }
  return url ?? '';
}
