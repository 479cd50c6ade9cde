import { createHash } from 'node:crypto';
import { inject } from 'vitest';
import { asServiceRole } from './unusual-database.js';

/**
 * What `TEST_BACKING` (`redis` or `pgbouncer`) puts under every service of a test run that does not say otherwise. Apart
 * from what starts it, which the processes of the tests need not load.
 */
export type Backing =
  { readonly kind: 'redis'; readonly url: string } | { readonly kind: 'pgbouncer'; readonly url: string };

/** Of one Redis server: services on the same database share one of these, and no others do. */
export const REDIS_DATABASES = 65_536;

declare module 'vitest' {
  interface ProvidedContext {
    backing: Backing | null;
  }
}

/** Null in an ordinary run. */
export function backingKind(): Backing['kind'] | null {
  return inject('backing')?.kind ?? null;
}

/** The settings that lead a service on this database to it; none in an ordinary run. */
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
