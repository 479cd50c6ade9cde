import { timingSafeEqual } from 'node:crypto';
import { Controller, Get, Head, Post, Req, Res, UseGuards } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { type InstallData, QrCodes, toActivationCode } from '../../esims/index.js';
import { SecretBox } from '../../infra/crypto/index.js';
import { NoIdempotencyKey } from '../../infra/idempotency/index.js';
import { chooseLanguage, type Language } from '../languages.js';
import { hashAccessCode } from '../link-secrets.js';
import { AccessPass } from './access-pass.js';
import { deviceOf, isPerson, isPrefetch } from './devices.js';
import { type CodeProblem, renderCodeForm, renderInstallPage, type ShownCode } from './install-page.js';
import { InstallPageRepository } from './install-page.repository.js';
import { type InstallVisit, InstallVisitGuard, Visit } from './install-visit.js';
import { pageHeaders } from './layout.js';
import { OpeningCounter } from './opening-counter.js';
import { isLocked, lockMinutes, stateOf } from './page-state.js';

const STATUS: Readonly<Record<'wrong' | 'locked', number>> = { wrong: 403, locked: 429 };

/** The install page: HTML without script, for a traveler with a link (D63). */
@UseGuards(InstallVisitGuard)
@Controller('i/:token')
export class InstallPageController {
  constructor(
    private readonly links: InstallPageRepository,
    private readonly pass: AccessPass,
    private readonly openings: OpeningCounter,
    private readonly qrCodes: QrCodes,
    private readonly secrets: SecretBox,
  ) {}

  @Get()
  async show(
    @Visit() visit: InstallVisit,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    void reply.headers(pageHeaders(visit.facts.brand.logoUrl));
    const language = languageOf(visit, request);
    if (!this.pass.isHeld(visit, request.headers.cookie))
      return renderCodeForm(visit.facts, language, isLocked(visit.facts) ? 'locked' : null);
    const byPerson = isPerson(request.headers['user-agent']);
    const page = await this.render(visit, request, language, byPerson);
    if (byPerson && !isPrefetch(request.headers)) this.openings.count(visit.facts.linkId);
    return page;
  }

  /** Some programs check a link before they open it. That does not count as an opening. */
  @Head()
  check(@Visit() visit: InstallVisit, @Res({ passthrough: true }) reply: FastifyReply): void {
    void reply.headers(pageHeaders(visit.facts.brand.logoUrl));
  }

  /** Takes the access code, and redirects to the page, so that a reload does not send the code again. */
  @Post()
  @NoIdempotencyKey()
  async enterCode(
    @Visit() visit: InstallVisit,
    @Req() request: FastifyRequest,
    @Res({ passthrough: true }) reply: FastifyReply,
  ): Promise<string> {
    const { facts, token } = visit;
    const language = languageOf(visit, request);
    const problem = await this.tryCode(visit, codeOf(request.body));
    if (problem === null) {
      void reply.status(303).header('location', `/i/${token}?lang=${language}`);
      void reply.header('set-cookie', this.pass.issue(visit)).header('referrer-policy', 'no-referrer');
      return '';
    }
    void reply.status(STATUS[problem]).headers(pageHeaders(facts.brand.logoUrl));
    if (problem === 'locked') void reply.header('retry-after', String(lockMinutes(facts) * 60));
    return renderCodeForm(facts, language, problem);
  }

  /** Returns the outcome only after the try was counted. */
  private async tryCode({ facts, token }: InstallVisit, code: string): Promise<CodeProblem> {
    if (facts.accessCodeHash === null) return null;
    const isCorrect = timingSafeEqual(facts.accessCodeHash, hashAccessCode(token, code));
    if ((await this.links.countTry(facts.linkId, isCorrect)) === 'locked') return 'locked';
    return isCorrect ? null : 'wrong';
  }

  private async render(
    { facts }: InstallVisit,
    { query, headers }: FastifyRequest,
    language: Language,
    byPerson: boolean,
  ): Promise<string> {
    const state = stateOf(facts);
    const isAsked = (query as { readonly show?: unknown }).show === '1';
    // A messenger keeps what its link preview has read.
    const showsCode = byPerson && (state === 'new' || (state === 'installed' && isAsked));
    const code = showsCode ? await this.codeOf(facts) : null;
    const device = deviceOf(headers['user-agent'] ?? '');
    return renderInstallPage({ facts, state, language, device, code });
  }

  private async codeOf(facts: InstallVisit['facts']): Promise<ShownCode> {
    const install = JSON.parse(this.secrets.open(facts.sealedInstallData, facts.esimId)) as InstallData;
    // With too many pages at once, the codes are still there as text.
    const drawn = await this.qrCodes.draw(facts, toActivationCode(install)).catch(() => null);
    return { install, svg: drawn?.svg ?? null };
  }
}

function languageOf({ facts: { locale } }: InstallVisit, { query, headers }: FastifyRequest): Language {
  const { lang } = query as { readonly lang?: unknown };
  const chosen = typeof lang === 'string' ? lang : undefined;
  return chooseLanguage({ chosen, locale, accepted: headers['accept-language'] });
}

/** Travelers may type the blanks or hyphens that a message had for reading, and a Japanese keyboard types wide digits. */
function codeOf(body: unknown): string {
  const code = (body as { readonly code?: unknown } | undefined)?.code;
  return typeof code === 'string' ? code.normalize('NFKC').replace(/[\s-]/g, '') : '';
}
