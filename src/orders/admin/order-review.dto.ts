import { ApiProperty } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { ShortText } from '../../infra/http/index.js';
import { RECONCILE_ACTIONS, type ReconcileAction } from '../reconcile-order.js';

const MAX_NOTE = 500;

export class ReconcileOrderDto {
  @ApiProperty({
    enum: RECONCILE_ACTIONS,
    description:
      '`requery`: a worker asks the upstream at once. `mark_issued`: asks now, and issues what the upstream names. ' +
      '`mark_failed`: ends the order as failed and releases its money.',
  })
  @IsIn(RECONCILE_ACTIONS, { message: `must be one of ${RECONCILE_ACTIONS.join(', ')}` })
  action!: ReconcileAction;

  @ApiProperty({ type: String, maxLength: MAX_NOTE, description: 'Why; kept in the audit log.' })
  @ShortText(MAX_NOTE)
  note!: string;
}
