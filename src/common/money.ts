/** An amount in integer minor units of an ISO 4217 currency (D10). `1250 USD` is twelve dollars fifty. */
export interface Money {
  readonly amount: number;
  readonly currency: string;
}

/** A cost in micros of the currency's unit, which is finer than minor units: eSIM Access quotes 1/10,000 USD. */
export interface MicroMoney {
  readonly micros: number;
  readonly currency: string;
}

/** `count` times `unit`. @throws RangeError when the result exceeds the safe integers */
export function multiplyMoney(unit: Money, count: number): Money {
  const amount = unit.amount * count;
  if (!Number.isSafeInteger(amount)) throw new RangeError('money amount is not a safe integer');
  return { amount, currency: unit.currency };
}
