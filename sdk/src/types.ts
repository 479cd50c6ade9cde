import type {
  BalanceResponse,
  CallResponse,
  EsimResponse,
  EsimWithInstallResponse,
  EventResponse,
  ListEsimsData,
  ListEventsData,
  ListOrdersData,
  ListOwnRequestsData,
  ListPackagesData,
  ListTopupsData,
  OrderResponse,
  PackageResponse,
  PlaceOrderDto,
  PlaceTopupDto,
  Problem,
  QrCodeResponse,
  TopupResponse,
  TransactionResponse,
  UsageResponse,
} from './generated/types.gen.js';

export type Order = OrderResponse;
export type Esim = EsimResponse;
export type EsimWithInstall = EsimWithInstallResponse;
export type QrCode = QrCodeResponse;
export type Usage = UsageResponse;
export type Topup = TopupResponse;
export type Package = PackageResponse;
export type Balance = BalanceResponse;
export type Transaction = TransactionResponse;
/** A call of your own, as the service logged it. */
export type LoggedCall = CallResponse;
/** An event of the feed, which is the very body of its webhook; `type` tells which. */
export type EsimEvent = EventResponse;
export type EventType = EsimEvent['type'];
export type NewOrder = PlaceOrderDto;
export type NewTopup = PlaceTopupDto;

type Filters<Data extends { query?: unknown }> = Omit<NonNullable<Data['query']>, 'cursor'>;
export type OrderFilters = Filters<ListOrdersData>;
export type EsimFilters = Filters<ListEsimsData>;
export type TopupFilters = Filters<ListTopupsData>;
export type PackageFilters = Filters<ListPackagesData>;
export type CallFilters = Filters<ListOwnRequestsData>;
export type EventFilters = Omit<Filters<ListEventsData>, 'limit'>;

/** Every code that an answer can have; a closed list. */
export type ErrorCode = Problem['code'];
/** A field that was refused, and why. */
export type FieldProblem = NonNullable<Problem['errors']>[number];
