import { ApiProperty } from '@nestjs/swagger';
import { IsIn } from 'class-validator';
import { ShortText } from '../../infra/http/index.js';
import { RECONCILE_ACTIONS, type ReconcileAction } from '../reconcile-action.js';

const MAX_NOTE = 500;

export class ReconcileTopupDto {
  @ApiProperty({
    enum: RECONCILE_ACTIONS,
    description:
      '`requery`: a worker asks the upstream at once. `mark_completed`: the eSIM has it, its price is charged. ' +
      '`mark_failed`: releases its money. Both ask the upstream now and are refused by what it says; where it says ' +
      'nothing, your word counts.',
  })
  @IsIn(RECONCILE_ACTIONS, { message: `must be one of ${RECONCILE_ACTIONS.join(', ')}` })
  action!: ReconcileAction;

  @ApiProperty({ type: String, maxLength: MAX_NOTE, description: 'Why; kept in the audit log.' })
  @ShortText(MAX_NOTE)
  note!: string;
}
