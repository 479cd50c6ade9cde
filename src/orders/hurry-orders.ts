import { Injectable } from '@nestjs/common';
import { HurryRows, InjectWakeUps, WakeUps } from '../infra/queue/index.js';
import { ORDER_WAKE_UPS } from './order-queue.js';

/** Makes open orders due now, because their upstream says that something happened. */
@Injectable()
export class HurryOrders extends HurryRows {
  constructor(@InjectWakeUps(ORDER_WAKE_UPS) wakeUps: WakeUps) {
    super('orders', wakeUps);
  }
}
