import type {
  OpenAPIObject,
  OperationObject,
  ParameterObject,
  ReferenceObject,
  SchemaObject,
} from '@nestjs/swagger';
import { RETRY_DELAYS_MS } from '../config/index.js';
import { EXPIRING_HOURS, PROFILE_STATUSES, USAGE_THRESHOLDS } from '../esims/index.js';
import { EVENT_TYPES, type EventData, type EventType } from '../events/index.js';
import { exampleOf } from '../infra/http/openapi/document/bodies.js';
import { FAILURE_CODES } from '../providers/index.js';

const ICCID: SchemaObject = { type: 'string', pattern: '^[0-9]{18,20}$', example: '8910300000001234567' };
const ESIM_ID: SchemaObject = { type: 'string', example: 'esim_01KAEXAMPLE000000000000000' };
const ORDER_ID: SchemaObject = { type: 'string', example: 'ord_01KAEXAMPLE000000000000000' };
const PACKAGE_ID: SchemaObject = { type: 'string', example: 'pkg_fr_1gb_7d' };
const REFERENCE: SchemaObject = {
  type: ['string', 'null'],
  description: 'Your own id for the order or top-up.',
  example: 'booking-4711',
};
const CODE: SchemaObject = { type: 'string', enum: [...FAILURE_CODES] };
const REASON: SchemaObject = { type: 'string', example: 'The package is out of stock.' };
const COUNT: SchemaObject = { type: 'integer', minimum: 0, example: 1 };
const BYTES: SchemaObject = { type: 'integer', minimum: 0, example: 1_000_000_000 };

const VERSION: SchemaObject = {
  type: 'integer',
  minimum: 1,
  description:
    'The version of the order, eSIM or top-up. Of two events about the same object, the one with the higher version is newer.',
  example: 3,
};

const ESIM = { esim_id: ESIM_ID, order_id: ORDER_ID, iccid: ICCID };
const CONTROL = {
  ...ESIM,
  reason: { type: ['string', 'null'], example: 'lost device' } satisfies SchemaObject,
  version: VERSION,
};
const PROFILE_STATUS: SchemaObject = { type: 'string', enum: [...PROFILE_STATUSES] };
const TOPUP = {
  topup_id: { type: 'string', example: 'top_01KAEXAMPLE000000000000000' },
  ...ESIM,
  package_id: { type: 'string', example: 'pkg_fr_topup_1gb_7d' },
  reference: REFERENCE,
};

/** `data` of every event; the compiler ensures that no field is missing (D28). */
const DATA: { readonly [Type in EventType]: Record<keyof EventData[Type], SchemaObject | ReferenceObject> } =
  {
    'order.issued': {
      order_id: ORDER_ID,
      reference: REFERENCE,
      package_id: PACKAGE_ID,
      quantity_issued: COUNT,
      quantity_failed: {
        ...COUNT,
        example: 0,
        description: 'Greater than 0 if the order is `partially_issued`.',
      },
      esims: { type: 'array', items: { $ref: '#/components/schemas/IssuedEsim' } },
      version: VERSION,
    },
    'order.failed': {
      order_id: ORDER_ID,
      reference: REFERENCE,
      package_id: PACKAGE_ID,
      code: { ...CODE, example: 'package_unavailable' },
      reason: REASON,
      refunded: { $ref: '#/components/schemas/MoneyResponse' },
      version: VERSION,
    },
    'esim.activated': ESIM,
    'esim.expired': {
      ...ESIM,
      reason: { type: 'string', enum: ['validity_ended', 'never_used'] },
      version: VERSION,
    },
    'esim.usage.threshold': {
      ...ESIM,
      threshold_percent: { type: 'integer', enum: [...USAGE_THRESHOLDS] },
      used_bytes: { ...BYTES, example: 500_000_000 },
      total_bytes: BYTES,
      as_of: { type: 'string', format: 'date-time' },
      version: VERSION,
    },
    'order.topup.completed': {
      ...TOPUP,
      data_added_bytes: { type: ['integer', 'null'], example: 1_000_000_000 },
      validity_added_days: { type: 'integer', minimum: 0, example: 7 },
      version: VERSION,
    },
    'order.topup.failed': {
      ...TOPUP,
      code: { ...CODE, example: 'esim_expired' },
      reason: REASON,
      version: VERSION,
    },
    'order.canceled': {
      order_id: ORDER_ID,
      reference: REFERENCE,
      package_id: PACKAGE_ID,
      refunded: { $ref: '#/components/schemas/MoneyResponse' },
      version: VERSION,
    },
    'esim.profile.changed': {
      ...ESIM,
      profile_status: { ...PROFILE_STATUS, example: 'enabled' },
      previous: { ...PROFILE_STATUS, example: 'installed' },
      version: VERSION,
    },
    'esim.usage.level': {
      ...ESIM,
      percent: { type: 'integer', minimum: 1, maximum: 100, example: 90 },
      used_bytes: { ...BYTES, example: 900_000_000 },
      total_bytes: BYTES,
      as_of: { type: 'string', format: 'date-time' },
      version: VERSION,
    },
    'esim.expiring': {
      ...ESIM,
      hours_left: { type: 'integer', enum: [...EXPIRING_HOURS] },
      expires_at: { type: 'string', format: 'date-time' },
      version: VERSION,
    },
    'esim.suspended': CONTROL,
    'esim.resumed': CONTROL,
    'esim.revoked': CONTROL,
    'refund.settled': {
      refund_request_id: { type: 'string', example: 'rfr_01KAEXAMPLE000000000000000' },
      esim_id: ESIM_ID,
      order_id: ORDER_ID,
      status: { type: 'string', enum: ['approved', 'rejected'] },
      amount: {
        oneOf: [{ $ref: '#/components/schemas/MoneyResponse' }, { type: 'null' }],
        description: 'Null if the request was rejected.',
      },
    },
    'wallet.low': {
      currency: { type: 'string', pattern: '^[A-Z]{3}$', example: 'USD' },
      available: { type: 'integer', format: 'int64', description: 'In minor units.', example: 9_500 },
      threshold: { type: 'integer', format: 'int64', description: 'In minor units.', example: 10_000 },
    },
    'catalog.changed': {
      changes_url: {
        type: 'string',
        description: 'Path and query of the call that lists the changes.',
        example: '/v1/catalog/changes?after=WyIxMDQyIl0',
      },
      added: COUNT,
      changed: COUNT,
      withdrawn: COUNT,
    },
  };

/** Meaning of every event; of the document's, in the words of the specification (section 6). */
export const EVENT_SUMMARIES: Readonly<Record<EventType, string>> = {
  'order.issued': 'The order was accepted and the eSIM was provisioned.',
  'order.failed': 'Provisioning failed, for example because the plan is unavailable.',
  'esim.activated': 'The customer installed and activated the eSIM on a device.',
  'esim.expired': 'The validity of the plan has ended.',
  'esim.usage.threshold': "Usage crossed 50%, 80% or 100% of the plan's data.",
  'order.topup.completed': 'A top-up (extra data or extra days) was applied to an existing eSIM.',
  'order.topup.failed': 'A top-up could not be applied; the payload includes `code` and `reason`.',
  'order.canceled': 'The order was canceled and refunded.',
  'esim.profile.changed': 'The state of the profile on the device changed.',
  'esim.usage.level': "Usage crossed one of the endpoint's `usage_levels`.",
  'esim.expiring': 'The validity of the plan ends in 72 or 24 hours.',
  'esim.suspended': 'The eSIM was suspended.',
  'esim.resumed': 'The suspension of the eSIM ended.',
  'esim.revoked': 'The eSIM was revoked. It cannot be used again.',
  'refund.settled': 'A refund request was approved or rejected.',
  'wallet.low': "The available balance fell below the wallet's `low_balance`.",
  'catalog.changed': 'Packages of the Live catalog were added, changed or withdrawn.',
};

/** The component that describes events of `type`, e.g. `EsimUsageThresholdEvent`. */
export function eventSchemaName(type: EventType): string {
  return `${type
    .split('.')
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1))
    .join('')}Event`;
}

const dataSchemaName = (type: EventType): string => `${eventSchemaName(type)}Data`;

/**
 * The envelope with its `data` per event type, and a union of all events under the class name that the feed uses.
 */
export function eventSchemas(): Record<string, SchemaObject> {
  const ref = (type: EventType): string => `#/components/schemas/${eventSchemaName(type)}`;
  return {
    ...Object.fromEntries(
      EVENT_TYPES.flatMap((type) => [
        [eventSchemaName(type), eventSchema(type)],
        [dataSchemaName(type), withAll(DATA[type])],
      ]),
    ),
    IssuedEsim: withAll({ esim_id: ESIM_ID, iccid: ICCID }),
    EventResponse: {
      description: 'An event, exactly as webhooks deliver it.',
      oneOf: EVENT_TYPES.map((type) => ({ $ref: ref(type) })),
      discriminator: {
        propertyName: 'type',
        mapping: Object.fromEntries(EVENT_TYPES.map((type) => [type, ref(type)])),
      },
    },
  };
}

function eventSchema(type: EventType): SchemaObject {
  const schema = withAll({
    id: {
      type: 'string',
      description: 'Unique. Ignore an id that you have already processed.',
      example: 'evt_01KAEXAMPLE000000000000000',
    },
    type: { type: 'string', enum: [type] },
    created_at: { type: 'string', format: 'date-time', description: 'The time of the event.' },
    data: { $ref: `#/components/schemas/${dataSchemaName(type)}` },
  });
  return { ...schema, description: EVENT_SUMMARIES[type] };
}

/** All properties are required. */
function withAll(properties: Record<string, SchemaObject | ReferenceObject>): SchemaObject {
  return { type: 'object', required: Object.keys(properties), properties };
}

const RETRY_DELAYS = RETRY_DELAYS_MS.map((ms) => (ms < 120_000 ? `${ms / 1_000} s` : `${ms / 60_000} min`));

const DELIVERY_RULES = [
  'Return 2xx immediately, at the latest within 60 seconds, and process the event in the background.',
  `After any other result we retry after ${new Intl.ListFormat('en-GB').format(RETRY_DELAYS)}, each counted from the end`,
  'of the previous attempt, with the same `X-Service-Delivery`. Then the endpoint is blocked for one',
  'minute. The fifth block in a row disables it. Events may arrive out of order and more than once:',
  'ignore an `id` that you have already processed.',
].join(' ');

const SIGNATURE = [
  '`t=<unix seconds>,v1=<hex>`: HMAC-SHA256 over `<t>.<raw body>`, keyed with the signing secret',
  'exactly as shown. During a rotation there is a second `v1`: accept the request if either matches,',
  'and compare in constant time. Reject it if `t` is more than 300 seconds from your clock.',
].join(' ');

/** The webhooks that a partner's endpoints receive (spec section 6, D28 to D31). */
export function eventWebhooks(document: OpenAPIObject): NonNullable<OpenAPIObject['webhooks']> {
  return Object.fromEntries(EVENT_TYPES.map((type) => [type, { post: delivery(document, type) }]));
}

function delivery(document: OpenAPIObject, type: EventType): OperationObject {
  const schema = { $ref: `#/components/schemas/${eventSchemaName(type)}` };
  return {
    operationId: `receive${eventSchemaName(type)}`,
    summary: EVENT_SUMMARIES[type],
    description: DELIVERY_RULES,
    tags: ['Webhooks'],
    // The receiver authenticates the sender by the signature, not by a credential.
    security: [],
    parameters: headersOf(type),
    requestBody: {
      required: true,
      content: { 'application/json': { schema, example: exampleOf(document, schema, 'every field') } },
    },
    responses: {
      '2XX': { description: 'The event was accepted. We ignore the body.' },
      default: { description: 'The attempt failed. We do not follow redirects.' },
    },
  };
}

function headersOf(type: EventType): ParameterObject[] {
  return [
    header('X-Service-Signature', SIGNATURE, { pattern: '^t=[0-9]+(,v1=[0-9a-f]{64}){1,2}$' }),
    header('X-Service-Event', 'The type of the event.', { enum: [type] }),
    header('X-Service-Delivery', 'The id of the delivery. Log it for support.', { pattern: '^dlv_' }),
  ];
}

function header(
  name: string,
  description: string,
  form: { pattern?: string; enum?: string[] },
): ParameterObject {
  return { name, in: 'header', required: true, description, schema: { type: 'string', ...form } };
}
