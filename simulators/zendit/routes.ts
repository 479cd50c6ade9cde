import { brandBody, brandsOf } from './brands.ts';
import type { Offer } from './contract.ts';
import type { ControlBody, Faults } from './faults.ts';
import { noFaults } from './faults.ts';
import { type Ledger, Refusal, withStatus } from './ledger.ts';
import { isCreatedAsAsked, page, passes } from './listing.ts';
import { plansBody } from './plans.ts';
import { purchaseBody } from './purchase.ts';
import { refundBody, transactionBody, transactionsOf } from './transactions.ts';

const CENTS = 100;
const MICROS = 1_000_000;
/** One white pixel. */
const QR_CODE =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  /** The requested media type; a QR code is an image unless JSON is requested. */
  readonly accept: string;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Reply {
  readonly status: number;
  /** JSON, or the bytes of an image. */
  readonly body: unknown;
}

/** Handles one call of the API below `/v1`. @throws Refusal */
export function answerApi(ledger: Ledger, faults: Faults, call: Call): Reply {
  const [, area, ...rest] = call.path.split('/').map(decodeURIComponent);
  if (area === 'esim') return answerEsims(ledger, faults, call, rest);
  if (call.method !== 'GET') throw notFound();
  if (area === 'balance') return ok(balanceBody(ledger));
  if (area === 'brands') return brands(ledger, faults, call, rest[0]);
  if (area === 'transactions') return transactions(ledger, faults, call, rest[0]);
  throw notFound();
}

function answerEsims(ledger: Ledger, faults: Faults, call: Call, path: readonly string[]): Reply {
  const [kind = '', id, action] = path;
  if (kind === 'offers' && call.method === 'GET')
    return id === undefined ? offers(ledger, faults, call) : offer(ledger, id);
  if (kind === 'purchases') return answerPurchases(ledger, faults, call, id, action);
  if (id === 'plans' && call.method === 'GET') return plans(ledger, faults, kind);
  throw notFound();
}

function answerPurchases(
  ledger: Ledger,
  faults: Faults,
  call: Call,
  id: string | undefined,
  action: string | undefined,
): Reply {
  const route = [call.method, id === undefined ? '' : ':id', action ?? ''].join(' ').trim();
  switch (route) {
    case 'POST': {
      const { transactionId } = ledger.buy(call.body);
      return ok({ status: 'ACCEPTED', transactionId });
    }
    case 'GET':
      return ok(page(call.query, faults, purchases(ledger, faults, call)));
    case 'GET :id':
      return ok(purchaseBody(ledger.see(id!), faults));
    case 'GET :id qrcode':
      return qrCode(ledger, call, id!);
    case 'POST :id refund':
      return ok({ status: ledger.startRefund(id!).status });
    case 'GET :id refund': {
      const { purchase, refund } = ledger.seeRefund(id!);
      return ok(refundBody(purchase, refund));
    }
    default:
      throw notFound();
  }
}

function purchases(ledger: Ledger, faults: Faults, { query }: Call): readonly unknown[] {
  return [...ledger.purchases.values()]
    .filter(
      ({ status, createdAtMs }) => passes(query, 'status', status) && isCreatedAsAsked(query, createdAtMs),
    )
    .map((purchase) => purchaseBody(purchase, faults));
}

function qrCode(ledger: Ledger, { accept }: Call, transactionId: string): Reply {
  if (ledger.see(transactionId).status !== 'DONE') throw withStatus(400, 'the transaction is not DONE');
  return ok(accept.includes('json') ? { imageBase64: QR_CODE } : Buffer.from(QR_CODE, 'base64'));
}

function transactions(ledger: Ledger, faults: Faults, { query }: Call, id: string | undefined): Reply {
  const all = transactionsOf(ledger);
  if (id !== undefined) {
    const found = all.find(({ transactionId }) => transactionId === id);
    if (!found) throw notFound();
    return ok(transactionBody(found));
  }
  const chosen = all.filter(
    ({ type, productType, progress }) =>
      passes(query, 'type', type) &&
      passes(query, 'productType', productType) &&
      passes(query, 'status', progress.status) &&
      isCreatedAsAsked(query, progress.createdAtMs),
  );
  return ok(page(query, faults, chosen.map(transactionBody)));
}

function brands(ledger: Ledger, faults: Faults, { query }: Call, id: string | undefined): Reply {
  const all = brandsOf(
    [...ledger.offers.values()].filter(({ country }) => passes(query, 'country', country)),
  );
  if (id === undefined) return ok(page(query, faults, all));
  const found = all.find(({ brand }) => brand === id);
  if (!found) throw notFound();
  return ok(brandBody(found));
}

function offers(ledger: Ledger, faults: Faults, { query }: Call): Reply {
  const { instead, brokenPages } = faults.offerList;
  const offset = Number(query.get('_offset'));
  const breaks = brokenPages[offset] ?? 0;
  if (breaks > 0) {
    brokenPages[offset] = breaks - 1;
    throw new Refusal(503, { errorCode: 'SYSTEM_UNAVAILABLE', message: 'try again later', fields: {} });
  }
  const chosen = [...(instead ?? ledger.offers.values())].filter(
    ({ country, brand, regions, subTypes }) =>
      passes(query, 'country', country) &&
      passes(query, 'brand', brand) &&
      passes(query, 'regions', ...regions) &&
      passes(query, 'subType', ...subTypes),
  );
  return ok(page(query, faults, chosen.map(offerBody)));
}

function offer(ledger: Ledger, offerId: string): Reply {
  const found = ledger.offers.get(offerId);
  if (!found) throw notFound();
  return ok(offerBody(found));
}

/** No Zendit document names a network: an offer has only countries and speeds. */
function offerBody(listed: Offer): Record<string, unknown> {
  return { ...listed, roaming: listed.roaming.map(({ country, dataSpeeds }) => ({ country, dataSpeeds })) };
}

function plans(ledger: Ledger, faults: Faults, iccid: string): Reply {
  const owned = ledger.plansOf(iccid);
  if (owned.length === 0) throw withStatus(faults.unknownIccidStatus, 'no such ICCID');
  const reading = faults.plans[iccid] ?? {};
  if (reading.answer === 'illFormed') return ok(['not', 'an', 'object']);
  if (reading.answer !== undefined) throw withStatus(reading.answer, 'the plans cannot be read');
  return ok(plansBody(iccid, owned, reading, faults));
}

function balanceBody(ledger: Ledger): Record<string, unknown> {
  const availableBalance = Math.round((ledger.balanceMicros * CENTS) / MICROS);
  return { availableBalance, currency: 'USD', currencyDivisor: CENTS };
}

/** Sets the switches named in `control`. @throws Refusal 400 for an unknown switch */
export function applyControl(ledger: Ledger, faults: Faults, control: ControlBody): void {
  const { offers: offerChanges, balance, reset, ...switches } = control;
  if (reset) Object.assign(faults, noFaults());
  for (const name of Object.keys(switches))
    if (!Object.hasOwn(faults, name))
      throw new Refusal(400, {
        errorCode: 'INVALID_REQUEST',
        message: `no switch is called ${name}`,
        fields: { [name]: 'unknown' },
      });
  Object.assign(faults, switches);
  ledger.adjust({
    ...(offerChanges === undefined ? {} : { offers: offerChanges }),
    ...(balance === undefined ? {} : { balance }),
  });
}

function notFound(): Refusal {
  return withStatus(404, 'not found');
}

function ok(body: unknown): Reply {
  return { status: 200, body };
}
