import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import {
  type ControlBody,
  startZenditSimulator,
  type ZenditSimulator,
} from '../../../simulators/zendit/simulator.js';
import { startAnsweringServer } from '../answering-server.js';
import { breachesOf } from './sdk-breaches.js';
import type { SdkShape } from './zendit-sdk-shapes.js';
import { PATIENCE_MS } from '../../harness/eventually.js';

const OFFER = 'ESIM-FR-7D-1GB';
const DISABLED = 'ESIM-CU-7D-1GB';
const PAGE = '_limit=100&_offset=0';

/** Every switch that changes what is said. Those that make answers no Zendit would give are named at the end. */
const SWITCHES: readonly (readonly [string, ControlBody])[] = [
  ['no fault', {}],
  ['purchases and refunds that run', { looks: 50 }],
  ['purchases that fail', { outcomes: ['OUT_OF_STOCK', 'PROVIDER_ERROR'] }],
  ['purchases out of stock', { outOfStock: true }],
  ['an empty wallet', { balance: 0 }],
  ['refunds that fail', { refundOutcome: 'REFUND_NOT_ALLOWED' }],
  ['refunds that the purchase does not tell', { refundInPurchase: false }],
  ['400 for no refund', { noRefundStatus: 400 }],
  ['500 for no refund', { noRefundStatus: 500 }],
  ['400 for an unknown ICCID', { unknownIccidStatus: 400 }],
  ['500 for an unknown ICCID', { unknownIccidStatus: 500 }],
  ['400 for an offer that is not sold', { unknownOfferStatus: 400 }],
  ['refusals without a reason', { vagueDuplicates: true }],
  ['nothing left to sell', { sellsOnly: 0 }],
  ['top-ups with an empty confirmation', { topupConfirmation: 'empty' }],
  ['top-ups without a confirmation', { topupConfirmation: 'absent' }],
  ['plans that leave the list', { endedPlansLeave: true }],
  ['fees', { purchaseFee: 25 }],
  ['fees beside the cost', { purchaseFee: 25, feeBesideCost: true }],
  ['no activation code', { activationCode: 'none' }],
  ['LPA codes', { activationCode: 'lpa', smdpScheme: true }],
  ['a lagging read', { readLagLooks: 1 }],
  ['503', { unavailable: 3 }],
  ['429', { busy: 3 }],
  ['small pages', { maxPageSize: 1 }],
];

let simulator: ZenditSimulator;

beforeEach(async () => {
  simulator = await startZenditSimulator();
});
afterEach(() => simulator.close());

async function call(method: string, path: string, body?: object): Promise<Response> {
  return fetch(`${simulator.baseUrl}${path}`, {
    method,
    headers: { authorization: `Bearer ${simulator.apiKey}`, accept: 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
}

/** One call of every operation and of every way in which it may end; `seen` gets the shapes that were answered. */
async function sayEverything(seen = new Set<SdkShape>()): Promise<string[]> {
  const breaches: string[] = [];
  const check = async (shape: SdkShape, method: string, path: string, body?: object): Promise<void> => {
    const answer = await call(method, path, body);
    const expected = answer.ok ? shape : 'DtoResponseError';
    seen.add(expected);
    const found = breachesOf(expected, await answer.json());
    breaches.push(...found.map((breach) => `${method} ${path} ${answer.status}: ${breach}`));
  };
  const buy = (body: object) => check('DtoESimPurchaseResponse', 'POST', '/esim/purchases', body);
  await check('DtoBalanceResponse', 'GET', '/balance');
  await check('DtoBrandsResponse', 'GET', `/brands?${PAGE}`);
  await check('DtoBrandInfo', 'GET', '/brands/ESIM');
  await check('DtoBrandInfo', 'GET', '/brands/NOBODY');
  await check('DtoESimOffersResponse', 'GET', `/esim/offers?${PAGE}`);
  await check('DtoESimOffersResponse', 'GET', '/esim/offers');
  await check('DtoESimOffer', 'GET', `/esim/offers/${OFFER}`);
  await check('DtoESimOffer', 'GET', '/esim/offers/NOTHING');
  await buy({ offerId: OFFER, transactionId: 'p-1' });
  await buy({ offerId: OFFER, transactionId: 'p-1' });
  await buy({ offerId: OFFER });
  await buy({ offerId: DISABLED, transactionId: 'p-2' });
  await buy({ offerId: OFFER, transactionId: 'p-3', iccid: '0' });
  for (let look = 0; look < 3; look++) await check('DtoESimPurchase', 'GET', '/esim/purchases/p-1');
  const iccid = simulator.state().purchases['p-1']?.iccid ?? '0';
  await buy({ offerId: OFFER, transactionId: 'p-topup', iccid });
  await check('DtoESimPurchase', 'GET', '/esim/purchases/p-topup');
  await check('DtoESimPurchase', 'GET', '/esim/purchases/nothing');
  await check('DtoESimQRCode', 'GET', '/esim/purchases/p-1/qrcode');
  await check('DtoESimQRCode', 'GET', '/esim/purchases/nothing/qrcode');
  for (const plan of [
    {},
    { usedGB: 0.5, startAt: '2026-11-01T00:00:00Z' },
    { usedGB: 1, startAt: new Date().toISOString(), firstInstalledAt: '2026-11-01T00:00:00Z' },
    { gone: true },
    { answer: 500 as const },
  ]) {
    simulator.control({ plans: { [iccid]: plan } });
    await check('DtoESIMPlansResponse', 'GET', `/esim/${iccid}/plans`);
  }
  await check('DtoESIMPlansResponse', 'GET', '/esim/0/plans');
  await check('DtoESimRefundStatus', 'GET', '/esim/purchases/p-1/refund');
  await check('DtoESimRefund', 'POST', '/esim/purchases/p-1/refund');
  await check('DtoESimRefund', 'POST', '/esim/purchases/p-1/refund');
  await check('DtoESimRefundStatus', 'GET', '/esim/purchases/p-1/refund');
  await check('DtoESimPurchase', 'GET', '/esim/purchases/p-1');
  await check('DtoESimPurchasesResponse', 'GET', `/esim/purchases?${PAGE}`);
  await check('DtoTransactionsResponse', 'GET', `/transactions?${PAGE}`);
  await check('DtoTransaction', 'GET', '/transactions/p-1');
  await check('DtoTransaction', 'GET', '/transactions/p-1-refund');
  await check('DtoTransaction', 'GET', '/transactions/nothing');
  await check('DtoResponseError', 'GET', '/nowhere');
  return breaches;
}

describe('every answer of the simulator is as the official SDK has it', () => {
  it.each(SWITCHES)('with %s', async (_what, control) => {
    simulator.control(control);
    expect(await sayEverything()).toEqual([]);
  });

  it('which is asked for each of its operations', async () => {
    const seen = new Set<SdkShape>();
    await sayEverything(seen);
    expect([...seen].sort()).toEqual(
      [
        ...[
          'DtoBalanceResponse',
          'DtoBrandInfo',
          'DtoBrandsResponse',
          'DtoESIMPlansResponse',
          'DtoESimOffer',
        ],
        ...[
          'DtoESimOffersResponse',
          'DtoESimPurchase',
          'DtoESimPurchaseResponse',
          'DtoESimPurchasesResponse',
        ],
        ...['DtoESimQRCode', 'DtoESimRefund', 'DtoESimRefundStatus', 'DtoResponseError', 'DtoTransaction'],
        'DtoTransactionsResponse',
      ].sort(),
    );
  });

  it('and what its webhooks send', async () => {
    const bodies: unknown[] = [];
    const listener = await startAnsweringServer((method, _path, body) => {
      if (method === 'POST') bodies.push(JSON.parse(body));
      return { status: 200, json: {} };
    });
    try {
      simulator.control({ webhookUrl: listener.url, webhookDisordered: true });
      await call('POST', '/esim/purchases', { offerId: OFFER, transactionId: 'p-1' });
      await call('GET', '/esim/purchases/p-1');
      await expect.poll(() => bodies.length, { timeout: PATIENCE_MS }).toBe(2);
      expect(bodies.flatMap((body) => breachesOf('DtoESimPurchase', body))).toEqual([]);
    } finally {
      await listener.close();
    }
  });

  it('except where a switch says that it is not: the check finds that', async () => {
    simulator.control({ numericCodes: true });
    expect(await sayEverything()).toContain('GET /brands/NOBODY 404: DtoResponseError.errorCode is a number');
    simulator.control({ reset: true, badAnswer: 'wrongShape', badAnswers: 1 });
    expect(await sayEverything()).toContain(
      'GET /balance 200: DtoBalanceResponse.availableBalance is missing',
    );
  });
});

describe('lists are filtered as the SDK asks', () => {
  async function listed(path: string): Promise<number> {
    return ((await (await call('GET', path)).json()) as { total: number }).total;
  }

  it('offers by region, type, country and brand', async () => {
    const all = await listed(`/esim/offers?${PAGE}`);
    const [asian, regional, none] = [
      await listed(`/esim/offers?${PAGE}&regions=Asia`),
      await listed(`/esim/offers?${PAGE}&subType=${encodeURIComponent('Regional eSIM')}`),
      await listed(`/esim/offers?${PAGE}&brand=NOBODY`),
    ];
    expect(asian).toBeGreaterThan(0);
    expect(regional).toBeGreaterThan(asian);
    expect(all).toBeGreaterThan(regional);
    expect(none).toBe(0);
  });

  it('purchases and transactions by status and by time', async () => {
    await call('POST', '/esim/purchases', { offerId: OFFER, transactionId: 'p-1' });
    for (const area of ['/esim/purchases', '/transactions']) {
      expect(await listed(`${area}?${PAGE}&status=ACCEPTED`)).toBe(1);
      expect(await listed(`${area}?${PAGE}&status=DONE`)).toBe(0);
      expect(await listed(`${area}?${PAGE}&createdAt=gte2026-01-01T00:00:00Z`)).toBe(1);
      expect(await listed(`${area}?${PAGE}&createdAt=gte2099-01-01T00:00:00Z`)).toBe(0);
    }
  });

  it('and a QR code is an image for who does not ask for JSON', async () => {
    await call('POST', '/esim/purchases', { offerId: OFFER, transactionId: 'p-1' });
    const answer = await fetch(`${simulator.baseUrl}/esim/purchases/p-1/qrcode`, {
      headers: { authorization: `Bearer ${simulator.apiKey}` },
    });
    expect(answer.headers.get('content-type')).toBe('image/png');
  });
});
