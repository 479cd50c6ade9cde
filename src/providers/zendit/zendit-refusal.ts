import type { ResponseObject } from '../http/index.js';
import { codeAt } from './zendit-code.js';

/** An HTTP refusal of a POST: `{ errorCode, message, fields }`. */
export interface ZenditRefusal {
  readonly status: number;
  readonly errorCode: string | null;
  /** What it complains about: the transaction id, the offer, some other field, or it does not say. */
  readonly about: 'transaction' | 'offer' | 'other' | 'unsaid';
}

/** Never throws: a refusal that says little is a refusal all the same. */
export function readRefusal(status: number, json: unknown): ZenditRefusal {
  const body = typeof json === 'object' && json !== null ? (json as ResponseObject) : {};
  const { message, fields } = body;
  return {
    status,
    errorCode: codeAt(body, 'errorCode'),
    about: aboutOf(`${String(message)} ${JSON.stringify(fields ?? null)}`),
  };
}

function aboutOf(text: string): ZenditRefusal['about'] {
  if (/transaction\s?_?id|duplicate/i.test(text)) return 'transaction';
  // Who names an ICCID beside the offer may mean that the two do not fit, which is no word on the offer.
  if (/iccid/i.test(text)) return 'other';
  return /offer/i.test(text) ? 'offer' : 'unsaid';
}
