/** An HTTP refusal of a POST: `{ errorCode, message, fields }`. */
export interface ZenditRefusal {
  readonly status: number;
  readonly errorCode: string | null;
  /** What it complains about: the transaction id, some other field, or it does not say. */
  readonly about: 'transaction' | 'other' | 'unsaid';
}

/** Never throws: a refusal that says little is a refusal all the same. */
export function readRefusal(status: number, json: unknown): ZenditRefusal {
  const body = typeof json === 'object' && json !== null ? (json as Readonly<Record<string, unknown>>) : {};
  const { errorCode, message, fields } = body;
  return {
    status,
    errorCode: typeof errorCode === 'string' ? errorCode : null,
    about: aboutOf(`${String(message)} ${JSON.stringify(fields ?? null)}`),
  };
}

function aboutOf(text: string): ZenditRefusal['about'] {
  if (/transaction\s?_?id|duplicate/i.test(text)) return 'transaction';
  return /offer|iccid/i.test(text) ? 'other' : 'unsaid';
}
