import type { MigrationInterface, QueryRunner } from 'typeorm';

/**
 * `traceparent` of W3C Trace Context on orders, top-ups and events, which pass from process to process (D53). Null
 * unless tracing is on. Each step has its own transaction, so that none locks two tables.
 */
export class CarryTraceContext1763700000040 implements MigrationInterface {
  readonly transaction = false;

  async up(runner: QueryRunner): Promise<void> {
    await runner.query('ALTER TABLE orders ADD COLUMN IF NOT EXISTS traceparent text COLLATE "C"');
    await runner.query('ALTER TABLE topups ADD COLUMN IF NOT EXISTS traceparent text COLLATE "C"');
    await runner.query(
      `ALTER TABLE events ADD COLUMN IF NOT EXISTS traceparent text COLLATE "C"; ${OF_DETACHED_DAYS}`,
    );
    await runner.query(RECORD_FUNCTION);
  }

  async down(runner: QueryRunner): Promise<void> {
    await runner.query(`
      DROP FUNCTION IF EXISTS record_events (text[], text[], text[], text[], text[], timestamptz[], timestamptz, text[]);
      ALTER TABLE events DROP COLUMN IF EXISTS traceparent;
      ALTER TABLE topups DROP COLUMN IF EXISTS traceparent;
      ALTER TABLE orders DROP COLUMN IF EXISTS traceparent`);
  }
}

/** A partition that is detached at this moment may be attached again later, and must then have the same columns. */
const OF_DETACHED_DAYS = `
  DO $days$
  DECLARE
    day regclass;
  BEGIN
    FOR day IN
      SELECT c.oid FROM pg_class c
      WHERE c.relnamespace = (SELECT relnamespace FROM pg_class WHERE oid = 'events'::regclass)
        AND c.relkind = 'r' AND c.relname ~ '^events_(sandbox|live)_p[0-9]{8}$'
        AND NOT EXISTS (SELECT 1 FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attname = 'traceparent')
    LOOP
      EXECUTE format('ALTER TABLE %s ADD COLUMN traceparent text COLLATE "C"', day);
    END LOOP;
  END
  $days$`;

/**
 * Same as in migration 1763700000028, plus the event's `traceparent`. A separate function, because the previous release
 * calls the old one during the rollout; the next release drops it.
 */
const RECORD_FUNCTION = `
  CREATE OR REPLACE FUNCTION record_events (
    ids text[], partner_ids text[], modes text[], types text[], bodies text[], happened_at timestamptz[],
    ids_at timestamptz, traceparents text[]
  ) RETURNS TABLE (endpoint_id text) LANGUAGE plpgsql AS $record$
  #variable_conflict use_column
  BEGIN
    IF ids_at NOT BETWEEN now() - interval '1 day' AND now() + interval '1 day' THEN
      RETURN QUERY SELECT NULL::text;
      RETURN;
    END IF;
    RETURN QUERY
    WITH recorded AS (
      INSERT INTO events (id, partner_id, mode, type, body, created_at, traceparent)
      SELECT * FROM unnest(ids, partner_ids, modes, types, bodies, happened_at, traceparents)
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
