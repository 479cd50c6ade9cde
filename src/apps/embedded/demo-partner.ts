import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import type { AdminClient } from './admin-client.js';

const DEMO_NAME = 'Demo Travel';

interface Identified {
  readonly id: string;
}

interface DemoWebhook {
  readonly partnerId: string;
  readonly endpointId: string;
  readonly secret: string;
}

export interface Demo {
  readonly partnerId: string;
  /** A fresh sandbox key, shown once in the banner. */
  readonly apiKey: string;
  readonly webhookSecret: string;
}

/** Seeds the demo: partner, a fresh key (the two newest stay valid) and an endpoint to our own receiver (D2). */
export async function prepareDemo(
  admin: AdminClient,
  receiverUrl: string,
  webhookFile: string,
): Promise<Demo> {
  const partnerId = await findOrCreatePartner(admin);
  const apiKey = await issueKey(admin, partnerId);
  const { secret } = await findOrCreateWebhook(admin, partnerId, receiverUrl, webhookFile);
  return { partnerId, apiKey, webhookSecret: secret };
}

async function findOrCreatePartner(admin: AdminClient): Promise<string> {
  const partners = await admin.call<(Identified & { name: string })[]>('GET', '/partners?limit=100');
  const demo = partners.find((partner) => partner.name === DEMO_NAME);
  return (demo ?? (await admin.call<Identified>('POST', '/partners', { name: DEMO_NAME }))).id;
}

async function issueKey(admin: AdminClient, partnerId: string): Promise<string> {
  const keys = await admin.call<(Identified & { name: string | null; status: string })[]>(
    'GET',
    `/partners/${partnerId}/api-keys?limit=100`,
  );
  // Newest first: one older key stays beside the new one, so that a shell opened before this start still works.
  const demoKeys = keys.filter((key) => key.name === 'demo' && key.status === 'active');
  for (const key of demoKeys.slice(1)) {
    await admin.call('POST', `/partners/${partnerId}/api-keys/${key.id}/revoke`);
  }
  const issued = await admin.call<{ key: string }>('POST', `/partners/${partnerId}/api-keys`, {
    mode: 'sandbox',
    name: 'demo',
  });
  return issued.key;
}

async function findOrCreateWebhook(
  admin: AdminClient,
  partnerId: string,
  url: string,
  file: string,
): Promise<DemoWebhook> {
  const base = `/partners/${partnerId}/webhook-endpoints`;
  const known = existsSync(file) ? (JSON.parse(readFileSync(file, 'utf8')) as DemoWebhook) : null;
  if (known?.partnerId === partnerId) {
    await admin.call('PATCH', `${base}/${known.endpointId}`, { url });
    return known;
  }
  const made = await admin.call<{ id: string; secret: string }>('POST', base, {
    mode: 'sandbox',
    url,
    description: 'Receiver of the embedded start',
  });
  const webhook = { partnerId, endpointId: made.id, secret: made.secret };
  writeFileSync(file, JSON.stringify(webhook), { mode: 0o600 });
  return webhook;
}
