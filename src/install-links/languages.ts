/** Languages of the install page, each with its own name. */
export const LANGUAGE_NAMES = {
  en: 'English',
  de: 'Deutsch',
  fr: 'Français',
  es: 'Español',
  it: 'Italiano',
  pt: 'Português',
  nl: 'Nederlands',
  pl: 'Polski',
  tr: 'Türkçe',
  ja: '日本語',
  ko: '한국어',
  zh: '中文',
} as const;

export type Language = keyof typeof LANGUAGE_NAMES;
export const LANGUAGES = Object.keys(LANGUAGE_NAMES) as readonly Language[];

export interface LanguageHints {
  /** The `lang` query parameter. */
  readonly chosen: string | undefined;
  /** The link's own language. */
  readonly locale: Language | null;
  /** The `Accept-Language` header. */
  readonly accepted: string | undefined;
}

/** The page's language: the traveler's choice, then the link's language, then the browser's, then English. */
export function chooseLanguage({ chosen, locale, accepted }: LanguageHints): Language {
  return toLanguage(chosen) ?? locale ?? acceptedLanguage(accepted) ?? 'en';
}

function toLanguage(text: string | undefined): Language | null {
  const primary = text?.trim().toLowerCase().split('-', 1)[0];
  return LANGUAGES.find((language) => language === primary) ?? null;
}

/** Limits the work for a header that a stranger sends. */
const MAX_RANGES = 20;

/** The supported language with the highest weight (RFC 9110 section 12.5.4); the first of several. */
function acceptedLanguage(header = ''): Language | null {
  let best: { language: Language; weight: number } | null = null;
  for (const range of header.split(',', MAX_RANGES)) {
    const [tag, ...parameters] = range.split(';');
    const language = toLanguage(tag);
    const q = parameters.map((text) => text.trim()).find((text) => text.startsWith('q='));
    const weight = q === undefined ? 1 : Number(q.slice(2));
    if (language && weight > 0 && weight > (best?.weight ?? 0)) best = { language, weight };
  }
  return best?.language ?? null;
}
