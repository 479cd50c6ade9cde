import { ApiProperty } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { ShortText } from '../../infra/http/index.js';
import { RECONCILE_ACTIONS, type ReconcileAction } from '../upstream-word.js';

const MAX_NOTE = 500;

export class ReconcileOrderDto {
  @ApiProperty({
    enum: RECONCILE_ACTIONS,
    description:
      '`requery`: a worker asks the upstream at once. The others ask it now and end the order. ' +
      'Of a `processing` order `mark_issued` issues what the upstream has, releases the rest, and is 503 while it does ' +
      'not answer; `mark_failed` ends it as failed and releases its money, unless the upstream has eSIMs of it. ' +
      'Of a `canceling` order `mark_issued` means that it was not taken back: it is where it was, with `cancel_failure`; ' +
      '`mark_failed` means that it was: `canceled` and refunded, unless an eSIM is in use. ' +
      'Both are 409 while the upstream is at it, while a worker asks, and for so long after the last call as the ' +
      'upstream may not show what that did; `detail` says which. Where it does not answer, the decision is yours.',
  })
  @IsIn(RECONCILE_ACTIONS, { message: `must be one of ${RECONCILE_ACTIONS.join(', ')}` })
  action!: ReconcileAction;

  @ApiProperty({ type: String, maxLength: MAX_NOTE, description: 'Why; kept in the audit log.' })
  @ShortText(MAX_NOTE)
  note!: string;
}
