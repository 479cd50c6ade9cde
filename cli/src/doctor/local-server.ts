import { randomBytes } from 'node:crypto';
import { LocalServer } from '../listen/local-delivery.js';
import type { Finding } from './finding.js';

const TIMEOUT_MS = 10_000;
const SECRET_CURE = 'give it the secret that `esim listen --print-secret` prints';
const LETTERS = '0123456789ABCDEFGHJKMNPQRSTVWXYZ';

/**
 * Sends one test event with a valid signature and one with an invalid signature. A receiver must accept the first and
 * reject the second. The event type is that of the portal's test, which handlers ignore. Each event has its own id.
 * Otherwise a receiver that skips known ids would accept the second one without checking its signature.
 */
export async function localServerFinding(url: URL, secret: string): Promise<Finding> {
  const check = 'local server';
  // People send this output to support, so leave out the parts of the URL that may be secret.
  const shown = `${url.origin}${url.pathname}`;
  const signed = await sendTest(url, secret);
  if (!/^\d{3}$/.test(signed)) {
    const why = signed === 'ECONNREFUSED' ? 'nothing is listening there' : 'it does not respond';
    return { check, status: 'bad', detail: `${shown}: ${why} (${signed})`, facts: { signed } };
  }
  const wronglySigned = await sendTest(url, `${secret}x`);
  const got = `${shown}: returned ${signed} to a signed test event and ${wronglySigned} to a wrongly signed one`;
  const { status, says } = judge(signed, wronglySigned);
  const detail = says === null ? got : `${got}: ${says}`;
  return { check, status, detail, facts: { signed, wrongly_signed: wronglySigned } };
}

function judge(signed: string, wronglySigned: string): Pick<Finding, 'status'> & { says: string | null } {
  // A server that accepts an invalid signature is open to everybody, however it treats valid ones.
  if (wronglySigned.startsWith('2'))
    return {
      status: 'bad',
      says: 'it accepts unsigned requests. Verify the signature before anything else.',
    };
  if (signed === '404' || signed === '405')
    return {
      status: 'bad',
      says: `check that the path is correct and accepts POST. If it rejected the signature, ${SECRET_CURE}.`,
    };
  if (signed.startsWith('4'))
    return { status: 'bad', says: `it rejects signed events. To fix it, ${SECRET_CURE}.` };
  if (!signed.startsWith('2')) return { status: 'bad', says: 'it must return 2xx to a signed event.' };
  if (!wronglySigned.startsWith('4'))
    return { status: 'warn', says: 'it should return 4xx to a wrong signature.' };
  return { status: 'ok', says: null };
}

async function sendTest(url: URL, secret: string): Promise<string> {
  const server = new LocalServer(url, secret, TIMEOUT_MS);
  try {
    const id = `evt_${Array.from(randomBytes(26), (byte) => LETTERS[byte % LETTERS.length]).join('')}`;
    const created_at = new Date().toISOString();
    const event = { id, type: 'webhook.test', created_at, data: { endpoint_id: 'whe_esim_doctor' } };
    return (await server.deliver(event)).outcome;
  } finally {
    server.close();
  }
}
