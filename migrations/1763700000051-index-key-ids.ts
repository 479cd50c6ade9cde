import type { MigrationInterface, QueryRunner } from 'typeorm';
import { buildIndexes, dropIndexes } from './build-indexes.js';

/** Finds the keys of `SECRETS_KEYS` in use: every start and `npm run reseal` decrypt one secret per key (D37). */
export class IndexKeyIds1763700000051 implements MigrationInterface {
  /** CREATE INDEX CONCURRENTLY cannot run in a transaction. */
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await buildIndexes(runner, INDEXES);
  }

  async down(runner: QueryRunner): Promise<void> {
    await dropIndexes(runner, INDEXES);
  }
}

const keyId = (column: string): string => `((split_part(${column}, '.', 2)) COLLATE "C")`;

const INDEXES = [
  { name: 'esims_key_id', on: `esims (${keyId('install_secrets')})` },
  { name: 'webhook_endpoints_key_id', on: `webhook_endpoints (${keyId('secret')})` },
  { name: 'webhook_endpoints_previous_key_id', on: `webhook_endpoints (${keyId('previous_secret')})` },
  { name: 'sandbox_upstream_orders_key_id', on: `sandbox_upstream_orders (${keyId('profiles')})` },
];
