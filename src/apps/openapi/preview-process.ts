import { Registry } from 'prom-client';
import type { ProcessResources } from '../process-resources.js';

/**
 * Stands for the resources of a process where nothing is built: in Nest's preview mode providers are registered but
 * not made, so nobody ever looks into these.
 */
export function previewProcess(): ProcessResources {
  const nothing = {} as unknown;
  return {
    role: 'all',
    config: nothing as ProcessResources['config'],
    logger: nothing as ProcessResources['logger'],
    dataSource: nothing as ProcessResources['dataSource'],
    edgePool: nothing as ProcessResources['edgePool'],
    metrics: new Registry(),
    queue: nothing as ProcessResources['queue'],
    close: () => Promise.resolve(),
  };
}
