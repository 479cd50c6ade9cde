import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * Records events and creates their deliveries in one statement (D28, D32, D51). It is a function for two reasons. The
 * rows belong to two features, and the one that records events must not know the other's tables. Its plans are cached
 * per connection, even if statements are not prepared.
 */
export class RecordEvents1763700000028 implements MigrationInterface {
  async up(runner: QueryRunner): Promise<void> {
    await runner.query(RECORD_FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(
      'DROP FUNCTION record_events (text[], text[], text[], text[], text[], timestamptz[], timestamptz)',
    );
  }
}

/**
 * Creates one delivery per event and matching endpoint, including disabled ones, and returns the enabled endpoints. The
 * foreign key would take the share lock anyway. Taking it here treats an endpoint that is being deleted as deleted. A
 * delivery's id contains its event's time. Hexadecimal digits are also Crockford digits, and the first half of a UUID
 * holds fixed bits, so its last 15 digits complete the id (D10). Ids far from the database's time have no partition.
 * For them the function records nothing and returns one row without an endpoint.
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
