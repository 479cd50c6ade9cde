import { ApiProperty } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { ShortText } from '../../infra/http/index.js';
import {
  RESOLVE_ORDER_ACTIONS,
  RESOLVE_TOPUP_ACTIONS,
  type ResolveOrderAction,
  type ResolveTopupAction,
} from '../resolution-rules.js';

const MAX_NOTE = 500;

export class ReconcileOrderDto {
  @ApiProperty({
    enum: RESOLVE_ORDER_ACTIONS,
    description:
      '`requery`: a worker asks the upstream at once. The others ask it now and end the order. ' +
      'Of a `processing` order `mark_issued` issues what the upstream has, releases the rest, and is 503 while it does ' +
      'not answer; `mark_failed` ends it as failed and releases its money, unless the upstream has eSIMs of it. ' +
      'Of a `canceling` order `mark_issued` means that it was not taken back: it is where it was, with `cancel_failure`; ' +
      '`mark_failed` means that it was: `canceled` and refunded, unless an eSIM is in use. ' +
      'Both are 409 while the upstream is at it, while a worker asks, and for so long after the last call as the ' +
      'upstream may not show what that did; `detail` says which. Where it does not answer, the decision is yours.',
  })
  @IsIn(RESOLVE_ORDER_ACTIONS, { message: `must be one of ${RESOLVE_ORDER_ACTIONS.join(', ')}` })
  action!: ResolveOrderAction;

  @ApiProperty({ type: String, maxLength: MAX_NOTE, description: 'Why; kept in the audit log.' })
  @ShortText(MAX_NOTE)
  note!: string;
}

export class ReconcileTopupDto {
  @ApiProperty({
    enum: RESOLVE_TOPUP_ACTIONS,
    description:
      '`requery`: a worker asks the upstream at once. `mark_completed`: the eSIM has it, its price is charged. ' +
      '`mark_failed`: releases its money. Both ask the upstream now and are refused by what it says; where it says ' +
      'nothing, your word counts.',
  })
  @IsIn(RESOLVE_TOPUP_ACTIONS, { message: `must be one of ${RESOLVE_TOPUP_ACTIONS.join(', ')}` })
  action!: ResolveTopupAction;

  @ApiProperty({ type: String, maxLength: MAX_NOTE, description: 'Why; kept in the audit log.' })
  @ShortText(MAX_NOTE)
  note!: string;
}
