import { createHmac } from 'node:crypto';
import type { ReceivedWebhook } from '../harness/index.js';

/** The signature header as a partner parses it from the documentation, without our code. */
export interface ReadSignature {
  readonly t: number;
  /** In header order. */
  readonly v1: readonly string[];
}

const HEADER = /^t=(\d{10})((?:,v1=[0-9a-f]{64})+)$/;

/** @throws Error when the header has any other form */
export function readSignature({ headers }: ReceivedWebhook): ReadSignature {
  const header = String(headers['x-service-signature']);
  const match = HEADER.exec(header);
  if (!match) throw new Error(`not a signature header: ${header}`);
  return { t: Number(match[1]), v1: match[2]!.split(',v1=').slice(1) };
}

function hexHmac(secret: string, t: number, body: string): string {
  return createHmac('sha256', Buffer.from(secret, 'utf8'))
    .update(Buffer.from(`${t}.${body}`, 'utf8'))
    .digest('hex');
}

/** The name of the secret behind each `v1` in header order, or `?` for none. */
export function signersOf(webhook: ReceivedWebhook, secrets: Readonly<Record<string, string>>): string[] {
  const { t, v1 } = readSignature(webhook);
  const names = new Map(
    Object.entries(secrets).map(([name, secret]) => [hexHmac(secret, t, webhook.body), name]),
  );
  return v1.map((signature) => names.get(signature) ?? '?');
}

/** The arrival of the webhook, in milliseconds since the epoch. */
export function arrivedAt({ receivedAtMs }: ReceivedWebhook): number {
  return performance.timeOrigin + receivedAtMs;
}
