import { Counter } from 'prom-client';
import type { CutReason, SocketLimits } from '../infra/http/socket-limits.js';
import type { ProcessResources } from './process-resources.js';

const CUTS = 'http_connections_cut_total';

/**
 * Socket limits of one port (D43); closed connections count in `http_connections_cut_total`. Behind proxies there is no
 * limit per address, because all connections come from the proxy.
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
      help: 'Connections closed by this process, by port and reason.',
      labelNames: ['port', 'reason'],
      registers: [metrics],
    });
  return {
    ...sockets,
    maxConnectionsPerAddress: trustProxyHops > 0 ? null : sockets.maxConnectionsPerAddress,
    onCut: (reason: CutReason) => cuts.inc({ port, reason }),
  };
}
