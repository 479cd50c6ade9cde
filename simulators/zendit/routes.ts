import type { ControlBody, Faults } from './faults.ts';
import { noFaults } from './faults.ts';
import { Ledger, Refusal } from './ledger.ts';
import { plansBody } from './plans.ts';
import { purchaseBody, refundBody } from './purchase.ts';

const MAX_PAGE = 1_024;
const CENTS = 100;
const MICROS = 1_000_000;

export interface Call {
  readonly method: string;
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
}

export interface Reply {
  readonly status: number;
  readonly body: unknown;
}

/** Answers one call of the API below `/v1`. @throws Refusal */
export function answerApi(ledger: Ledger, faults: Faults, call: Call): Reply {
  const [, area, ...rest] = call.path.split('/').map(decodeURIComponent);
  if (area === 'balance' && call.method === 'GET') return ok(balanceBody(ledger));
  if (area !== 'esim') throw notFound();
  const [kind = '', id, action] = rest;
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
      return ok(page(call, faults, [...ledger.purchases.values()].map(purchaseBody)));
    case 'GET :id':
      return ok(purchaseBody(ledger.see(id!)));
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

function offers(ledger: Ledger, faults: Faults, call: Call): Reply {
  const country = call.query.get('country');
  const brand = call.query.get('brand');
  const { instead, brokenPages } = faults.offerList;
  const offset = Number(call.query.get('_offset'));
  const breaks = brokenPages[offset] ?? 0;
  if (breaks > 0) {
    brokenPages[offset] = breaks - 1;
    throw new Refusal(503, { errorCode: 'SYSTEM_UNAVAILABLE', message: 'try again later' });
  }
  const chosen = [...(instead ?? ledger.offers.values())].filter(
    (listed) => (country ?? listed.country) === listed.country && (brand ?? listed.brand) === listed.brand,
  );
  return ok(page(call, faults, chosen));
}

function offer(ledger: Ledger, offerId: string): Reply {
  const found = ledger.offers.get(offerId);
  if (!found) throw notFound();
  return ok(found);
}

function plans(ledger: Ledger, faults: Faults, iccid: string): Reply {
  const purchases = ledger.plansOf(iccid);
  if (purchases.length === 0) throw notFound();
  return ok(plansBody(iccid, purchases, faults.plans[iccid] ?? {}));
}

function page(call: Call, faults: Faults, all: readonly unknown[]): Record<string, unknown> {
  const limit = Number(call.query.get('_limit') ?? NaN);
  const offset = Number(call.query.get('_offset') ?? NaN);
  if (!Number.isInteger(limit) || limit < 1 || limit > MAX_PAGE || !Number.isInteger(offset) || offset < 0)
    throw new Refusal(400, {
      errorCode: 'INVALID_REQUEST',
      message: '_limit (1 to 1024) and _offset are required',
      fields: { _limit: '1 to 1024' },
    });
  return {
    limit,
    offset,
    total: all.length,
    list: all.slice(offset, offset + Math.min(limit, faults.maxPageSize)),
  };
}

function balanceBody(ledger: Ledger): Record<string, unknown> {
  const availableBalance = Math.round((ledger.balanceMicros * CENTS) / MICROS);
  return { availableBalance, currency: 'USD', currencyDivisor: CENTS };
}

/** Sets the switches that `control` names. @throws Refusal 400 for a switch that nobody knows */
export function applyControl(ledger: Ledger, faults: Faults, control: ControlBody): void {
  const { offers: offerChanges, balance, reset, ...switches } = control;
  if (reset) Object.assign(faults, noFaults());
  for (const name of Object.keys(switches))
    if (!Object.hasOwn(faults, name))
      throw new Refusal(400, { errorCode: 'INVALID_REQUEST', message: `no switch is called ${name}` });
  Object.assign(faults, switches);
  ledger.adjust({
    ...(offerChanges === undefined ? {} : { offers: offerChanges }),
    ...(balance === undefined ? {} : { balance }),
  });
}

function notFound(): Refusal {
  return new Refusal(404, { errorCode: 'NOT_FOUND', message: 'not found' });
}

function ok(body: unknown): Reply {
  return { status: 200, body };
}
