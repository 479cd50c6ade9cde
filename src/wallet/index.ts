/**
 * The prepaid money of live partners (spec section 4, D22, D27); Sandbox has none. Owns the tables `wallets`,
 * `wallet_holds`, `wallet_low_signals`, `ledger_transactions`, `ledger_entries`.
 * Callers: orders and top-ups `hold`, `settle` and `refund` through `Wallet` in their own transaction; the portal team
 * deposits and adjusts through `ManageWallet`, which `partner-admin` calls too; partners read balance and statement.
 * Flow: one statement per movement locks the wallet's row and writes ledger and entries. A wallet that becomes low
 * leaves a signal in the same statement, which the worker turns into an alert.
 */
export { LedgerTransactionEntity, WALLET_ENTITIES, WalletEntity } from './wallet.entity.js';
export {
  WalletAdminModule,
  WalletApiModule,
  WalletModule,
  WalletPortalModule,
  WalletWorkerModule,
} from './wallet.module.js';
export { ManageWallet } from './manage-wallet.js';
export type { ChargeSubject } from './wallet-sql.js';
export { type BalanceStep, WalletsRepository } from './wallets.repository.js';
export { type HoldRequest, Wallet } from './wallet.js';
