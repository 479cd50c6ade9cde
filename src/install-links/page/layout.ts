import { type Language, LANGUAGE_NAMES, LANGUAGES } from '../languages.js';
import { html, type Html } from './html.js';
import { icon, type IconName } from './icons.js';
import type { Brand } from './install-page.repository.js';
import { accentPath, STYLES_PATH } from './page-files.js';
import { type InstallTexts, TEXTS } from './texts/index.js';

/** Headers of every page: nothing is cached, framed, indexed or passed on, and no script or inline style runs (D63). */
export function pageHeaders(logoUrl: string | null = null): Readonly<Record<string, string>> {
  const logo = logoUrl === null ? '' : `; img-src ${new URL(logoUrl).origin}`;
  return {
    'content-type': 'text/html; charset=utf-8',
    'content-security-policy': `default-src 'none'; style-src 'self'${logo}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'`,
    'cache-control': 'no-store',
    'referrer-policy': 'no-referrer',
    'x-robots-tag': 'noindex, nofollow, noarchive',
    'x-content-type-options': 'nosniff',
    'cross-origin-opener-policy': 'same-origin',
    vary: 'Accept-Language, User-Agent',
  };
}

export interface Layout {
  readonly language: Language;
  readonly title: string;
  /** Null on pages that must not say whose link it is. */
  readonly brand: Brand | null;
  /** Class of the body. */
  readonly device: string;
  readonly isTest: boolean;
  readonly content: Html;
  readonly footer: Html | null;
}

/** The page around its content. The languages are links, so that the choice needs no script. */
export function renderLayout({ language, title, brand, device, isTest, content, footer }: Layout): string {
  const texts = TEXTS[language];
  const accent = accentPath(brand?.accent ?? null);
  const page = html`<!doctype html>
    <html lang="${language}">
      <head>
        <meta charset="utf-8" />
        <title>${brand ? `${title} · ${brand.name}` : title}</title>
        <meta name="viewport" content="width=device-width, initial-scale=1, viewport-fit=cover" />
        <meta name="color-scheme" content="light dark" />
        <meta name="robots" content="noindex" />
        <meta name="referrer" content="no-referrer" />
        <meta name="format-detection" content="telephone=no" />
        <link rel="stylesheet" href="${STYLES_PATH}" />
        ${accent === null ? null : html`<link rel="stylesheet" href="${accent}" />`}
      </head>
      <body class="${device}">
        <header>
          ${isTest ? html`<p class="sandbox">${texts.test}</p>` : null}
          <div class="brand-bar">
            ${brand ? html`<p class="brand">${logoOf(brand)}<span>${brand.name}</span></p>` : html`<span></span>`}
            ${languages(language, texts)}
          </div>
        </header>
        <main>${content}</main>
        ${footer === null ? null : html`<footer>${footer}</footer>`}
      </body>
    </html> `;
  return page.text;
}

function logoOf({ logoUrl, name }: Brand): Html {
  if (logoUrl === null) return html`<span class="mark" aria-hidden="true">${initialOf(name)}</span>`;
  return html`<img class="logo" src="${logoUrl}" alt="" referrerpolicy="no-referrer" />`;
}

/** The first character as people count them: an emoji or a flag can have several code points. */
function initialOf(name: string): string {
  const [first] = new Intl.Segmenter().segment(name);
  return (first?.segment ?? '').toUpperCase();
}

function languages(current: Language, texts: InstallTexts): Html {
  const items = LANGUAGES.map(
    (language) =>
      html`<li>
        <a
          href="?lang=${language}"
          lang="${language}"
          hreflang="${language}"
          ${language === current ? html` aria-current="true"` : null}
          >${LANGUAGE_NAMES[language]}</a
        >
      </li>`,
  );
  return html`<details class="lang">
    <summary>
      ${icon('globe')}<span class="hidden">${texts.language}: </span>${LANGUAGE_NAMES[current]}${icon('down')}
    </summary>
    <ul>
      ${items}
    </ul>
  </details>`;
}

export interface Notice {
  readonly icon: IconName;
  readonly title: string;
  readonly text: string;
  readonly help: string;
  readonly retry: string | null;
}

/** A page with one message. */
export function renderNotice(notice: Notice): Html {
  const retry =
    notice.retry === null ? null : html`<a class="go" href="">${icon('refresh')}${notice.retry}</a>`;
  return html`<section class="state plain">
    ${icon(notice.icon)}
    <h1>${notice.title}</h1>
    <p class="lead">${notice.text}</p>
    <p>${notice.help}</p>
    ${retry}
  </section>`;
}
