/** eSIM types of the Zendit API, version 1. Amounts are integers divided by `currencyDivisor`. */

export const STATUSES = ['ACCEPTED', 'PENDING', 'AUTHORIZED', 'IN_PROGRESS', 'DONE', 'FAILED'] as const;
export type TransactionStatus = (typeof STATUSES)[number];

/** Statuses of a purchase or refund before it ends. */
export const RUNNING: readonly TransactionStatus[] = ['ACCEPTED', 'PENDING', 'AUTHORIZED', 'IN_PROGRESS'];

export interface Roaming {
  readonly country: string;
  readonly dataSpeeds: readonly string[];
  readonly networks?: readonly { brand: string; brandName: string; dataSpeeds: readonly string[] }[];
}

export interface Offer {
  readonly offerId: string;
  readonly brand: string;
  readonly brandName: string;
  /** Empty for a regional offer. */
  readonly country: string;
  readonly regions: readonly string[];
  readonly subTypes: readonly string[];
  /** 0 when unlimited. */
  readonly dataGB: number;
  readonly dataUnlimited: boolean;
  readonly dataSpeeds: readonly string[];
  readonly durationDays: number;
  enabled: boolean;
  readonly voiceMinutes: number;
  readonly voiceUnlimited: boolean;
  readonly smsNumber: number;
  readonly smsUnlimited: boolean;
  readonly roaming: readonly Roaming[];
  readonly cost: {
    currency: string;
    currencyDivisor: number;
    fixed: number;
    fee: number;
    feePct: number;
    discount: number;
  };
  readonly price: {
    currency: string;
    currencyDivisor: number;
    fixed: number;
    fee: number;
    margin: number;
    suggestedFixed: number;
  };
  readonly priceType: 'FIXED';
  readonly productType: 'ESIM';
  readonly notes: string;
  readonly shortNotes: string;
  readonly createdAt: string;
  updatedAt: string;
}

export interface UpstreamError {
  readonly code: string;
  readonly description: string;
  readonly message: string;
}

export interface LogItem {
  readonly dateTime: string;
  readonly status: TransactionStatus;
  readonly statusMessage: string;
}

export interface Confirmation {
  readonly iccid: string;
  readonly smdpAddress: string;
  readonly activationCode: string;
  readonly externalReferenceId: string;
  readonly redemptionInstructions: string;
}

/** The body of an HTTP error. */
export interface ErrorBody {
  readonly errorCode: string;
  readonly message: string;
  readonly fields: Readonly<Record<string, string>>;
}
