import { setTimeout as sleep } from 'node:timers/promises';
import { Random } from '../../chaos/random.js';
import type { TestService } from '../harness/index.js';
import { recordEvents } from './support.js';

/** Writers at once; each holds one connection of the process for as long as its transaction is open. */
const WRITERS = 8;
const TRANSACTIONS_EACH = 20;
const LONGEST_TRANSACTION_MS = 150;

const random = new Random(20_261_121);

/** Transactions that record events and stay open for a random time: they commit in any order. */
export async function writeOutOfOrder(service: TestService, partnerId: string): Promise<void> {
  const writer = async (): Promise<void> => {
    for (let i = 0; i < TRANSACTIONS_EACH; i++) {
      const events = Array.from({ length: random.between(1, 3) }, () => ({ partnerId }));
      const openMs = random.between(0, LONGEST_TRANSACTION_MS);
      await recordEvents(service, events, () => sleep(openMs));
    }
  };
  await Promise.all(Array.from({ length: WRITERS }, writer));
}
