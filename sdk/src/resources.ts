import { type List, listOf, type PlanPage } from './list.js';
import type { CallOptions, Transport, WriteOptions } from './transport.js';
import type {
  AutoTopup,
  Balance,
  CallFilters,
  CatalogChange,
  CreatedInstallLink,
  Destination,
  DroppedPackage,
  Esim,
  EsimChanges,
  EsimFilters,
  EsimPlan,
  EsimWithInstall,
  InstallLink,
  ListedPackage,
  LoggedCall,
  NewAutoTopup,
  NewInstallLink,
  NewRefundRequest,
  Order,
  Package,
  PackageFilters,
  QrCode,
  RefundFilters,
  RefundRequest,
  ShelfFilters,
  Transaction,
  Usage,
} from './types.js';

/** Reads one object. */
export async function get<T>(transport: Transport, path: string, options?: CallOptions): Promise<T> {
  return (await transport.send({ ...options, method: 'GET', path })).body.data as T;
}

/** Sends a change. It takes effect at most once, however often the call is retried. */
export async function post<T>(
  transport: Transport,
  path: string,
  body: unknown,
  options?: WriteOptions,
): Promise<T> {
  return (await transport.send({ ...options, method: 'POST', path, body })).body.data as T;
}

/** Replaces or deletes one object. A retry changes nothing more, so it needs no idempotency key. */
async function write<T>(
  transport: Transport,
  call: { readonly method: 'PUT' | 'DELETE'; readonly path: string; readonly body?: unknown },
  options?: CallOptions,
): Promise<T> {
  return (await transport.send({ ...options, ...call })).body.data as T;
}

/** Encodes an id as a path segment. */
export const part = encodeURIComponent;

/** The log of your own calls in the key's mode, newest first. Reading the log is not logged. */
export class Requests {
  constructor(private readonly transport: Transport) {}

  list(filters?: CallFilters, options?: CallOptions): List<LoggedCall> {
    return listOf(this.transport, '/requests', filters, options);
  }
}

export interface Shelf {
  readonly data: readonly ListedPackage[];
  readonly dropped: readonly DroppedPackage[];
}

export interface ChangesPage {
  readonly data: readonly CatalogChange[];
  readonly hasMore: boolean;
  /** Never null, even if the page is empty. */
  readonly nextCursor: string;
}

export class Catalog {
  constructor(private readonly transport: Transport) {}

  list(filters?: PackageFilters, options?: CallOptions): List<Package> {
    return listOf(this.transport, '/catalog', filters, options);
  }

  /** @param options `days` shows price, data and validity of that many days, for a package with `plan.days` */
  get(packageId: string, options?: CallOptions & { readonly days?: number }): Promise<Package> {
    const query = options?.days === undefined ? '' : `?days=${options.days}`;
    return get(this.transport, `/catalog/${part(packageId)}${query}`, options);
  }

  /** The packages on sale that no other one dominates, best rank first, and the others with a better one each. */
  async shelf(filters: ShelfFilters, options?: CallOptions): Promise<Shelf> {
    const query = { ...filters, shelf: 'true' };
    const { body } = await this.transport.send({ ...options, method: 'GET', path: '/catalog', query });
    return { data: body.data as ListedPackage[], dropped: body.dropped as DroppedPackage[] };
  }

  /**
   * Returns one page of changes, oldest first. Store `nextCursor`, and pass it as `after` to continue.
   * @throws EsimApiError `invalid_cursor` if changes after the cursor are no longer kept: copy the catalog again
   */
  async changes(query: { after?: string; limit?: number } = {}, options?: CallOptions): Promise<ChangesPage> {
    const { body } = await this.transport.send({
      ...options,
      method: 'GET',
      path: '/catalog/changes',
      query,
    });
    return {
      data: body.data as CatalogChange[],
      hasMore: body.has_more ?? false,
      nextCursor: body.next_cursor!,
    };
  }

  /** The countries and regions with packages on sale, and `global`. */
  destinations(options?: CallOptions): Promise<readonly Destination[]> {
    return get(this.transport, '/destinations', options);
  }
}

export class Esims {
  constructor(private readonly transport: Transport) {}

  list(filters?: EsimFilters, options?: CallOptions): List<Esim> {
    return listOf(this.transport, '/esims', filters, options);
  }

  /** Includes install data. Do not log it. */
  get(id: string, options?: CallOptions): Promise<EsimWithInstall> {
    return get(this.transport, `/esims/${part(id)}`, options);
  }

  qr(id: string, options?: CallOptions): Promise<QrCode> {
    return get(this.transport, `/esims/${part(id)}/qr`, options);
  }

  /** Changes the given fields; null removes the label, or all metadata. */
  async update(id: string, changes: EsimChanges, options?: CallOptions): Promise<Esim> {
    const call = { ...options, method: 'PATCH', path: `/esims/${part(id)}`, body: changes } as const;
    return (await this.transport.send(call)).body.data as Esim;
  }

  /**
   * Requests a suspension. The eSIM has `pending_action` until the wholesaler confirms.
   * @throws EsimApiError `not_supported` unless the eSIM's `actions` have `suspend`
   */
  suspend(id: string, request: { reason?: string } = {}, options?: WriteOptions): Promise<Esim> {
    return post(this.transport, `/esims/${part(id)}/suspend`, request, options);
  }

  /** Ends a suspension, like `suspend`. */
  resume(id: string, request: { reason?: string } = {}, options?: WriteOptions): Promise<Esim> {
    return post(this.transport, `/esims/${part(id)}/resume`, request, options);
  }

  /** Ends the eSIM for ever without a refund, like `suspend`. */
  revoke(id: string, request: { reason?: string } = {}, options?: WriteOptions): Promise<Esim> {
    return post(this.transport, `/esims/${part(id)}/revoke`, request, options);
  }

  /** Returns the order of the new eSIM. The refund of the old one pays for it. */
  replace(id: string, options?: WriteOptions): Promise<Order> {
    return post(this.transport, `/esims/${part(id)}/replace`, undefined, options);
  }

  usage(id: string, options?: CallOptions): Promise<Usage> {
    return get(this.transport, `/esims/${part(id)}/usage`, options);
  }

  /** The order's plan, then those of the completed top-ups. */
  plans(id: string, options?: CallOptions): List<EsimPlan, PlanPage> {
    return listOf<EsimPlan, PlanPage>(this.transport, `/esims/${part(id)}/plans`, {}, options);
  }

  /** Packages that currently fit this eSIM. */
  topupPackages(id: string, options?: CallOptions): List<Package> {
    return listOf(this.transport, `/esims/${part(id)}/topup-packages`, {}, options);
  }

  /** The rule of the eSIM's automatic top-ups. @throws EsimApiError `not_found` if it has none */
  autoTopup(id: string, options?: CallOptions): Promise<AutoTopup> {
    return get(this.transport, `/esims/${part(id)}/auto-topup`, options);
  }

  /** Tops the eSIM up whenever its usage crosses `at_percent`, within the rule's limits. */
  setAutoTopup(id: string, body: NewAutoTopup, options?: CallOptions): Promise<AutoTopup> {
    return write(this.transport, { method: 'PUT', path: `/esims/${part(id)}/auto-topup`, body }, options);
  }

  /** Prevents further automatic top-ups. */
  async deleteAutoTopup(id: string, options?: CallOptions): Promise<void> {
    await write(this.transport, { method: 'DELETE', path: `/esims/${part(id)}/auto-topup` }, options);
  }

  /**
   * Creates a link to a page that shows the traveler how to install the eSIM. Only this result has `url` and
   * `access_code`; they are null if an earlier call with the same idempotency key has created the link.
   * @throws EsimApiError `esim_expired`, `esim_not_ready` if the eSIM is canceled, `limit_reached`, `not_supported` if
   * install links are not set up
   */
  createInstallLink(
    id: string,
    terms: NewInstallLink = {},
    options?: WriteOptions,
  ): Promise<CreatedInstallLink> {
    return post(this.transport, `/esims/${part(id)}/install-links`, terms, options);
  }

  installLinks(id: string, options?: CallOptions): List<InstallLink> {
    return listOf(this.transport, `/esims/${part(id)}/install-links`, {}, options);
  }

  installLink(id: string, linkId: string, options?: CallOptions): Promise<InstallLink> {
    return get(this.transport, `/esims/${part(id)}/install-links/${part(linkId)}`, options);
  }

  /** Ends a link. An eSIM that is already on a phone keeps working. @throws EsimApiError `not_found` for an ended link */
  async revokeInstallLink(id: string, linkId: string, options?: CallOptions): Promise<void> {
    const path = `/esims/${part(id)}/install-links/${part(linkId)}`;
    await write(this.transport, { method: 'DELETE', path }, options);
  }
}

/** Simulates the device of a Sandbox eSIM. */
export class Sandbox {
  constructor(private readonly transport: Transport) {}

  activate(esimId: string, options?: WriteOptions): Promise<Esim> {
    return post(this.transport, `/sandbox/esims/${part(esimId)}/activate`, undefined, options);
  }

  consume(
    esimId: string,
    use: { bytes: number } | { percent: number },
    options?: WriteOptions,
  ): Promise<Esim> {
    return post(this.transport, `/sandbox/esims/${part(esimId)}/consume`, use, options);
  }

  expire(esimId: string, options?: WriteOptions): Promise<Esim> {
    return post(this.transport, `/sandbox/esims/${part(esimId)}/expire`, undefined, options);
  }
}

/** Requests to refund an eSIM. A person decides them. */
export class Refunds {
  constructor(private readonly transport: Transport) {}

  /** @throws EsimApiError `conflict` while a request for the eSIM is pending, or when nothing is left to refund */
  create(request: NewRefundRequest, options?: WriteOptions): Promise<RefundRequest> {
    return post(this.transport, '/refund-requests', request, options);
  }

  list(filters?: RefundFilters, options?: CallOptions): List<RefundRequest> {
    return listOf(this.transport, '/refund-requests', filters, options);
  }

  get(id: string, options?: CallOptions): Promise<RefundRequest> {
    return get(this.transport, `/refund-requests/${part(id)}`, options);
  }

  /** Withdraws a pending request. */
  cancel(id: string, options?: WriteOptions): Promise<RefundRequest> {
    return post(this.transport, `/refund-requests/${part(id)}/cancel`, undefined, options);
  }
}

export class Wallet {
  constructor(private readonly transport: Transport) {}

  balance(options?: CallOptions): Promise<readonly Balance[]> {
    return get(this.transport, '/balance', options);
  }

  transactions(filters?: { limit?: number }, options?: CallOptions): List<Transaction> {
    return listOf(this.transport, '/transactions', filters, options);
  }
}
