import type {
  AutoTopupRequest,
  CreateInstallLinkRequest,
  Event,
  EsimPackage,
  ListEsimsData,
  ListEventsData,
  ListOrdersData,
  ListPackagesData,
  ListRefundRequestsData,
  ListRequestsData,
  ListTopupsData,
  PlaceOrderRequest,
  PlaceTopupRequest,
  Problem,
  RequestRefundRequest,
  UpdateEsimRequest,
} from './generated/types.gen.js';

export type {
  AutoTopup,
  Balance,
  CreatedInstallLink,
  Esim,
  EsimPlan,
  EsimWithInstall,
  InstallLink,
  LoggedCall,
  Order,
  QrCode,
  RefundRequest,
  Topup,
  Transaction,
  Usage,
} from './generated/types.gen.js';
export type { CatalogChange, Destination, DroppedPackage, ListedPackage } from './generated/types.gen.js';
export type Package = EsimPackage;
/** An event of the feed, identical to the body of its webhook. `type` is the discriminator. */
export type EsimEvent = Event;
export type EventType = EsimEvent['type'];
export type NewOrder = PlaceOrderRequest;
export type NewTopup = PlaceTopupRequest;
export type NewAutoTopup = AutoTopupRequest;
export type NewInstallLink = CreateInstallLinkRequest;
export type NewRefundRequest = RequestRefundRequest;
export type EsimChanges = UpdateEsimRequest;

type Filters<Data extends { query?: unknown }> = Omit<NonNullable<Data['query']>, 'cursor'>;
export type OrderFilters = Filters<ListOrdersData>;
export type EsimFilters = Filters<ListEsimsData>;
export type TopupFilters = Filters<ListTopupsData>;
export type RefundFilters = Filters<ListRefundRequestsData>;
export type PackageFilters = Omit<Filters<ListPackagesData>, 'shelf'>;
/** A shelf needs `country` or `region`, and has one page. */
export type ShelfFilters = Omit<PackageFilters, 'limit' | 'updated_since'>;
export type CallFilters = Filters<ListRequestsData>;
export type EventFilters = Omit<Filters<ListEventsData>, 'limit'>;

/** Every error code that a response can have; a closed list. */
export type ErrorCode = Problem['code'];
/** An invalid field and the reason. */
export type FieldProblem = NonNullable<Problem['errors']>[number];
