import { ApiKeyEntity } from './api-key.entity.js';

/**
 * API keys; each belongs to a partner and a mode (spec section 2, D12, D15). Owns `api_keys`.
 * The portal team creates, rotates and revokes them on the admin port; a key is shown once and stored as a hash. The
 * key check of every call is in auth; the access log writes `last_used_at`; the worker warns a week before a key
 * expires.
 */
export {
  ApiKeysAdminModule,
  ApiKeysModule,
  ApiKeysPortalModule,
  ApiKeysWorkerModule,
} from './api-keys.module.js';
export { ApiKeysRepository, type KeyTerms, LastUsedRepository } from './api-keys.repository.js';
export { ApiKeysService, type IssuedKey, MAX_ACTIVE_KEYS } from './api-keys.service.js';
export { keyPrefix } from './key-material.js';
export { ApiKeyEntity };

export const API_KEY_ENTITIES = [ApiKeyEntity];
