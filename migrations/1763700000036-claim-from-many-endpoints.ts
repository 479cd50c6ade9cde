import type { MigrationInterface, QueryRunner } from 'typeorm';

/** Lets a worker claim from many endpoints in one statement, with everything an attempt needs (D49, D51). */
export class ClaimFromManyEndpoints1763700000036 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(CLAIM_FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION claim_many_webhook_deliveries (text[], int[], int, text, int)');
  }
}

/**
 * `claim_webhook_deliveries` for several endpoints, with the partner, mode and signature schemes of each. All workers
 * take their locks in the same order, so that no two claims deadlock. PostgreSQL would plan an equivalent join again
 * for every claim, which cost more than the claim itself.
 */
export const CLAIM_FUNCTION = `
  CREATE FUNCTION claim_many_webhook_deliveries (
    of_endpoints text[], of_slots int[], most_in_flight int, owner text, lease_ms int
  ) RETURNS TABLE (
    endpoint_id text, partner_id text, mode text, standard boolean, id text, event_type text, fence bigint, counted_attempts int, url text,
    secret text, previous_secret text, body text, lapsed_ago_ms float8, lapsed_ran_ms float8, due_at timestamptz,
    next_look_ms float8, room int
  ) LANGUAGE plpgsql AS $claim$
  #variable_conflict use_column
  DECLARE
    asked record;
  BEGIN
    FOR asked IN
      SELECT a.of_id, a.slots FROM unnest(of_endpoints, of_slots) AS a (of_id, slots) ORDER BY hashtext(a.of_id), a.of_id
    LOOP
      RETURN QUERY
      SELECT w.id, w.partner_id, w.mode, 'standard' = ANY (w.signature_schemes), c.*
      FROM claim_webhook_deliveries(asked.of_id, asked.slots, most_in_flight, owner, lease_ms) AS c
      JOIN webhook_endpoints w ON w.id = asked.of_id;
    END LOOP;
  END
  $claim$`;
