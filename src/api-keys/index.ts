import { ApiKeyEntity } from './api-key.entity.js';

export { ApiKeysAdminModule, ApiKeysModule, ApiKeysWorkerModule } from './api-keys.module.js';
export { ApiKeysRepository, type KeyTerms } from './api-keys.repository.js';
export { type IssuedKey, KeyIssuer, MAX_ACTIVE_KEYS } from './key-issuer.js';
export { keyPrefix } from './key-material.js';
export { LastUsedRepository } from './key-uses.repository.js';
export { ApiKeyEntity };

export const API_KEY_ENTITIES = [ApiKeyEntity];
