import type { ProviderHint } from '../esim-provider.js';

const PART_OF_ORDER = /^(.+)-[1-9]\d{0,3}$/;
const TRANSACTION_ID = /^[\w-]{1,128}$/;

/** The id of the purchase of the `number`-th eSIM of an order, from 1: one eSIM is one purchase. */
export function purchaseIdOf(reference: string, number: number): string {
  return `${reference}-${number}`;
}

/** A webhook's body is a purchase: `<order>-<i>`, or the reference of a top-up as it is. Never throws. */
export function hintsOf(callbackBody: unknown): readonly ProviderHint[] {
  if (typeof callbackBody !== 'object' || callbackBody === null) return [];
  const { transactionId } = callbackBody as { readonly transactionId?: unknown };
  if (typeof transactionId !== 'string' || !TRANSACTION_ID.test(transactionId)) return [];
  return [{ about: 'order', reference: PART_OF_ORDER.exec(transactionId)?.[1] ?? transactionId }];
}
