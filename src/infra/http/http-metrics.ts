import type { Registry } from 'prom-client';
import { counterIn, histogramIn, LATENCY_SECONDS } from '../metrics.js';
import { type CallRecorder, METHODS } from './edge/index.js';

/**
 * Counts and times the calls of a port, by route, and hands each on to `recorder`. What no route matches is `unmatched`:
 * a caller must not be able to make series (D43).
 */
export function countCalls(registry: Registry, port: string, recorder: CallRecorder): CallRecorder {
  const requests = counterIn(registry, {
    name: 'http_requests_total',
    help: 'Calls that this process answered, by route and status; 499: the caller was gone before the answer.',
    labelNames: ['port', 'method', 'route', 'status'],
  });
  const durations = histogramIn(registry, {
    name: 'http_request_duration_seconds',
    help: 'How long calls took, from the end of their head to the end of their answer, by route.',
    labelNames: ['port', 'method', 'route'],
    buckets: LATENCY_SECONDS,
  });
  return {
    record: (call) => {
      const method = METHODS.has(call.method) ? call.method : 'other';
      const route = call.route ?? 'unmatched';
      requests.inc({ port, method, route, status: call.status });
      durations.observe({ port, method, route }, call.latencyMs / 1_000);
      recorder.record(call);
    },
  };
}
