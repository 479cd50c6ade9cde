import type { FastifyRequest } from 'fastify';
import type { AppError } from '../../common/errors/index.js';
import type { ErrorPage } from '../../infra/http/edge/index.js';
import { chooseLanguage } from '../languages.js';
import { type Notice, pageHeaders, renderLayout, renderNotice } from './layout.js';
import { type InstallTexts, TEXTS } from './texts/index.js';

/**
 * The page for everything that is not a valid link. It has no brand and depends on nothing but the status and the
 * visitor's language: unknown, expired and revoked links get the same bytes (D63).
 */
export function errorPage({ status }: AppError, { query, headers }: FastifyRequest): ErrorPage {
  const chosen = (query as { readonly lang?: unknown } | undefined)?.lang;
  const language = chooseLanguage({
    chosen: typeof chosen === 'string' ? chosen : undefined,
    locale: null,
    accepted: headers['accept-language'],
  });
  const texts = TEXTS[language];
  const notice = status >= 500 || status === 429 ? unavailable(texts) : gone(texts);
  const body = renderLayout({
    language,
    title: notice.title,
    brand: null,
    device: 'screen',
    isTest: false,
    content: renderNotice(notice),
    footer: null,
  });
  return { headers: pageHeaders(), body };
}

function gone(texts: InstallTexts): Notice {
  return { icon: 'linkoff', title: texts.goneTitle, text: texts.goneText, help: texts.goneHelp, retry: null };
}

function unavailable(texts: InstallTexts): Notice {
  const { downTitle: title, downText: text, downHelp: help, tryAgain: retry } = texts;
  return { icon: 'clock', title, text, help, retry };
}
