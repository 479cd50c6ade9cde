import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Workers lease endpoints instead of deliveries (D56). Drops the columns of delivery leases, the claim function, the
 * function that recorded events, and the indexes that only they used.
 */
export class OwnEndpoints1763700000060 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE webhook_endpoint_leases (
        endpoint_id text COLLATE "C" PRIMARY KEY REFERENCES webhook_endpoints ON DELETE CASCADE,
        -- null: nobody sends to the endpoint
        owner text COLLATE "C",
        -- grows with every owner: what an earlier one started or still reports is told apart by it
        fence bigint NOT NULL,
        until timestamptz
      ) WITH (fillfactor = 50);

      DROP FUNCTION claim_many_webhook_deliveries (text[], int[], int, text, int);
      DROP FUNCTION claim_webhook_deliveries (text, int, int, text, int);
      DROP TYPE webhook_claim_window, leased_webhook_delivery, claimed_webhook_delivery;
      DROP FUNCTION record_events (text[], text[], text[], text[], text[], timestamptz[], timestamptz);
      DROP FUNCTION record_events (text[], text[], text[], text[], text[], timestamptz[], timestamptz, text[]);

      DROP INDEX webhook_deliveries_leased, webhook_deliveries_discarding;
      ALTER TABLE webhook_deliveries
        DROP COLUMN lease_owner, DROP COLUMN claimed_at, DROP COLUMN lease_until, DROP COLUMN fence,
        -- the attempt under way, and whose it is; neither is in an index, so that a claim is a HOT update
        ADD COLUMN started_at timestamptz,
        ADD COLUMN started_fence bigint;

      ALTER TABLE webhook_endpoints DROP COLUMN ramp_window, DROP COLUMN ramp_widened_at, DROP COLUMN last_success_at,
        -- since when it is sent to slowly at first; null: as fast as it takes (D31, D32)
        ADD COLUMN slow_start_since timestamptz;
    `);
  }

  async down(): Promise<void> {
    return Promise.reject(new Error('this migration has no way back: nothing was released before it'));
  }
}
