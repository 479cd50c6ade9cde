import { createHmac } from 'node:crypto';
import { newSigningSecret } from '../../src/webhooks/signature.js';
import { signWebhook } from '../../src/webhooks/index.js';

/** One request as the receiver sees it, and the expected verdict. */
export interface SignatureVector {
  readonly name: string;
  readonly header: string | null;
  /** The raw bytes in base64. */
  readonly body: string;
  readonly secret: string;
  /** The receiver's clock in Unix seconds, or null for the real one. */
  readonly now: number | null;
  readonly expected: boolean;
}

const NOW = 1_795_080_600;
const secret = newSigningSecret();
const otherSecret = newSigningSecret();
/** Neither canonical JSON nor ASCII, so that only the raw bytes match this signature. */
const body = Buffer.from('{"id":"evt_1", "data":{"n":1.0,"name":"Zoë 🦊","path":"a\\/b"}}\n');

const sign = (timestampSeconds: number, secrets: readonly string[] = [secret]): string =>
  signWebhook({ timestampSeconds, body, secrets });
/** A correct signature for a `t` that we never send, which only the check of `t` can refuse. */
const signText = (t: string): string =>
  `t=${t},v1=${createHmac('sha256', secret).update(`${t}.`).update(body).digest('hex')}`;
const valid = sign(NOW);
const signature = valid.slice(valid.indexOf('v1='));

type Difference = Partial<Omit<SignatureVector, 'name' | 'expected' | 'body'>> & { readonly body?: Buffer };

function vector(expected: boolean, name: string, difference: Difference = {}): SignatureVector {
  const request = { header: valid, body, secret, now: NOW, ...difference };
  return { ...request, name, expected, body: request.body.toString('base64') };
}
const accepted = (name: string, difference?: Difference): SignatureVector => vector(true, name, difference);
const refused = (name: string, difference?: Difference): SignatureVector => vector(false, name, difference);

/** The service's own verifier and the functions of the page agree on these. Valid for nine minutes. */
export const sharedVectors = (realNow = Math.floor(Date.now() / 1_000)): readonly SignatureVector[] => [
  accepted('valid'),
  accepted('300 s old', { now: NOW + 300 }),
  accepted('300 s in the future', { now: NOW - 300 }),
  accepted('two v1, the first valid', { header: sign(NOW, [secret, otherSecret]) }),
  accepted('two v1, the second valid', { header: sign(NOW, [otherSecret, secret]) }),
  accepted('a short v1 before the valid one', { header: `t=${NOW},v1=00,${signature}` }),
  accepted('a blank after the comma', { header: valid.replace(',', ', ') }),
  accepted('an unknown scheme beside it', { header: `${valid},v0=00` }),
  accepted('names without a value beside it', { header: `t,v1,${valid}` }),
  accepted('an empty body', {
    body: Buffer.alloc(0),
    header: signWebhook({ timestampSeconds: NOW, body: '', secrets: [secret] }),
  }),
  accepted("valid by the receiver's own clock", { header: sign(realNow + 240), now: null }),
  refused('an hour old by the own clock', { header: sign(realNow - 3_600), now: null }),
  refused('301 s old', { now: NOW + 301 }),
  refused('301 s in the future', { now: NOW - 301 }),
  refused('the body altered by one byte', { body: Buffer.from(body.toString().replace('1', '2')) }),
  refused('the body parsed and written again', {
    body: Buffer.from(JSON.stringify(JSON.parse(body.toString()))),
  }),
  refused('t altered', { header: `t=${NOW + 1},${signature}` }),
  refused('t missing', { header: signature }),
  refused('t empty', { header: signText('') }),
  refused('t twice', { header: `t=${NOW},${valid}` }),
  refused('t no number', { header: signText('soon') }),
  refused('t with a sign', { header: signText(`+${NOW}`) }),
  refused('t in other digits', { header: signText(arabicDigits(NOW)) }),
  refused('t with a fraction', { header: signText(`${NOW}.0`) }),
  refused('t beyond every number', { header: signText('9'.repeat(40)) }),
  refused('v1 missing', { header: `t=${NOW}` }),
  refused('v1 empty', { header: `t=${NOW},v1=` }),
  refused('v1 shorter', { header: valid.slice(0, -1) }),
  refused('v1 longer', { header: `${valid}0` }),
  refused('v1 under another scheme', { header: valid.replace('v1=', 'v0=') }),
  refused('v1 not ASCII', { header: `t=${NOW},v1=${'é'.repeat(64)}` }),
  refused('two v1, none valid', { header: sign(NOW, [otherSecret, otherSecret]) }),
  refused('the header empty', { header: '' }),
  refused('the header noise', { header: ',,==,v1,t' }),
  refused('the secret without its prefix', { secret: secret.slice('whsec_'.length) }),
  refused('another secret', { secret: otherSecret }),
];

/** Vectors where the page is stricter than the service's own verifier. */
export const STRICTER_VECTORS: readonly SignatureVector[] = [
  refused('no header', { header: null }),
  refused('no secret, and a signature made without one', { secret: '', header: sign(NOW, ['']) }),
];

function arabicDigits(value: number): string {
  return String(value).replace(/\d/g, (digit) => String.fromCodePoint(0x660 + Number(digit)));
}
