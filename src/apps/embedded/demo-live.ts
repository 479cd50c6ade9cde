import { setTimeout as delay } from 'node:timers/promises';
import type { AdminClient } from './admin-client.js';
import { issueDemoKey } from './demo-partner.js';

/** What a newcomer needs for a live order: a key, money, and a package that the simulated wholesaler sells. */
export interface LiveDemo {
  readonly apiKey: string;
  readonly partnerId: string;
  readonly packageId: string;
}

const LOW_AMOUNT = 2_000;
const DEPOSIT = { amount: 10_000, currency: 'USD' };
/** The catalogue of a first start is brought in by the worker within a second or two. */
const PATIENCE_MS = 8_000;
const LOOK_EVERY_MS = 100;

/** Null when the wholesaler's catalogue does not come in time: Sandbox works without it. */
export async function prepareLiveDemo(
  admin: AdminClient,
  apiUrl: string,
  partnerId: string,
): Promise<LiveDemo | null> {
  const apiKey = await issueDemoKey(admin, partnerId, 'live');
  await depositWhenLow(admin, partnerId);
  const packageId = await findPackage(apiUrl, apiKey);
  return packageId === null ? null : { apiKey, partnerId, packageId };
}

async function depositWhenLow(admin: AdminClient, partnerId: string): Promise<void> {
  const path = `/partners/${partnerId}/wallet`;
  const balances = await admin.call<{ currency: string; available: { amount: number } }[]>('GET', path);
  const available = balances.find(({ currency }) => currency === DEPOSIT.currency)?.available.amount ?? 0;
  if (available >= LOW_AMOUNT) return;
  const reference = `demo-${Date.now()}`;
  await admin.call('POST', `${path}/deposits`, { amount: DEPOSIT, reference, note: 'Demo money' });
}

async function findPackage(apiUrl: string, apiKey: string): Promise<string | null> {
  const deadline = performance.now() + PATIENCE_MS;
  while (performance.now() < deadline) {
    const response = await fetch(`${apiUrl}/v1/catalog?kind=base&country=DE&type=country&limit=1`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const { data } = (await response.json()) as { data?: { id: string }[] };
    if (data?.[0]) return data[0].id;
    await delay(LOOK_EVERY_MS);
  }
  return null;
}
