import {
  type InstallData,
  needsConfirmationCode,
  toActivationCode,
  toInstallLinks,
} from '../../esims/index.js';
import type { Language } from '../languages.js';
import type { Device } from './devices.js';
import { Formats, zoneOf } from './formats.js';
import { html, type Html, trusted } from './html.js';
import { icon, type IconName } from './icons.js';
import type { InstallFacts } from './install-page.repository.js';
import { renderLayout, renderNotice } from './layout.js';
import { isStale, lockMinutes, type PageState } from './page-state.js';
import { fill, type InstallTexts, TEXTS } from './texts/index.js';

/** The code that installs the eSIM, with its drawing; the drawing is null if it could not be made. */
export interface ShownCode {
  readonly install: InstallData;
  readonly svg: string | null;
}

export interface InstallView {
  readonly facts: InstallFacts;
  readonly state: PageState;
  readonly language: Language;
  readonly device: Device;
  /** Null when it is hidden. */
  readonly code: ShownCode | null;
}

/** Renders the page of a link. Without `code` it contains nothing that installs the eSIM. */
export function renderInstallPage(view: InstallView): string {
  const page = new InstallPage(view);
  return renderLayout({
    language: view.language,
    title: page.title,
    brand: view.facts.brand,
    device: view.device.kind,
    isTest: view.facts.mode === 'sandbox',
    content: page.content(),
    footer: page.footer(),
  });
}

export type CodeProblem = 'wrong' | 'locked' | null;

/** Renders the form for the access code, which shows nothing about the eSIM. */
export function renderCodeForm(facts: InstallFacts, language: Language, problem: CodeProblem): string {
  const texts = TEXTS[language];
  const { brand } = facts;
  const when = new Formats(language).inMinutes(lockMinutes(facts));
  const message = problem === 'wrong' ? texts.codeWrong : fill(texts.codeLocked, { when });
  const wrong =
    problem === null
      ? null
      : html`<p class="wrong" id="wrong" role="alert">${icon('warn')}<span>${message}</span></p>`;
  const content = html`<section class="state plain">
    ${icon('key')}
    <h1>${texts.codeTitle}</h1>
    <p class="lead">${fill(texts.codeText, { brand: brand.name })}</p>
    <form class="code-form" method="post" action="?lang=${language}">
      <label for="code">${texts.codeLabel}</label>
      <input
        id="code"
        name="code"
        inputmode="numeric"
        autocomplete="one-time-code"
        maxlength="20"
        required${problem === null ? null : html` aria-invalid="true" aria-describedby="wrong"`}
      />
      ${wrong}
      <button class="go" type="submit">${texts.codeButton}</button>
    </form>
  </section>`;
  return renderLayout({
    language,
    title: texts.codeTitle,
    brand,
    device: 'screen',
    isTest: facts.mode === 'sandbox',
    content,
    footer: contactOf(facts, texts),
  });
}

function contactOf({ brand: { name, helpUrl } }: InstallFacts, texts: InstallTexts): Html | null {
  if (helpUrl === null) return null;
  return html`<p><a href="${helpUrl}" rel="noreferrer">${fill(texts.contact, { brand: name })}</a></p>`;
}

class InstallPage {
  readonly title: string;
  private readonly texts: InstallTexts;
  private readonly formats: Formats;
  private readonly zone: string;

  constructor(private readonly view: InstallView) {
    const { coverage, region } = view.facts;
    this.texts = TEXTS[view.language];
    this.formats = new Formats(view.language);
    this.zone = zoneOf(coverage);
    const place = this.formats.place(coverage, region);
    this.title = place === null ? this.texts.titlePlain : fill(this.texts.title, { place });
  }

  content(): Html {
    const { texts } = this;
    if (this.view.state === 'ended')
      return renderNotice({
        icon: 'clock',
        title: texts.endedTitle,
        text: this.title,
        help: texts.endedText,
        retry: null,
      });
    return this.view.state === 'new' ? this.newEsim() : this.installedEsim();
  }

  footer(): Html {
    const { facts } = this.view;
    const { reference } = facts;
    const order =
      reference === null ? null : html`<p class="muted">${fill(this.texts.order, { reference })}</p>`;
    return html`${contactOf(facts, this.texts)}${order}`;
  }

  private newEsim(): Html {
    const { code } = this.view;
    return html`<section class="state new">
      <div class="hero">
        <h1>${this.title}</h1>
        <p class="lead">${this.plan()}</p>
      </div>
      ${code === null ? null : this.waysToInstall(code)} ${this.steps(this.texts.howTitle, true)}
      <div class="folds">${this.noInternet()}</div>
      <p class="warning">
        ${icon('warn')}<span
          ><strong>${this.texts.once}</strong> ${this.texts.onceText}${this.installBy()}</span
        >
      </p>
    </section>`;
  }

  /** The first step for the visitor's device. */
  private waysToInstall(code: ShownCode): Html {
    const { device } = this.view;
    const { texts } = this;
    const { iosUrl, androidUrl } = toInstallLinks(toActivationCode(code.install));
    const scan = html`<p>${texts.scanHint}</p>
      ${this.qr(code)}`;
    const codes = html`<p class="muted">${texts.manualHint}</p>
      ${this.codes(code)}`;
    const both = html`${scan}
      <h3>${texts.manualTitle}</h3>
      ${codes}`;
    const other = this.fold('qr', texts.showQr, both);
    switch (device.kind) {
      case 'screen':
        return html`<section class="scan" aria-labelledby="scan">
          <h2 id="scan">${texts.scanTitle}</h2>
          ${both}
        </section>`;
      case 'apple':
        return html`${this.button(iosUrl, fill(texts.installApple, { device: device.name }))}${this.other(other)}`;
      case 'android':
        return html`${this.button(androidUrl, texts.installAndroid)}${this.manual(codes)}${this.other(this.fold('qr', texts.showQr, scan))}`;
      case 'phone':
        return html`${this.manual(codes)}${this.other(this.fold('qr', texts.showQr, scan))}`;
    }
  }

  private button(href: string, label: string): Html {
    return html`<div class="device">
      <a class="go" href="${href}" aria-describedby="note">${icon('download')}${label}</a>
      <p class="note" id="note">${icon('wifi')}${this.texts.stayOnWifi}</p>
    </div>`;
  }

  private manual(codes: Html): Html {
    return html`<section class="scan" aria-labelledby="manual">
      <h2 id="manual">${this.texts.manualTitle}</h2>
      ${codes}
    </section>`;
  }

  private other(fold: Html): Html {
    return html`<section class="scan" aria-labelledby="other">
      <h2 id="other">${this.texts.anotherDevice}</h2>
      ${fold}
    </section>`;
  }

  private qr({ svg }: ShownCode): Html | null {
    if (svg === null) return null;
    return html`<div class="qr" role="img" aria-label="${this.texts.qrLabel}">${trusted(svg)}</div>`;
  }

  private codes({ install }: ShownCode): Html {
    const { texts } = this;
    const { confirmationCode } = install;
    const activationCode = toActivationCode(install);
    const [, address = '', matchingId = ''] = activationCode.split('$');
    const needsCode = needsConfirmationCode(activationCode) && confirmationCode !== null;
    return html`<dl class="codes">
      ${entry(texts.smdpAddress, address)}${entry(texts.activationCode, matchingId)}${needsCode ? entry(texts.confirmationCode, confirmationCode) : null}
    </dl>`;
  }

  private installedEsim(): Html {
    const { code } = this.view;
    const { texts } = this;
    const shown =
      code === null
        ? html`<p><a href="?show=1&amp;lang=${this.view.language}">${texts.showCode}</a></p>`
        : html`<section class="scan" aria-labelledby="code">
            <h2 id="code">${texts.showCode}</h2>
            <p>${texts.showCodeHint}</p>
            ${this.qr(code)}${this.codes(code)}
          </section>`;
    return html`<section class="state installed">
      <div class="hero">
        ${this.status()}
        <h1>${this.title}</h1>
      </div>
      ${this.left()} ${this.onPhone()} ${shown}
    </section>`;
  }

  /** Null if the eSIM is no longer on the phone. */
  private onPhone(): Html | null {
    if (this.view.facts.profileStatus === 'deleted') return null;
    return html`${this.steps(this.texts.onPhoneTitle, false)}
      <div class="folds">${this.noInternet()}</div>`;
  }

  private status(): Html {
    const { status, profileStatus, activatedAt } = this.view.facts;
    const { texts } = this;
    if (status === 'suspended') return html`<p class="status paused">${icon('clock')}${texts.suspended}</p>`;
    if (status === 'depleted') return html`<p class="status paused">${icon('warn')}${texts.usedUp}</p>`;
    if (profileStatus === 'deleted')
      return html`<p class="status paused">${icon('warn')}${texts.removed}</p>`;
    return html`<p class="status">${icon('ok')}${activatedAt ? texts.inUse : texts.notUsedYet}</p>`;
  }

  private left(): Html {
    const { facts } = this.view;
    const { texts } = this;
    const date = this.formats.time(facts.usageAsOf, this.zone);
    const measured = fill(isStale(facts) ? texts.stale : texts.asOf, { date });
    return html`<section class="left" aria-label="${texts.whatIsLeft}">
      ${this.usage()}
      <div>
        <p class="label">${texts.timeLeft}</p>
        ${this.timeLeft()}
      </div>
      <p class="muted asof">${icon('refresh')}<span>${measured}</span></p>
    </section>`;
  }

  /** Null if the last measurement is too old to be shown. */
  private usage(): Html | null {
    if (isStale(this.view.facts)) return null;
    return html`<div>
      <p class="label">${this.texts.dataLeft}</p>
      ${this.dataLeft()}
    </div>`;
  }

  private dataLeft(): Html {
    const { totalBytes, usedBytes } = this.view.facts;
    if (totalBytes === null) return html`<p class="big">${this.texts.unlimited}</p>`;
    const left = Math.max(0, totalBytes - usedBytes);
    const share = totalBytes === 0 ? 0 : Math.floor((left / totalBytes) * 100);
    return html`<p class="big">${this.formats.data(left)} <span>/ ${this.formats.data(totalBytes)}</span></p>
      <svg class="meter" aria-hidden="true"><rect width="${share}%" height="100%" /></svg>`;
  }

  private timeLeft(): Html {
    const { expiresAt, validityDays, activationPolicy, now } = this.view.facts;
    if (expiresAt === null) {
      const note = activationPolicy === 'on_first_use' ? this.texts.startsOnFirstUse : null;
      return html`<p class="big">${this.formats.days(validityDays)}</p>
        <p class="muted">${note}</p>`;
    }
    const until = fill(this.texts.until, { date: this.formats.time(expiresAt, this.zone) });
    return html`<p class="big">${this.formats.timeLeft(now, expiresAt)}</p>
      <p class="muted">${until}</p>`;
  }

  private plan(): Html {
    const { totalBytes, validityDays } = this.view.facts;
    const data = totalBytes === null ? this.texts.unlimited : this.formats.data(totalBytes);
    const plan = fill(this.texts.plan, { data, days: this.formats.days(validityDays) });
    return html`<strong>${plan}</strong> ${this.beginning()}`;
  }

  private beginning(): string {
    const { activationPolicy, expiresAt } = this.view.facts;
    if (expiresAt !== null)
      return fill(this.texts.validUntil, { date: this.formats.time(expiresAt, this.zone) });
    return activationPolicy === 'on_install' ? this.texts.startsOnInstall : this.texts.startsOnFirstUse;
  }

  private installBy(): string {
    const { installBy } = this.view.facts;
    if (installBy === null) return '';
    return ` ${fill(this.texts.installBy, { date: this.formats.date(installBy, this.zone) })}`;
  }

  private steps(title: string, withInstallation: boolean): Html {
    const { texts } = this;
    const step = (name: string, text: string): Html =>
      html`<li><strong>${name}</strong><span>${text}</span></li>`;
    return html`<section class="how" aria-labelledby="how">
      <h2 id="how">${title}</h2>
      <ol class="steps">
        ${
          withInstallation ? step(texts.stepInstall, texts.stepInstallText) : null
        }${step(texts.stepLines, texts.stepLinesText)}${step(texts.stepRoaming, texts.stepRoamingText)}
      </ol>
    </section>`;
  }

  private noInternet(): Html {
    const { facts, device } = this.view;
    const { texts } = this;
    const ways = [
      ...(device.kind === 'android' ? [] : [html`<p class="muted">${texts.apnApple}</p>`]),
      ...(device.kind === 'apple' ? [] : [html`<p class="muted">${texts.apnAndroid}</p>`]),
    ];
    const apn =
      facts.apn === null
        ? null
        : html`<p>${texts.enterApn}</p>
            <dl class="codes">${entry('APN', facts.apn)}</dl>
            ${ways}`;
    return this.fold(
      'wifi',
      texts.noInternet,
      html`<p>${texts.checkRoaming}</p>
        ${apn}`,
    );
  }

  private fold(name: IconName, title: string, content: Html): Html {
    return html`<details class="fold">
      <summary>${icon(name)}<span>${title}</span>${icon('down')}</summary>
      <div>${content}</div>
    </details>`;
  }
}

function entry(name: string, value: string): Html {
  return html`<div>
    <dt>${name}</dt>
    <dd><code translate="no">${value}</code></dd>
  </div>`;
}
