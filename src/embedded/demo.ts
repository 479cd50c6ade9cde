import { readFileSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { writeSecretFile } from './development-settings.js';

/** The admin API refused a call of the embedded start. */
export class AdminCallFailed extends Error {
  constructor(
    call: string,
    readonly status: number,
    readonly code: string | undefined,
    detail: string | undefined,
  ) {
    super(`${call}: ${status} ${code}: ${detail}`);
    this.name = 'AdminCallFailed';
  }
}

/** Talks to our own admin API over loopback: the demo is made with the operations that the portal uses. */
export class AdminClient {
  constructor(
    private readonly baseUrl: string,
    private readonly token: string,
  ) {}

  /** The answer's `data`. @throws AdminCallFailed with the problem's code. */
  async call<T>(method: 'GET' | 'POST' | 'PATCH', path: string, body?: unknown): Promise<T> {
    const response = await fetch(`${this.baseUrl}/internal/v1${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        'x-actor': 'embedded-start',
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const answer = (await response.json()) as { data: T; code?: string; detail?: string };
    if (!response.ok)
      throw new AdminCallFailed(`${method} ${path}`, response.status, answer.code, answer.detail);
    return answer.data;
  }
}

const DEMO_NAME = 'Demo Travel';

interface Identified {
  readonly id: string;
}

interface DemoWebhook {
  readonly partnerId: string;
  readonly endpointId: string;
  readonly secret: string;
}

/** As the file keeps it. */
type KnownWebhook = DemoWebhook & {
  readonly port?: number;
  /** A start without the receiver has switched the endpoint off. */
  readonly off?: boolean;
};

export interface Demo {
  readonly partnerId: string;
  /** A fresh sandbox key, shown once in the banner. */
  readonly apiKey: string;
}

/** Seeds the demo: a partner and a fresh key; the two newest stay valid (D2). */
export async function prepareDemo(admin: AdminClient): Promise<Demo> {
  const partnerId = await findOrCreatePartner(admin);
  return { partnerId, apiKey: await issueDemoKey(admin, partnerId, 'sandbox') };
}

async function findOrCreatePartner(admin: AdminClient): Promise<string> {
  const partners = await admin.call<(Identified & { name: string })[]>('GET', '/partners?limit=100');
  const demo = partners.find((partner) => partner.name === DEMO_NAME);
  return (demo ?? (await admin.call<Identified>('POST', '/partners', { name: DEMO_NAME }))).id;
}

/** A link into the portal as a person of the demo partner. */
export async function makePortalLink(admin: AdminClient, partnerId: string): Promise<string> {
  const body = { actor: { id: 'demo', name: 'Demo user' } };
  return (await admin.call<{ url: string }>('POST', `/partners/${partnerId}/portal-sessions`, body)).url;
}

/** A fresh key; of those named `demo` the two newest of a mode stay valid (D2). */
async function issueDemoKey(
  admin: AdminClient,
  partnerId: string,
  mode: 'sandbox' | 'live',
): Promise<string> {
  const base = `/partners/${partnerId}/api-keys`;
  const keys = await admin.call<(Identified & { name: string | null; status: string; mode: string })[]>(
    'GET',
    `${base}?limit=100`,
  );
  // Newest first: one older key stays beside the new one, so that a shell opened before this start still works.
  const [newest, ...older] = keys.filter(
    (key) => key.name === 'demo' && key.mode === mode && key.status === 'active',
  );
  for (const key of older) await admin.call('POST', `${base}/${key.id}/revoke`);
  const create = (): Promise<{ key: string }> => admin.call('POST', base, { mode, name: 'demo' });
  try {
    return (await create()).key;
  } catch (error) {
    // A partner with nine keys of its own has room for one demo key only.
    if (!(error instanceof AdminCallFailed) || error.code !== 'limit_reached' || !newest) throw error;
    await admin.call('POST', `${base}/${newest.id}/revoke`);
    return (await create()).key;
  }
}

/** The demo's endpoint, pointed at our own receiver. Answers its signing secret. */
export async function connectReceiver(
  admin: AdminClient,
  partnerId: string,
  url: string,
  file: string,
): Promise<string> {
  const base = `/partners/${partnerId}/webhook-endpoints`;
  const known = readDemoWebhook(file);
  const kept = known?.partnerId === partnerId && (await redirect(admin, base, known, url));
  const { endpointId, secret } = kept ? known : await createWebhook(admin, base, partnerId, url);
  const port = Number(new URL(url).port);
  writeSecretFile(file, JSON.stringify({ partnerId, endpointId, secret, port } satisfies KnownWebhook));
  return secret;
}

/** Switches off what an earlier start has connected: private receivers are refused, and what is owed is held. */
export async function disconnectReceiver(admin: AdminClient, partnerId: string, file: string): Promise<void> {
  const known = readDemoWebhook(file);
  if (known?.partnerId !== partnerId || known.off) return;
  const path = `/partners/${partnerId}/webhook-endpoints/${known.endpointId}/disable`;
  await unlessDeleted(() => admin.call('POST', path));
  writeSecretFile(file, JSON.stringify({ ...known, off: true } satisfies KnownWebhook));
}

/** False when somebody has deleted the demo's endpoint: a new one is made. */
async function redirect(
  admin: AdminClient,
  base: string,
  known: KnownWebhook,
  url: string,
): Promise<boolean> {
  const path = `${base}/${known.endpointId}`;
  return unlessDeleted(async () => {
    await admin.call('PATCH', path, { url });
    // An endpoint that a person has switched off stays so.
    if (known.off) await admin.call('POST', `${path}/enable`);
  });
}

async function unlessDeleted(work: () => Promise<unknown>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (error instanceof AdminCallFailed && error.status === 404) return false;
    throw error;
  }
}

async function createWebhook(
  admin: AdminClient,
  base: string,
  partnerId: string,
  url: string,
): Promise<DemoWebhook> {
  const description = 'Receiver of the embedded start';
  const body = { mode: 'sandbox', url, description };
  const made = await admin.call<{ id: string; secret: string }>('POST', base, body);
  return { partnerId, endpointId: made.id, secret: made.secret };
}

/** What the start before left, or null: the file is missing or was cut by a kill. */
export function readDemoWebhook(file: string): KnownWebhook | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as KnownWebhook;
  } catch {
    return null;
  }
}

/** What a newcomer needs for a live order, besides money: a key, and a package that the simulated wholesaler sells. */
export interface LiveDemo {
  readonly apiKey: string;
  readonly partnerId: string;
  /** Null: the catalogue is still being synchronised. */
  readonly packageId: string | null;
}

const LOW_AMOUNT = 2_000;
const DEPOSIT = { amount: 10_000, currency: 'USD' };
/** The catalogue of a first start is brought in by the worker within a second or two. */
const SYNC_TIMEOUT_MS = 15_000;
const POLL_MS = 100;

/** Waits for the first synchronisation of the live catalogue, 15 s at most: Sandbox works without it. */
export async function prepareLiveDemo(
  admin: AdminClient,
  apiUrl: string,
  partnerId: string,
): Promise<LiveDemo> {
  const apiKey = await issueDemoKey(admin, partnerId, 'live');
  await depositWhenLow(admin, partnerId);
  return { apiKey, partnerId, packageId: await findPackage(apiUrl, apiKey) };
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
  const deadline = performance.now() + SYNC_TIMEOUT_MS;
  while (performance.now() < deadline) {
    const response = await fetch(`${apiUrl}/v1/catalog?kind=base&country=DE&type=country&limit=1`, {
      headers: { authorization: `Bearer ${apiKey}` },
    });
    const { data } = (await response.json()) as { data?: { id: string }[] };
    if (data?.[0]) return data[0].id;
    await delay(POLL_MS);
  }
  return null;
}
