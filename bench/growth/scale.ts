import { dayOf } from '../../src/infra/partition-days.js';

/** How much one database is filled with. */
export interface GrowthScale {
  readonly database: string;
  readonly orders: number;
  readonly deliveries: number;
  /** The end of what is filled in: a fill that goes on tomorrow makes the same rows. */
  readonly anchor: Date;
}

export const PARTNERS = 300;
/** Owns a third of everything: whose calls are measured. */
export const BIG_PARTNER = 1;
/** Of a partner and mode. Each event goes to all of them. */
export const ENDPOINTS = 4;

/** Days of orders: longer than a Sandbox order is kept, so that there is something to purge. */
export const ORDER_DAYS = 95;
/** As the settings keep them, besides today. */
export const EVENT_DAYS = { live: 90, sandbox: 30 } as const;
export const ATTEMPT_DAYS = 30;
export const CALL_DAYS = 5;
export const CALLS_PER_ORDER = 3;
/** Of all deliveries. */
const LIVE_SHARE = 0.85;

/** The day of an age in days, and what of it lies before the anchor; milliseconds. */
export function spanOf(anchor: Date, age: number): { readonly fromMs: number; readonly toMs: number } {
  const fromMs = dayOf(anchor, -age).getTime();
  return { fromMs, toMs: Math.min(fromMs + 86_400_000, anchor.getTime()) };
}

export function ordersOfDay({ orders }: GrowthScale): number {
  return Math.max(1, Math.floor(orders / ORDER_DAYS));
}

/** Events of one mode and day; each has ENDPOINTS deliveries. */
export function eventsOfDay({ deliveries }: GrowthScale, mode: 'live' | 'sandbox'): number {
  const share = mode === 'live' ? LIVE_SHARE : 1 - LIVE_SHARE;
  return Math.max(1, Math.floor((deliveries * share) / (EVENT_DAYS[mode] + 1) / ENDPOINTS));
}
