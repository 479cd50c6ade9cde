import { applyDecorators } from '@nestjs/common';
import { ApiPropertyOptional } from '@nestjs/swagger';
import { IsInt, Max, Min } from 'class-validator';
import { Optional } from '../../infra/http/index.js';

/** Maximum of any package; each package states its own. */
export const MAX_DAYS = 365;

/** Validates `days` of an order or top-up (D60). The package decides whether it takes the number. */
export function Days(): PropertyDecorator {
  return applyDecorators(
    ApiPropertyOptional({
      type: 'integer',
      minimum: 1,
      maximum: MAX_DAYS,
      nullable: true,
      example: null,
      description: 'Number of days, only for a package with `plan.days`. Defaults to `plan.days.min`.',
    }),
    Optional(),
    IsInt({ message: 'must be a whole number' }),
    Min(1, { message: 'must be at least 1' }),
    Max(MAX_DAYS, { message: `must be at most ${MAX_DAYS}` }),
  );
}
