import { ALERT_ENTITIES } from '../alerts/index.js';
import { API_KEY_ENTITIES } from '../api-keys/index.js';
import { AUDIT_ENTITIES } from '../audit/index.js';
import { CALL_LOG_ENTITIES } from '../call-log/index.js';
import { PackageEntity } from '../catalog/index.js';
import { EsimEntity } from '../esims/index.js';
import { EventEntity } from '../events/index.js';
import { OrderEntity } from '../orders/index.js';
import { PARTNER_ENTITIES } from '../partners/index.js';
import { TopupEntity } from '../topups/index.js';
import { WALLET_ENTITIES } from '../wallet/index.js';
import { CATALOG_SYNC_ENTITIES } from '../catalog-sync/index.js';
import { WEBHOOK_ENTITIES } from '../webhooks/index.js';

/** Every entity, listed by hand: TypeORM's globs load TypeScript and JavaScript twice. */
export const ENTITIES = [
  ...ALERT_ENTITIES,
  ...API_KEY_ENTITIES,
  ...AUDIT_ENTITIES,
  ...CALL_LOG_ENTITIES,
  ...PARTNER_ENTITIES,
  ...WALLET_ENTITIES,
  ...WEBHOOK_ENTITIES,
  ...CATALOG_SYNC_ENTITIES,
  EsimEntity,
  EventEntity,
  OrderEntity,
  PackageEntity,
  TopupEntity,
];
