import type { EnvReader } from './env-reader.js';

/** How the standard names the ways to choose which traces are kept. */
const SAMPLERS = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type TraceSampler = (typeof SAMPLERS)[number];

/** Where traces go (D53). The variables have the names and the meaning that OpenTelemetry gives them. */
export interface TracingConfig {
  /** With its path: `…/v1/traces`. */
  readonly url: string;
  /** Sent with every export; they may hold a credential of the collector. */
  readonly headers: Readonly<Record<string, string>>;
  readonly serviceName: string;
  readonly sampler: TraceSampler;
  /** Of the traces, how many a sampler with a ratio keeps: 0 to 1. */
  readonly ratio: number;
}

/** Null: nothing is traced. Without an endpoint the other variables say nothing, and are not looked at. */
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

/** The endpoint is that of all signals, whose paths come behind its own. */
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

/** `name=value[,name=value]`, values percent-encoded. A problem never repeats one. */
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
