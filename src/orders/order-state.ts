export const ORDER_STATUSES = [
  'pending',
  'processing',
  'issued',
  'partially_issued',
  'failed',
  'canceling',
  'canceled',
] as const;
export type OrderStatus = (typeof ORDER_STATUSES)[number];

/** D22. `canceling` returns to where it was when the provider refuses the cancellation. */
const TRANSITIONS: Readonly<Record<OrderStatus, readonly OrderStatus[]>> = {
  pending: ['processing'],
  processing: ['issued', 'partially_issued', 'failed'],
  issued: ['canceling'],
  partially_issued: ['canceling'],
  failed: [],
  canceling: ['canceled', 'issued', 'partially_issued'],
  canceled: [],
};

/** Statuses from which an order may go to `to`; every UPDATE of a status names them in its WHERE. */
export function statusesBefore(to: OrderStatus): readonly OrderStatus[] {
  return ORDER_STATUSES.filter((from) => TRANSITIONS[from].includes(to));
}
