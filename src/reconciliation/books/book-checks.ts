import type { BookCheck } from './book-check.js';
import { LEDGER_CHECKS } from './ledger-checks.js';
import { ORDER_CHECKS } from './order-checks.js';
import { RECORD_CHECKS } from './record-checks.js';
import { TOPUP_CHECKS } from './topup-checks.js';

/** Every invariant of our own books, in the order in which they are reported. */
export const BOOK_CHECKS: readonly BookCheck[] = [
  ...LEDGER_CHECKS,
  ...ORDER_CHECKS,
  ...TOPUP_CHECKS,
  ...RECORD_CHECKS,
];
