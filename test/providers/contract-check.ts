import type { ContractField, FieldType } from './esim-access-contract.js';

const IS_OF_TYPE: Readonly<Record<FieldType, (value: unknown, time: RegExp) => boolean>> = {
  text: (value) => typeof value === 'string',
  integer: (value) => Number.isSafeInteger(value),
  boolean: (value) => typeof value === 'boolean',
  list: (value) => Array.isArray(value),
  time: (value, time) => typeof value === 'string' && time.test(value),
  anything: (value) => value !== undefined,
};

/** Each way in which `value` differs from its contract, by path; empty when it does not. */
export function differences(
  value: unknown,
  contract: readonly ContractField[],
  time: RegExp,
  path = '',
): string[] {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [`${path}: no object`];
  const known = new Set(contract.map(({ name }) => name));
  const invented = Object.keys(value).filter((name) => !known.has(name));
  return [
    ...invented.map((name) => `${path}${name}: stands nowhere`),
    ...contract.flatMap((field) =>
      ofField((value as Record<string, unknown>)[field.name], field, time, path),
    ),
  ];
}

function ofField(value: unknown, field: ContractField, time: RegExp, path: string): string[] {
  const here = `${path}${field.name}`;
  if (value === undefined) return field.presence === 'sometimes' ? [] : [`${here}: missing`];
  if (value === null) return field.presence === 'always' ? [`${here}: null`] : [];
  if (!IS_OF_TYPE[field.type](value, time)) return [`${here}: no ${field.type}`];
  if (field.values && !field.values.includes(value as string))
    return [`${here}: ${JSON.stringify(value)} is no value`];
  if (!field.entries) return [];
  return (value as unknown[]).flatMap((entry) => differences(entry, field.entries!, time, `${here}.`));
}
