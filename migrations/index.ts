import { CreatePartnersAndKeys1763700000001 } from './1763700000001-create-partners-and-keys.js';
import { CreateIdempotencyAndCallLog1763700000002 } from './1763700000002-create-idempotency-and-call-log.js';
import { CreateCatalog1763700000003 } from './1763700000003-create-catalog.js';
import { CreateOrdersAndEsims1763700000004 } from './1763700000004-create-orders-and-esims.js';
import { CreateEventsAndWebhooks1763700000005 } from './1763700000005-create-events-and-webhooks.js';
import { PaceWebhooksAndReplay1763700000006 } from './1763700000006-pace-webhooks-and-replay.js';

/** Every migration, oldest first. Listed by hand: TypeORM's globs load TypeScript and JavaScript twice. */
export const MIGRATIONS = [
  CreatePartnersAndKeys1763700000001,
  CreateIdempotencyAndCallLog1763700000002,
  CreateCatalog1763700000003,
  CreateOrdersAndEsims1763700000004,
  CreateEventsAndWebhooks1763700000005,
  PaceWebhooksAndReplay1763700000006,
];
