/** Markup that is safe to send: `html` has escaped every inserted text. */
export class Html {
  constructor(readonly text: string) {}

  toString(): string {
    return this.text;
  }
}

type Inserted = Html | string | number | null | readonly Inserted[];

/** Builds markup. Inserted texts are escaped, `Html` and lists of it are kept, null is left out. */
export function html(strings: TemplateStringsArray, ...values: readonly Inserted[]): Html {
  return new Html(strings.reduce((text, part, at) => text + toMarkup(values[at - 1]!) + part));
}

/** Markup from a trusted source, such as our own QR code. */
export function trusted(text: string): Html {
  return new Html(text);
}

function toMarkup(value: Inserted): string {
  if (value === null) return '';
  if (value instanceof Html) return value.text;
  if (typeof value === 'object') return value.map(toMarkup).join('');
  return String(value).replace(/[&<>"']/g, (char) => ESCAPED[char]!);
}

const ESCAPED: Readonly<Record<string, string>> = {
  '&': '&amp;',
  '<': '&lt;',
  '>': '&gt;',
  '"': '&quot;',
  "'": '&#39;',
};
