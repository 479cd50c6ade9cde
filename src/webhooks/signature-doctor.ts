import type { Mode } from '../common/mode.js';
import { createHmac } from 'node:crypto';
import { Injectable } from '@nestjs/common';
import { Clock } from '../common/clock.js';
import { SecretBox } from '../infra/crypto/index.js';
import type { WebhookEndpointEntity } from './webhook-endpoint.entity.js';
import { WebhookEndpointsRepository } from './webhook-endpoints.repository.js';

/** What is wrong with a signature, as a word; `valid` is nothing. */
export const DIAGNOSES = [
  'valid',
  'header_missing',
  'header_malformed',
  'signature_changed',
  'clock_off',
  'old_secret',
  'other_endpoint',
  'other_mode',
  'whitespace_changed',
  'reserialized_json',
  'wrong_charset',
  'secret_without_prefix',
  'secret_decoded',
  'unknown',
] as const;
export type DiagnosisCode = (typeof DIAGNOSES)[number];

export interface Diagnosis {
  readonly code: DiagnosisCode;
  /** For `clock_off`: how far `t` is behind our time; negative: ahead of it. */
  readonly secondsOff: number | null;
}

export interface ReceivedCall {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

const TOLERANCE_SECONDS = 300;
const HEADER = 'x-service-signature';

interface Signature {
  readonly timestamp: number;
  readonly values: readonly string[];
}

/**
 * Tells why a receiver does not accept a signature, by trying the mistakes that receivers make (spec section 6, D29). It
 * computes with the secrets of the partner's own endpoints and answers a word: no secret, and no signature of anything.
 */
@Injectable()
export class SignatureDoctor {
  constructor(
    private readonly endpoints: WebhookEndpointsRepository,
    private readonly secrets: SecretBox,
    private readonly clock: Clock,
  ) {}

  /** @param modes of the endpoints that the caller may know of */
  async diagnose(
    endpoint: WebhookEndpointEntity,
    call: ReceivedCall,
    modes: readonly Mode[],
  ): Promise<Diagnosis> {
    const header = Object.entries(call.headers).find(([name]) => name.toLowerCase() === HEADER)?.[1];
    if (header === undefined || header.trim() === '') return found('header_missing');
    const signature = parse(header);
    if (!signature) return found('header_malformed');
    const current = this.secrets.open(endpoint.secret, endpoint.id);
    if (matches(signature, current, call.body)) return this.timely(signature);
    return found(
      this.otherSecret(endpoint, signature, call.body) ??
        mistakeOf(signature, current, call.body) ??
        (await this.otherEndpoint(endpoint, signature, call.body, modes)) ??
        'unknown',
    );
  }

  private timely({ timestamp }: Signature): Diagnosis {
    const secondsOff = Math.round(this.clock.now().getTime() / 1_000) - timestamp;
    return Math.abs(secondsOff) > TOLERANCE_SECONDS ? { code: 'clock_off', secondsOff } : found('valid');
  }

  private otherSecret(
    endpoint: WebhookEndpointEntity,
    signature: Signature,
    body: string,
  ): DiagnosisCode | null {
    const { previousSecret, id } = endpoint;
    if (previousSecret === null) return null;
    return matches(signature, this.secrets.open(previousSecret, id), body) ? 'old_secret' : null;
  }

  /** A partner has at most 20 of each mode. */
  private async otherEndpoint(
    { partnerId, id, mode }: WebhookEndpointEntity,
    signature: Signature,
    body: string,
    modes: readonly Mode[],
  ): Promise<DiagnosisCode | null> {
    const { items } = await this.endpoints.listOfPartner({ partnerId }, { limit: 100, cursor: undefined });
    const other = items.find(
      (each) =>
        each.id !== id &&
        modes.includes(each.mode) &&
        matches(signature, this.secrets.open(each.secret, each.id), body),
    );
    if (!other) return null;
    return other.mode === mode ? 'other_endpoint' : 'other_mode';
  }
}

function found(code: DiagnosisCode): Diagnosis {
  return { code, secondsOff: null };
}

function parse(header: string): Signature | null {
  const parts = header.split(',').map((part) => part.trim());
  const times = parts.filter((part) => part.startsWith('t=')).map((part) => part.slice(2));
  const values = parts.filter((part) => part.startsWith('v1=')).map((part) => part.slice(3));
  if (times.length !== 1 || !/^\d{1,12}$/.test(times[0]!) || values.length === 0) return null;
  return { timestamp: Number(times[0]), values };
}

/** Over bytes or text; the values are public by now, so their comparison need not take constant time. */
function matches({ timestamp, values }: Signature, secret: string | Buffer, body: string | Buffer): boolean {
  return values.includes(expected(timestamp, secret, body));
}

function expected(timestampSeconds: number, secret: string | Buffer, body: string | Buffer): string {
  return createHmac('sha256', secret).update(`${timestampSeconds}.`).update(body).digest('hex');
}

/** What receivers do to the body, the header or the secret, with what the right ones would have given. */
function mistakeOf(signature: Signature, secret: string, body: string): DiagnosisCode | null {
  const lower = {
    ...signature,
    values: signature.values.map((value) => value.toLowerCase().replace(/["']/g, '')),
  };
  if (matches(lower, secret, body)) return 'signature_changed';
  if (whitespaceOf(body).some((text) => matches(signature, secret, text))) return 'whitespace_changed';
  if (reserialized(body).some((text) => matches(signature, secret, text))) return 'reserialized_json';
  if (charsetsOf(body).some((bytes) => matches(signature, secret, bytes))) return 'wrong_charset';
  const bare = secret.replace(/^whsec_/, '');
  if (matches(signature, bare, body)) return 'secret_without_prefix';
  return matches(signature, Buffer.from(bare, 'base64'), body) ? 'secret_decoded' : null;
}

/** A body that we sent has neither; one whose sender was another may have had a newline that was trimmed. */
function whitespaceOf(body: string): readonly string[] {
  const trimmed = body.replace(/^\uFEFF/, '').trim();
  return [trimmed, `${trimmed}\n`, `${trimmed}\r\n`].filter((text) => text !== body);
}

/** Our bodies are compact: whatever was printed anew, in whatever order of spaces, comes back to that. */
function reserialized(body: string): readonly string[] {
  try {
    return [JSON.stringify(sortLikeEvent(JSON.parse(body)))].filter((text) => text !== body);
  } catch {
    return [];
  }
}

const EVENT_KEYS = ['id', 'type', 'created_at', 'data'];

/** The envelope's own order of keys, which a library that sorts them has changed. */
function sortLikeEvent(value: unknown): unknown {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) return value;
  const event = value as Record<string, unknown>;
  const known = EVENT_KEYS.filter((key) => key in event);
  const others = Object.keys(event).filter((key) => !EVENT_KEYS.includes(key));
  return Object.fromEntries([...known, ...others].map((key) => [key, event[key]]));
}

/** UTF-8 that was read as Latin-1 and is now text of it: its characters are the bytes that were sent. */
function charsetsOf(body: string): readonly Buffer[] {
  return /[\x80-\xff]/.test(body) && !/[^\0-\xff]/.test(body) ? [Buffer.from(body, 'latin1')] : [];
}
