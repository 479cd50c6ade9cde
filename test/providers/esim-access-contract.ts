/**
 * What eSIM Access answers, field by field: facts, each with where it stands.
 *
 * - `published`: the Postman collection behind docs.esimaccess.com, as of April 2026 (tables before samples)
 * - `recorded`: live answers of 31 March 2026 (list, balance, order, query)
 * - `walkthrough`: the provider's own top-up walk-through of 2023
 *
 * Where they differ, what was recorded wins over a table: `activeType` is a String there and a number on the wire.
 */
export type Source = 'published' | 'recorded' | 'walkthrough';

export type FieldType = 'text' | 'integer' | 'boolean' | 'list' | 'time' | 'anything';

export interface ContractField {
  readonly name: string;
  readonly type: FieldType;
  /** `always` for what no source leaves out; `nullable` for what is always there, and may be null. */
  readonly presence: 'always' | 'nullable' | 'sometimes';
  readonly source: Source;
  readonly values?: readonly (string | number)[];
  /** The fields of each entry of a list. */
  readonly entries?: readonly ContractField[];
}

type Options = Partial<Pick<ContractField, 'presence' | 'values' | 'entries'>>;

function field(source: Source, name: string, type: FieldType, options: Options = {}): ContractField {
  return { name, type, source, presence: 'always', ...options };
}

const published = (name: string, type: FieldType, options?: Options) =>
  field('published', name, type, options);
const recorded = (name: string, type: FieldType, options?: Options) => field('recorded', name, type, options);

const NULLABLE = { presence: 'nullable' } as const;
const SOMETIMES = { presence: 'sometimes' } as const;

export const ESIM_STATUSES = [
  ...['CREATE', 'PAYING', 'PAID', 'GETTING_RESOURCE', 'GOT_RESOURCE', 'IN_USE', 'USED_UP'],
  ...['UNUSED_EXPIRED', 'USED_EXPIRED', 'CANCEL', 'SUSPENDED', 'REVOKE'],
];
/** In callbacks a revoked eSIM has another word. */
const CALLBACK_ESIM_STATUSES = [...ESIM_STATUSES, 'REVOKED'];
const SMDP_STATUSES = ['RELEASED', 'DOWNLOAD', 'INSTALLATION', 'ENABLED', 'DISABLED', 'DELETED'];
const DATA_TYPES = [1, 2, 3, 4];
const ACTIVE_TYPES = [1, 2];
const TOPUP_TYPES = [1, 2, 3];
const SMS_STATUSES = [0, 1, 2];

const QUERIED_PACKAGE = [
  recorded('packageName', 'text'),
  published('packageCode', 'text'),
  recorded('slug', 'text'),
  published('duration', 'integer'),
  published('volume', 'integer'),
  published('locationCode', 'text'),
  recorded('createTime', 'time'),
  // The published sample has neither; both were recorded of an order's entry, none of a top-up's.
  recorded('esimTranNo', 'text', SOMETIMES),
  recorded('transactionId', 'text', SOMETIMES),
];

const QUERIED_ESIM = [
  published('esimTranNo', 'text'),
  published('orderNo', 'text'),
  recorded('transactionId', 'text'),
  published('imsi', 'text', SOMETIMES),
  published('iccid', 'text', SOMETIMES),
  published('smsStatus', 'integer', { values: SMS_STATUSES }),
  published('msisdn', 'text', SOMETIMES),
  published('ac', 'text'),
  published('qrCodeUrl', 'text'),
  recorded('shortUrl', 'text'),
  published('smdpStatus', 'text', { values: SMDP_STATUSES }),
  published('eid', 'text', SOMETIMES),
  recorded('activeType', 'integer', { values: ACTIVE_TYPES }),
  published('dataType', 'integer', { values: DATA_TYPES }),
  recorded('activateTime', 'time', NULLABLE),
  published('expiredTime', 'time'),
  recorded('installationTime', 'time', NULLABLE),
  published('totalVolume', 'integer'),
  published('totalDuration', 'integer'),
  published('durationUnit', 'text'),
  published('orderUsage', 'integer'),
  published('esimStatus', 'text', { values: ESIM_STATUSES }),
  published('pin', 'text', SOMETIMES),
  published('puk', 'text', SOMETIMES),
  published('apn', 'text', SOMETIMES),
  recorded('ipExport', 'text'),
  recorded('supportTopUpType', 'integer', { values: TOPUP_TYPES }),
  // "1 Mbps" of a daily package was recorded; "" of a package without one, in the list.
  recorded('fupPolicy', 'text', NULLABLE),
  published('packageList', 'list', { entries: QUERIED_PACKAGE }),
];

const OPERATOR = [recorded('operatorName', 'text'), recorded('networkType', 'text')];

const LOCATION_OF_PACKAGE = [
  published('locationName', 'text'),
  published('locationLogo', 'text'),
  recorded('locationCode', 'text', SOMETIMES),
  published('operatorList', 'list', { entries: OPERATOR }),
];

const LISTED_PACKAGE = [
  published('packageCode', 'text'),
  recorded('slug', 'text', SOMETIMES),
  published('name', 'text'),
  published('price', 'integer'),
  published('currencyCode', 'text'),
  published('volume', 'integer'),
  // These have no place in the published sample nor in the walk-through's list of top-ups.
  recorded('smsStatus', 'integer', { ...SOMETIMES, values: SMS_STATUSES }),
  recorded('dataType', 'integer', { ...SOMETIMES, values: DATA_TYPES }),
  recorded('locationCode', 'text', SOMETIMES),
  recorded('supportTopUpType', 'integer', { ...SOMETIMES, values: TOPUP_TYPES }),
  recorded('ipExport', 'text', SOMETIMES),
  recorded('fupPolicy', 'text', SOMETIMES),
  published('unusedValidTime', 'integer'),
  published('duration', 'integer'),
  published('durationUnit', 'text'),
  published('location', 'text'),
  published('description', 'text'),
  published('activeType', 'integer', { values: ACTIVE_TYPES }),
  published('favorite', 'boolean'),
  published('retailPrice', 'integer'),
  published('speed', 'text'),
  published('locationNetworkList', 'list', { entries: LOCATION_OF_PACKAGE }),
];

/** `obj` of each operation's success. */
export const ANSWERS: Readonly<Record<string, readonly ContractField[]>> = {
  'package/list': [published('packageList', 'list', { entries: LISTED_PACKAGE })],
  'esim/order': [published('orderNo', 'text'), recorded('transactionId', 'text')],
  'esim/query': [published('esimList', 'list', { entries: QUERIED_ESIM }), published('pager', 'anything')],
  'esim/cancel': [],
  'esim/suspend': [],
  'esim/unsuspend': [],
  'esim/revoke': [],
  'esim/sendSms': [],
  'webhook/save': [],
  'esim/usage/query': [
    published('esimUsageList', 'list', {
      entries: [
        published('esimTranNo', 'text'),
        published('dataUsage', 'integer'),
        published('totalData', 'integer'),
        // No source shows it of an eSIM that was never used.
        published('lastUpdateTime', 'time', NULLABLE),
      ],
    }),
  ],
  'esim/topup': [
    // The table only says "Transaction ID returned"; the walk-through's is another one than was sent.
    field('walkthrough', 'transactionId', 'text'),
    published('iccid', 'text'),
    published('expiredTime', 'time'),
    published('totalVolume', 'integer'),
    published('totalDuration', 'integer'),
    published('orderUsage', 'integer'),
    // Required in the table, missing in its sample.
    published('topUpEsimTranNo', 'text', SOMETIMES),
  ],
  'balance/query': [recorded('balance', 'integer')],
  'location/list': [
    published('locationList', 'list', {
      entries: [
        published('code', 'text'),
        published('name', 'text'),
        published('type', 'integer', { values: [1, 2] }),
        published('subLocationList', 'list', {
          ...NULLABLE,
          entries: [published('code', 'text'), published('name', 'text')],
        }),
      ],
    }),
  ],
};

export const ENVELOPE: readonly ContractField[] = [
  recorded('success', 'boolean'),
  recorded('errorCode', 'text', NULLABLE),
  recorded('errorMsg', 'text', NULLABLE),
  recorded('obj', 'anything'),
];

export const NOTICE: readonly ContractField[] = [
  published('notifyType', 'text'),
  published('notifyId', 'text'),
  published('eventGenerateTime', 'time'),
  published('content', 'anything'),
];

const ABOUT_ESIM = [
  published('iccid', 'text'),
  published('orderNo', 'text'),
  published('esimTranNo', 'text'),
  published('transactionId', 'text'),
];

const STATES = [
  published('esimStatus', 'text', { values: CALLBACK_ESIM_STATUSES }),
  published('smdpStatus', 'text', { values: SMDP_STATUSES }),
];

/** `content` of each callback that the simulator sends. */
export const CALLBACKS: Readonly<Record<string, readonly ContractField[]>> = {
  CHECK_HEALTH: [
    published('orderNo', 'text', { values: ['1234567890'] }),
    published('orderStatus', 'text', { values: ['Test'] }),
  ],
  ORDER_STATUS: [
    published('orderNo', 'text'),
    published('orderStatus', 'text', { values: ['GOT_RESOURCE'] }),
    published('transactionId', 'text'),
  ],
  ESIM_STATUS: [
    ...[...ABOUT_ESIM, ...STATES],
    published('totalVolume', 'integer', SOMETIMES),
    published('orderUsage', 'integer', SOMETIMES),
    published('remainVolume', 'integer', SOMETIMES),
  ],
  SMDP_EVENT: [
    ...[...ABOUT_ESIM, ...STATES],
    published('eid', 'text'),
    published('timestamp', 'time'),
    published('seqNumber', 'integer', NULLABLE),
    published('notifyStatus', 'text', { ...SOMETIMES, values: ['Executed-Success'] }),
  ],
  DATA_USAGE: [
    ...ABOUT_ESIM,
    published('totalVolume', 'integer'),
    published('orderUsage', 'integer'),
    published('remain', 'integer'),
    published('remainThreshold', 'anything'),
    published('lastUpdateTime', 'time'),
  ],
};
