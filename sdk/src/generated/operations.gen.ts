// Written by npm run sdk:types.
import type * as Api from './types.gen.js';

/** What each operation of the document can be refused with. */
export interface OperationErrors {
  getMe: Api.GetMeErrors;
  listPackages: Api.ListPackagesErrors;
  getPackage: Api.GetPackageErrors;
  placeOrder: Api.PlaceOrderErrors;
  listOrders: Api.ListOrdersErrors;
  getOrder: Api.GetOrderErrors;
  cancelOrder: Api.CancelOrderErrors;
  placeTopup: Api.PlaceTopupErrors;
  listTopups: Api.ListTopupsErrors;
  getTopup: Api.GetTopupErrors;
  listEsims: Api.ListEsimsErrors;
  getEsim: Api.GetEsimErrors;
  getQrCode: Api.GetQrCodeErrors;
  getUsage: Api.GetUsageErrors;
  listTopupPackages: Api.ListTopupPackagesErrors;
  activateEsim: Api.ActivateEsimErrors;
  consumeData: Api.ConsumeDataErrors;
  expireEsim: Api.ExpireEsimErrors;
  listEvents: Api.ListEventsErrors;
  getEvent: Api.GetEventErrors;
  getBalance: Api.GetBalanceErrors;
  listTransactions: Api.ListTransactionsErrors;
  listOwnRequests: Api.ListOwnRequestsErrors;
}
