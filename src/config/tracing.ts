import type { EnvReader } from './env-reader.js';

/** OpenTelemetry's sampler names (`OTEL_TRACES_SAMPLER`). */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type TraceSampler = (typeof SAMPLERS)[number];

/** Destination of traces (D53). The variables have OpenTelemetry's names and meanings. */
export interface TracingConfig {
  /** Includes the path `/v1/traces`. */
  readonly url: string;
  /** Sent with every export; may contain a credential of the collector. */
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly sampler: TraceSampler;
  /** Share of traces that a ratio sampler keeps: 0 to 1. */
  readonly ratio: number;
}

/** Null when tracing is off. Without an endpoint the other variables are ignored. */
export function readTracingConfig(read: EnvReader): TracingConfig | null {
  if (read.text('OTEL_EXPORTER_OTLP_ENDPOINT') === undefined) return null;
  const endpoint = read.url('OTEL_EXPORTER_OTLP_ENDPOINT', ['http:', 'https:']);
  return {
    url: endpoint === undefined ? '' : tracesUrl(endpoint),
    headers: readHeaders(read),
    serviceName: read.text('OTEL_SERVICE_NAME') ?? 'partner-esim-service',
    sampler: read.choice('OTEL_TRACES_SAMPLER', 'parentbased_always_on', SAMPLERS),
    ratio: readRatio(read),
  };
}

/** The endpoint serves all signals, whose paths are appended to it. */
function tracesUrl(endpoint: string): string {
  const url = new URL(endpoint);
  url.pathname = `${url.pathname.replace(/\/+$/, '')}/v1/traces`;
  return url.href;
}

function readRatio(read: EnvReader): number {
  const text = read.text('OTEL_TRACES_SAMPLER_ARG');
  if (text === undefined) return 1;
  const ratio = Number(text);
  if (/^[\d.]+$/.test(text) && ratio >= 0 && ratio <= 1) return ratio;
  read.problems.push('OTEL_TRACES_SAMPLER_ARG must be a number from 0 to 1');
  return 1;
}

/** `name=value[,name=value]`, values percent-encoded. A problem never repeats a value. */
function readHeaders(read: EnvReader): Readonly<Record<string, string>> {
  const pairs = (read.text('OTEL_EXPORTER_OTLP_HEADERS') ?? '')
    .split(',')
    .filter((pair) => pair.trim() !== '');
  const headers = pairs.map(parseHeader);
  if (headers.every((header) => header !== null)) return Object.fromEntries(headers);
  read.problems.push('OTEL_EXPORTER_OTLP_HEADERS must be name=value[,name=value], values percent-encoded');
  return {};
}

function parseHeader(pair: string): readonly [string, string] | null {
  const [, name, value] = /^\s*([\w!#$%&'*+.^`|~-]+)\s*=\s*([\x21-\x7e]*)\s*$/.exec(pair) ?? [];
  if (name === undefined || value === undefined) return null;
  try {
    const decoded = decodeURIComponent(value);
    return /^[\x20-\x7e]*$/.test(decoded) ? [name.toLowerCase(), decoded] : null;
  } catch {
    return null;
  }
}
