import type { ValueTransformer } from 'typeorm';
import { toSafeIntegerOrNull } from './sql.js';

/** `bigint` columns as numbers. @throws RangeError on reading a value outside the safe integers. */
export const bigintColumn: ValueTransformer = {
  to: (value: number | null | undefined) => value,
  from: (value: string | null) => toSafeIntegerOrNull(value),
};
