import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Records events and owes them to endpoints in one statement (D28, D32, D51), and claims from many endpoints in one.
 * Functions, because the rows of an event belong to two features, of which the one that records must not know the
 * other's tables; and because their plans are kept by the connection, whether statements are prepared or not.
 */
export class RecordEvents1763700000028 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(RECORD_FUNCTION);
    await runner.query(CLAIM_FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query('DROP FUNCTION claim_many_webhook_deliveries (text[], int[], int, text, int)');
    await runner.query(
      'DROP FUNCTION record_events (text[], text[], text[], text[], text[], timestamptz[], timestamptz)',
    );
  }
}

/**
 * One delivery per event and matching endpoint, disabled ones included; answers the enabled endpoints. The share lock
 * is what the foreign key takes anyway; taken here, an endpoint that is being deleted is seen as deleted. A delivery's
 * id has the time of its event's; hexadecimal digits are Crockford digits too, and the first half of a UUID holds fixed
 * bits, so its last 15 digits complete the id (D10). Ids of a time far from the database's have no partition: they
 * record nothing, and one row without an endpoint says so.
 */
const RECORD_FUNCTION = `
  CREATE FUNCTION record_events (
    ids text[], partner_ids text[], modes text[], types text[], bodies text[], happened_at timestamptz[],
    ids_at timestamptz
  ) RETURNS TABLE (endpoint_id text) LANGUAGE plpgsql AS $record$
  #variable_conflict use_column
  BEGIN
    IF ids_at NOT BETWEEN now() - interval '1 day' AND now() + interval '1 day' THEN
      RETURN QUERY SELECT NULL::text;
      RETURN;
    END IF;
    RETURN QUERY
    WITH recorded AS (
      INSERT INTO events (id, partner_id, mode, type, body, created_at)
      SELECT * FROM unnest(ids, partner_ids, modes, types, bodies, happened_at)
      RETURNING id, partner_id, mode, type
    ), owed AS (
      SELECT e.id AS event_id, e.type AS event_type, w.id AS endpoint_id, w.partner_id, w.mode, w.enabled
      FROM recorded e JOIN webhook_endpoints w ON w.partner_id = e.partner_id AND w.mode = e.mode
      WHERE w.deleted_at IS NULL AND (w.event_types IS NULL OR e.type = ANY (w.event_types))
      FOR KEY SHARE OF w
    ), inserted AS (
      INSERT INTO webhook_deliveries (id, endpoint_id, partner_id, mode, event_id, event_type, kind, status,
                                      next_attempt_at)
      SELECT 'dlv_' || substr(event_id, 5, 11) || upper(right(replace(gen_random_uuid()::text, '-', ''), 15)),
        endpoint_id, partner_id, mode, event_id, event_type, 'event', 'pending', now()
      FROM owed
    )
    SELECT DISTINCT o.endpoint_id FROM owed o WHERE o.enabled;
  END
  $record$`;

/**
 * `claim_webhook_deliveries` of several endpoints, with the partner and mode of each. Their locks are taken in one
 * order over all workers, so that no two claims wait for each other. A join of the same would be planned anew for every
 * claim, which cost more than the claim.
 */
const CLAIM_FUNCTION = `
  CREATE FUNCTION claim_many_webhook_deliveries (
    of_endpoints text[], of_slots int[], most_in_flight int, owner text, lease_ms int
  ) RETURNS TABLE (
    endpoint_id text, partner_id text, mode text, id text, event_type text, fence bigint, counted_attempts int, url text,
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
      SELECT w.id, w.partner_id, w.mode, c.*
      FROM claim_webhook_deliveries(asked.of_id, asked.slots, most_in_flight, owner, lease_ms) AS c
      JOIN webhook_endpoints w ON w.id = asked.of_id;
    END LOOP;
  END
  $claim$`;
