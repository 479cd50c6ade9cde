import { Counter } from 'prom-client';
import type { CutReason, SocketLimits } from '../infra/http/socket-limits.js';
import type { ProcessResources } from './process-resources.js';

const CUTS = 'http_connections_cut_total';

/**
 * The limits of one port's sockets (D43), its cuts counted in `http_connections_cut_total`. Behind proxies there is no
 * limit for an address: all connections are the proxy's.
 */
export function portLimits(
  { config, metrics }: Pick<ProcessResources, 'config' | 'metrics'>,
  port: string,
  trustProxyHops: number,
): SocketLimits {
  const { sockets } = config;
  const known = metrics.getSingleMetric(CUTS) as Counter<'port' | 'reason'> | undefined;
  const cuts =
    known ??
    new Counter({
      name: CUTS,
      help: 'Connections that this process cut, by port and reason.',
      labelNames: ['port', 'reason'],
      registers: [metrics],
    });
  return {
    ...sockets,
    maxConnectionsPerAddress: trustProxyHops > 0 ? null : sockets.maxConnectionsPerAddress,
    onCut: (reason: CutReason) => cuts.inc({ port, reason }),
  };
}
