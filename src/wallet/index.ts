export { WalletApiModule } from './wallet-api.module.js';
