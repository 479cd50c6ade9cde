import type { Language } from '../../languages.js';
import { de } from './de.js';
import { en, type InstallTexts } from './en.js';
import { es } from './es.js';
import { fr } from './fr.js';
import { it } from './it.js';
import { ja } from './ja.js';
import { ko } from './ko.js';
import { nl } from './nl.js';
import { pl } from './pl.js';
import { pt } from './pt.js';
import { tr } from './tr.js';
import { zh } from './zh.js';

export type { InstallTexts };

/** Texts of the install page by language. */
export const TEXTS: Readonly<Record<Language, InstallTexts>> = {
  en,
  de,
  fr,
  es,
  it,
  pt,
  nl,
  pl,
  tr,
  ja,
  ko,
  zh,
};

/** Replaces each `{name}` of a text. A test checks that every language has the same placeholders. */
export function fill(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\{(\w+)\}/g, (whole, name: string) => values[name] ?? whole);
}
