import { createHash } from 'node:crypto';
import { inject } from 'vitest';
import { asServiceRole } from './unusual-database.js';

/**
 * The backend that `TEST_BACKING` (`redis` or `pgbouncer`) puts under all services of a test run by default. Separate
 * from the code that starts it, which test processes need not load.
 */
export type Backing =
  { readonly kind: 'redis'; readonly url: string } | { readonly kind: 'pgbouncer'; readonly url: string };

/** Database numbers of one Redis server. Only services on the same PostgreSQL database share a number. */
export const REDIS_DATABASES = 65_536;

declare module 'vitest' {
  interface ProvidedContext {
    backing: Backing | null;
  }
}

/** Null in a normal run. */
export function backingKind(): Backing['kind'] | null {
  return inject('backing')?.kind ?? null;
}

/** Settings that connect a service on this database to the backend. Empty in a normal run. */
export function backingSettings(databaseUrl: string): Record<string, string> {
  const backing = inject('backing');
  if (backing === null) return {};
  const { pathname } = new URL(databaseUrl);
  if (backing.kind === 'redis') return { REDIS_URL: `${backing.url}/${redisDatabaseOf(pathname)}` };
  const url = new URL(backing.url);
  url.pathname = pathname;
  return { DATABASE_URL: asServiceRole(url.href), DATABASE_DIRECT_URL: asServiceRole(databaseUrl) };
}

function redisDatabaseOf(name: string): number {
  return createHash('sha256').update(name).digest().readUInt32BE(0) % REDIS_DATABASES;
}
