import { setTimeout as delay } from 'node:timers/promises';
import { createDatabaseClient } from '../infra/database/index.js';

const REFERENCE = 'demo-needs-review';
/** Issued after 20 s. Until then the order is open, and the worker waits. */
const PACKAGE = 'pkg_test_slow';
const OPEN_WITHIN_MS = 5_000;
const POLL_MS = 50;

/**
 * Makes the worker forget the order, as if it had waited for the wholesaler for too long. The wholesaler has the eSIM
 * after 20 s, so both `requery` and `mark_issued` settle the order.
 */
const FORGET = `
  UPDATE orders SET created_at = now() - interval '20 minutes', next_attempt_at = now() + interval '10 years'
  WHERE id = $1 AND status = 'processing' AND (lease_until IS NULL OR lease_until <= now())`;

/**
 * Places a Sandbox order that needs review, for the portal team's guide. Once it is placed, later starts leave it
 * alone, whatever has become of it.
 */
export async function seedOrderInReview(apiUrl: string, apiKey: string, databaseUrl: string): Promise<void> {
  const response = await fetch(`${apiUrl}/v1/orders`, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${apiKey}`,
      'content-type': 'application/json',
      'idempotency-key': `${REFERENCE}-${Date.now()}`,
    },
    body: JSON.stringify({ package_id: PACKAGE, reference: REFERENCE }),
  });
  // 409 `reference_taken` from the second start on.
  if (response.status !== 202) return;
  const { data } = (await response.json()) as { data: { id: string } };
  const client = createDatabaseClient({
    url: databaseUrl,
    applicationName: 'partner-esim-start',
    connectTimeoutMs: 10_000,
  });
  await client.connect();
  try {
    const deadline = performance.now() + OPEN_WITHIN_MS;
    while (performance.now() < deadline) {
      const { rowCount } = await client.query(FORGET, [data.id]);
      if (rowCount === 1) return;
      await delay(POLL_MS);
    }
  } finally {
    await client.end();
  }
}
