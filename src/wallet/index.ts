import { LedgerTransactionEntity } from './ledger-transaction.entity.js';
import { WalletEntity } from './wallet.entity.js';

export { WalletAdminModule } from './admin/wallet-admin.module.js';
export { WalletApiModule } from './api/wallet-api.module.js';
export type { ChargeSubject } from './charge-subject.js';
export { type HoldRequest, Wallet } from './wallet.js';
export { WalletWorkerModule } from './worker/wallet-worker.module.js';
export { WalletModule } from './wallet.module.js';

export const WALLET_ENTITIES = [WalletEntity, LedgerTransactionEntity];
