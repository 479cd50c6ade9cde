import { type FindOperator, In } from 'typeorm';
import type { Mode } from '../../common/mode.js';

/** One mode or several as a condition on a column. */
export function modeIn(mode: Mode | readonly Mode[]): Mode | FindOperator<Mode> {
  return typeof mode === 'string' ? mode : In([...mode]);
}
