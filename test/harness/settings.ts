import { randomBytes } from 'node:crypto';
import { backingSettings } from './backing-service.js';
import { asServiceRole } from './unusual-database.js';

export const ADMIN_TOKEN = randomBytes(24).toString('hex');
const SECRETS_KEY = randomBytes(32).toString('base64');

/** Settings of a service under test: free ports, loopback receivers, no log. `overrides` take precedence. */
export function testEnvironment(
  databaseUrl: string,
  overrides: Record<string, string> = {},
): Record<string, string> {
  return {
    NODE_ENV: 'test',
    LOG_LEVEL: 'silent',
    DATABASE_URL: asServiceRole(databaseUrl),
    HOST: '127.0.0.1',
    PORT: '0',
    ADMIN_PORT: '0',
    PORTAL_PORT: '0',
    PORTAL_HOST: '127.0.0.1',
    PORTAL_RATE_LIMIT_PER_MINUTE: '6000000',
    PORTAL_RATE_LIMIT_BURST: '1000000',
    INSTALL_PORT: '0',
    INSTALL_HOST: '127.0.0.1',
    OPS_PORT: '0',
    ADMIN_TOKENS: `portal:${ADMIN_TOKEN}`,
    SECRETS_KEYS: `test:${SECRETS_KEY}`,
    WEBHOOK_ALLOW_PRIVATE_TARGETS: 'true',
    // On a busy machine, a wait must not become a 503 that the test does not expect.
    DATABASE_POOL_WAIT_MS: '60000',
    DATABASE_STATEMENT_TIMEOUT_MS: '60000',
    DATABASE_STATEMENT_TIMEOUT_WORKER_MS: '60000',
    LEASE_MS: '3000',
    // High enough that only tests of the limit reach it.
    RATE_LIMIT_PER_MINUTE: '6000000',
    RATE_LIMIT_BURST: '1000000',
    ADMIN_RATE_LIMIT_PER_MINUTE: '6000000',
    ADMIN_RATE_LIMIT_BURST: '1000000',
    ...backingSettings(databaseUrl),
    ...overrides,
  };
}
