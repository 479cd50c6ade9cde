import { SDK_ENUMS, SDK_SHAPES, type SdkShape } from './zendit-sdk-shapes.js';

/** Where an answer is not as the SDK has it: required fields that are missing, unknown ones, wrong types and values. */
export function breachesOf(shape: SdkShape, answer: unknown, path: string = shape): readonly string[] {
  if (typeof answer !== 'object' || answer === null || Array.isArray(answer)) return [`${path} is no object`];
  const fields: Readonly<Record<string, string>> = SDK_SHAPES[shape];
  const unknown = Object.keys(answer).filter((field) => !Object.hasOwn(fields, field));
  return [
    ...unknown.map((field) => `${path}.${field} is unknown`),
    ...Object.entries(fields).flatMap(([field, type]) => {
      const value = (answer as Readonly<Record<string, unknown>>)[field];
      if (value === undefined) return type.endsWith('?') ? [] : [`${path}.${field} is missing`];
      return breachesOfValue(type.replace(/\?$/, ''), value, `${path}.${field}`);
    }),
  ];
}

function breachesOfValue(type: string, value: unknown, path: string): readonly string[] {
  if (type.endsWith('[]')) {
    if (!Array.isArray(value)) return [`${path} is no list`];
    return value.flatMap((item, i) => breachesOfValue(type.slice(0, -2), item, `${path}[${i}]`));
  }
  if (Object.hasOwn(SDK_SHAPES, type)) return breachesOf(type as SdkShape, value, path);
  const known = SDK_ENUMS[type];
  if (known) return known.includes(value as string) ? [] : [`${path} is ${String(value)}`];
  if (type === 'map of string') {
    const isMap = typeof value === 'object' && value !== null && !Array.isArray(value);
    return isMap && Object.values(value).every((each) => typeof each === 'string')
      ? []
      : [`${path} is no map`];
  }
  return typeof value === type ? [] : [`${path} is a ${value === null ? 'null' : typeof value}`];
}
