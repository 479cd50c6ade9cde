import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Placements at providers that do not document repeated requests as idempotent (D19). A constraint allows each at most
 * one repeat.
 */
export class CreateProviderPlacements1763700000016 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(`
      CREATE TABLE provider_placements (
        provider text COLLATE "C" NOT NULL,
        operation text COLLATE "C" NOT NULL CHECK (operation IN ('order', 'topup', 'cancel')),
        -- what the provider would do twice: a purchase, a top-up or the return of one eSIM, by the provider's name of it
        placement_key text COLLATE "C" NOT NULL,
        -- of the order or top-up that it belongs to
        provider_reference text COLLATE "C" NOT NULL,
        -- those that may have taken effect
        placements int NOT NULL CONSTRAINT provider_placements_one_repeat CHECK (placements BETWEEN 0 AND 2),
        first_placed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        last_placed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
        PRIMARY KEY (provider, operation, placement_key)
      );
      -- What is open may have left once already.
      INSERT INTO provider_placements (provider, operation, placement_key, provider_reference, placements)
      SELECT provider, 'topup', provider_reference, provider_reference, 1 FROM topups
      WHERE mode = 'live' AND status = 'processing' AND upstream_placed_at IS NOT NULL
      UNION ALL
      SELECT o.provider, 'order', o.provider_reference || '-' || part, o.provider_reference, 1
      FROM orders o CROSS JOIN LATERAL generate_series(1, o.quantity) AS part
      WHERE o.provider = 'zendit' AND o.status = 'processing' AND o.upstream_placed_at IS NOT NULL
      UNION ALL
      SELECT o.provider, 'cancel', e.provider_esim_id, o.provider_reference, 1
      FROM orders o JOIN esims e ON e.order_id = o.id WHERE o.mode = 'live' AND o.status = 'canceling';
      CREATE INDEX provider_placements_repeated ON provider_placements (provider_reference) WHERE placements > 1;
    `);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`DROP TABLE provider_placements;`);
  }
}
