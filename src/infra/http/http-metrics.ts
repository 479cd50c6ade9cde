import type { Registry } from 'prom-client';
import { counterIn, histogramIn, LATENCY_SECONDS } from '../metrics.js';
import { type CallRecorder, type FinishedCall, METHODS } from './edge/index.js';

/**
 * Counts and times a port's calls by route, and passes each to `recorder`. Calls without a route are `unmatched`,
 * because a caller must not be able to create series (D43).
 */
export function countCalls(registry: Registry, port: string, recorder: CallRecorder): CallRecorder {
  const requests = counterIn(registry, {
    name: 'http_requests_total',
    help: 'Calls handled by this process, by route and status. 499: the client closed the connection before the response.',
    labelNames: ['port', 'method', 'route', 'status'],
  });
  const durations = histogramIn(registry, {
    name: 'http_request_duration_seconds',
    help: 'Duration of calls by route, from the end of the request headers to the end of the response.',
    labelNames: ['port', 'method', 'route'],
    buckets: LATENCY_SECONDS,
  });
  let fresh: FinishedCall[] = [];
  const count = (): void => {
    const calls = fresh;
    fresh = [];
    for (const { method: sent, route: template, status, latencyMs } of calls) {
      const method = METHODS.has(sent) ? sent : 'other';
      const route = template ?? 'unmatched';
      requests.inc({ port, method, route, status });
      durations.observe({ port, method, route }, latencyMs / 1_000);
    }
  };
  return {
    record: (call) => {
      // Count all calls at the end of the turn, before any scrape. Counting each among other work costs several times
      // as much.
      if (fresh.push(call) === 1) setImmediate(count);
      recorder.record(call);
    },
  };
}
