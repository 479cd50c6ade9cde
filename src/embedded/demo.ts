import { existsSync, readFileSync } from 'node:fs';
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

/** Calls our own admin API over loopback: the demo uses the same operations as the portal. */
export class AdminClient {
  constructor(
    private readonly baseUrl: string,
    private readonly token: string,
  ) {}

  /** Returns the response's `data`. @throws AdminCallFailed with the problem's code */
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

/** The webhook as stored in the file. */
type KnownWebhook = DemoWebhook & {
  readonly port?: number;
  /** Set when a start without the receiver has disabled the endpoint. */
  readonly off?: boolean;
};

/** The demo partner. @throws AdminCallFailed */
export async function findOrCreatePartner(admin: AdminClient): Promise<string> {
  const partners = await admin.call<(Identified & { name: string })[]>('GET', '/partners?limit=100');
  const demo = partners.find((partner) => partner.name === DEMO_NAME);
  return (demo ?? (await admin.call<Identified>('POST', '/partners', { name: DEMO_NAME }))).id;
}

/** Variables for the portal team's guide. */
export function teamLines(adminUrl: string, token: string, partnerId: string): string[] {
  return [
    `export ESIM_ADMIN_URL=${adminUrl}`,
    `export ESIM_ADMIN_TOKEN=${token}`,
    `export ESIM_PARTNER_ID=${partnerId}`,
  ];
}

/** Creates a sign-in link to the portal for a user of the demo partner. */
export async function makePortalLink(admin: AdminClient, partnerId: string): Promise<string> {
  const body = { actor: { id: 'demo', name: 'Demo user' } };
  return (await admin.call<{ url: string }>('POST', `/partners/${partnerId}/portal-sessions`, body)).url;
}

/** The APIs and the partner that the embedded start uses. */
export interface DemoPlace {
  readonly admin: AdminClient;
  readonly apiUrl: string;
  readonly partnerId: string;
  /** Shell file that keeps the keys for the next start. */
  readonly file: string;
  /** More lines of the file: the variables of the portal team's guide. */
  readonly teamLines: readonly string[];
}

/** Environment variable for each key in the shell file. */
const KEY_VARIABLES = { sandbox: 'ESIM_API_KEY', live: 'ESIM_LIVE_KEY' } as const;
type Mode = keyof typeof KEY_VARIABLES;

/**
 * Returns the demo's key for a mode: the key that the last start stored, or a new one if there is none or it was
 * revoked (D2). A new key is stored before it is shown.
 */
export async function demoKey(place: DemoPlace, mode: Mode): Promise<string> {
  const kept = readDemoKeys(place.file);
  const known = kept[mode];
  if (known !== null && (await isAccepted(place, mode, known))) return known;
  const apiKey = await issueDemoKey(place.admin, place.partnerId, mode);
  keepDemoKeys(place, { ...kept, [mode]: apiKey });
  return apiKey;
}

/** Variables for every call of the documentation, the SDK and the CLI. */
export function exportLines(demo: {
  readonly apiUrl: string;
  readonly apiKey: string;
  readonly liveKey: string | null;
}): string[] {
  return [
    `export ESIM_BASE_URL=${demo.apiUrl}`,
    `export ESIM_API_KEY=${demo.apiKey}`,
    ...(demo.liveKey === null ? [] : [`export ESIM_LIVE_KEY=${demo.liveKey}`]),
  ];
}

type DemoKeys = Readonly<Record<Mode, string | null>>;

function readDemoKeys(file: string): DemoKeys {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : '';
  const keyOf = (mode: Mode): string | null =>
    new RegExp(`^export ${KEY_VARIABLES[mode]}=(svc_sk_\\w+)$`, 'm').exec(text)?.[1] ?? null;
  return { sandbox: keyOf('sandbox'), live: keyOf('live') };
}

/** Stores the keys and the API's address, which may have changed. */
export function keepDemoKeys({ apiUrl, file, teamLines }: DemoPlace, keys = readDemoKeys(file)): void {
  const { sandbox, live } = keys;
  if (sandbox === null) return;
  const lines = [...exportLines({ apiUrl, apiKey: sandbox, liveKey: live }), ...teamLines];
  writeSecretFile(file, `${lines.join('\n')}\n`);
}

/**
 * Whether the key works for the demo partner. Only 401 means a revoked key; 403 and 429 are responses to a valid one.
 */
async function isAccepted({ apiUrl, partnerId }: DemoPlace, mode: Mode, key: string): Promise<boolean> {
  const response = await fetch(`${apiUrl}/v1/me`, { headers: { authorization: `Bearer ${key}` } });
  const { data } = (await response.json()) as { data?: { partner_id: string; mode: string } };
  if (data) return data.partner_id === partnerId && data.mode === mode;
  return response.status !== 401;
}

/** Creates a key. If the partner has reached its limit, the demo's oldest key is revoked. */
async function issueDemoKey(admin: AdminClient, partnerId: string, mode: Mode): Promise<string> {
  const base = `/partners/${partnerId}/api-keys`;
  const create = (): Promise<{ key: string }> => admin.call('POST', base, { mode, name: 'demo' });
  try {
    return (await create()).key;
  } catch (error) {
    if (!(error instanceof AdminCallFailed) || error.code !== 'limit_reached') throw error;
    const oldest = (await listKeys(admin, base)).findLast(
      (key) => key.name === 'demo' && key.mode === mode && key.status === 'active',
    );
    if (!oldest) throw error;
    await admin.call('POST', `${base}/${oldest.id}/revoke`);
    return (await create()).key;
  }
}

type ListedKey = Identified & { name: string | null; status: string; mode: string };

/** Newest first. */
function listKeys(admin: AdminClient, base: string): Promise<ListedKey[]> {
  return admin.call('GET', `${base}?limit=100`);
}

/** Points the demo's endpoint at our own receiver and returns its signing secret. */
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

/** Disables the endpoint of an earlier start, because private receivers are refused now; its deliveries are held. */
export async function disconnectReceiver(admin: AdminClient, partnerId: string, file: string): Promise<void> {
  const known = readDemoWebhook(file);
  if (known?.partnerId !== partnerId || known.off) return;
  const path = `/partners/${partnerId}/webhook-endpoints/${known.endpointId}/disable`;
  await unlessDeleted(() => admin.call('POST', path));
  writeSecretFile(file, JSON.stringify({ ...known, off: true } satisfies KnownWebhook));
}

/** Points the stored endpoint at `url`. False if the endpoint was deleted; the caller then creates a new one. */
async function redirect(
  admin: AdminClient,
  base: string,
  known: KnownWebhook,
  url: string,
): Promise<boolean> {
  const path = `${base}/${known.endpointId}`;
  return unlessDeleted(async () => {
    await admin.call('PATCH', path, { url });
    // An endpoint that a person has disabled stays disabled.
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

/** The webhook of the last start; null when the file is missing or was truncated by a kill. */
export function readDemoWebhook(file: string): KnownWebhook | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as KnownWebhook;
  } catch {
    return null;
  }
}

/**
 * Everything except money that a newcomer needs for a live order: a key, and a package from the simulated wholesaler.
 */
export interface LiveDemo {
  readonly apiKey: string;
  /** Null while the catalog is still being synchronized. */
  readonly packageId: string | null;
}

const LOW_AMOUNT = 2_000;
const DEPOSIT = { amount: 10_000, currency: 'USD' };
/** On a first start the worker synchronizes the catalog within a second or two. */
const SYNC_TIMEOUT_MS = 15_000;
const POLL_MS = 100;

/** Waits at most 15 s for the first synchronization of the live catalog, because Sandbox works without it. */
export async function prepareLiveDemo(place: DemoPlace): Promise<LiveDemo> {
  const apiKey = await demoKey(place, 'live');
  await depositWhenLow(place.admin, place.partnerId);
  return { apiKey, packageId: await findPackage(place.apiUrl, apiKey) };
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
