import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Idempotency keys (D16 to D20) and the call log (D38). */
export class CreateIdempotencyAndCallLog1763700000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE idempotency_keys (
        scope text NOT NULL,
        key text NOT NULL,
        fingerprint bytea NOT NULL,
        request_id text NOT NULL,
        status smallint,
        content_type text,
        location text,
        -- text, not jsonb: a replay returns the same bytes
        body text,
        expires_at timestamptz NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (scope, key)
      ) WITH (fillfactor = 70);
      CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

      -- One partition a day, made ahead and dropped when old.
      CREATE TABLE api_calls (
        request_id text NOT NULL,
        client_request_id text,
        key_id text,
        partner_id text,
        mode text,
        method text NOT NULL,
        route text,
        path text NOT NULL,
        status smallint NOT NULL,
        error_code text,
        latency_ms real NOT NULL,
        remote_address text NOT NULL,
        replay_of text,
        created_at timestamptz NOT NULL
      ) PARTITION BY RANGE (created_at);
      CREATE INDEX api_calls_by_request ON api_calls (request_id);
      CREATE INDEX api_calls_by_partner ON api_calls (partner_id, created_at DESC, request_id DESC);
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP TABLE api_calls, idempotency_keys');
  }
}
