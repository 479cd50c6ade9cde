import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Idempotency keys (D16 to D20) and the call log (D38). */
export class CreateIdempotencyAndCallLog1763700000002 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE idempotency_keys (
        scope text COLLATE "C" NOT NULL,
        key text COLLATE "C" NOT NULL,
        fingerprint bytea NOT NULL,
        request_id text COLLATE "C" NOT NULL,
        status smallint,
        content_type text COLLATE "C",
        location text COLLATE "C",
        -- text, not jsonb: a replay returns the same bytes
        body text COLLATE "C",
        expires_at timestamptz NOT NULL,
        created_at timestamptz NOT NULL DEFAULT now(),
        PRIMARY KEY (scope, key)
      ) WITH (fillfactor = 70);
      CREATE INDEX idempotency_keys_expiry ON idempotency_keys (expires_at);

      -- One partition a day, made ahead and dropped when old.
      CREATE TABLE api_calls (
        request_id text COLLATE "C" NOT NULL,
        client_request_id text COLLATE "C",
        key_id text COLLATE "C",
        partner_id text COLLATE "C",
        mode text COLLATE "C",
        method text COLLATE "C" NOT NULL,
        route text COLLATE "C",
        path text COLLATE "C" NOT NULL,
        status smallint NOT NULL,
        error_code text COLLATE "C",
        latency_ms real NOT NULL,
        remote_address text COLLATE "C" NOT NULL,
        replay_of text COLLATE "C",
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
