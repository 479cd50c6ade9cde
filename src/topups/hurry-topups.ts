import { Injectable } from '@nestjs/common';
import { HurryRows, InjectWakeUps, WakeUps } from '../infra/queue/index.js';
import { TOPUP_WAKE_UPS } from './topup-queue.js';

/** Makes open top-ups due now, because their upstream says that something happened. */
@Injectable()
export class HurryTopups extends HurryRows {
  constructor(@InjectWakeUps(TOPUP_WAKE_UPS) wakeUps: WakeUps) {
    super('topups', wakeUps);
  }
}
