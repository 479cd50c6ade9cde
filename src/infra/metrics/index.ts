export { METRICS, MetricsModule } from './metrics.module.js';
