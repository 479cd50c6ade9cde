import { newId } from '../../src/common/ids.js';
import type { NewEvent } from '../../src/events/index.js';

const MARK = '"iccid":"';

/** An event that carries its number, so that the receiver knows which one has come. */
export function numberedEvent(partnerId: string, number: number): NewEvent {
  return {
    type: 'esim.activated',
    partnerId,
    mode: 'sandbox',
    happenedAt: new Date(),
    data: { esim_id: newId('esim'), order_id: newId('ord'), iccid: String(number).padStart(19, '0') },
  };
}

/** The number in the body of such an event. @throws Error when there is none */
export function numberOfBody(body: Buffer): number {
  const at = body.indexOf(MARK);
  if (at < 0) throw new Error('a webhook without a number');
  return Number(body.toString('latin1', at + MARK.length, at + MARK.length + 19));
}
