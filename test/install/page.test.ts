import { randomBytes } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LANGUAGES } from '../../src/install-links/languages.js';
import {
  eventually,
  type HttpClient,
  startTestService,
  type TestPartner,
  type TestService,
} from '../harness/index.js';
import { issueEsim, type Json } from '../harness/order-steps.js';
import { codesOf, COMPUTER, createLink, IPHONE, type Page, Visitor } from './install-steps.js';

let service: TestService;
let partner: TestPartner;
let api: HttpClient;
let phone: Visitor;
beforeAll(async () => {
  service = await startTestService();
  partner = await service.createPartner('Kestrel & <b>Co</b>');
  api = partner.sandbox;
  phone = Visitor.of(service);
});
afterAll(() => service.stop());

const sql = async (text: string, values: readonly unknown[]): Promise<void> =>
  void (await service.database.pool.query(text, [...values]));

async function newLink(terms: object = {}, packageId = 'pkg_jp_1gb_7d') {
  return createLink(api, await issueEsim(api, packageId), terms);
}

async function openings({ id, esimId }: { id: string; esimId: string }): Promise<number> {
  return (await api.get(`/v1/esims/${esimId}/install-links/${id}`)).body.data.opened_count as number;
}

/** Everything by which two responses could be told apart: all but the id and the time of the call. */
function fingerprint({ status, headers, text }: Page): Json {
  const others = [...headers].filter(([name]) => name !== 'x-request-id' && name !== 'date');
  return { status, headers: others, text };
}

const buttonOf = (page: Page): string | undefined => /<a class="go" href="([^"]+)"/.exec(page.text)?.[1];

describe('a page without a valid link', () => {
  it('is one and the same 404, whatever the link was', async () => {
    const expired = await newLink();
    await sql('UPDATE install_links SET expires_at = now() WHERE id = $1', [expired.id]);
    const revoked = await newLink();
    await api.call('DELETE', `/v1/esims/${revoked.esimId}/install-links/${revoked.id}`);
    const deleted = await newLink();
    await sql('DELETE FROM esims WHERE id = $1', [deleted.esimId]);
    const swapped = (await newLink()).token.replace(/[a-zA-Z]/g, (char) =>
      char === char.toLowerCase() ? char.toUpperCase() : char.toLowerCase(),
    );
    const guessed = await phone.open(`/i/${randomBytes(32).toString('base64url')}`);
    expect(guessed.status).toBe(404);
    expect(guessed.text).toContain('This link does not work');
    expect(guessed.text).not.toContain('Kestrel');
    const paths = [
      ...[expired.path, revoked.path, deleted.path, `/i/${swapped}`],
      ...[
        `${expired.path}x`,
        `${expired.path.slice(0, -1)}`,
        '/i/',
        '/i/x',
        '/',
        '/nothing',
        '/i/%zz',
        '/i//x',
      ],
    ];
    for (const path of paths)
      expect([path, fingerprint(await phone.open(path))]).toEqual([path, fingerprint(guessed)]);
    expect(fingerprint(await phone.enter(revoked.path, '12345678'))).toEqual(fingerprint(guessed));
  });

  it('follows the language of the browser, not that of the link', async () => {
    const link = await newLink({ locale: 'ja' });
    await sql('UPDATE install_links SET expires_at = now() WHERE id = $1', [link.id]);
    const page = await phone.open(link.path, { 'accept-language': 'de' });
    expect(page.text).toContain('Dieser Link funktioniert nicht');
  });

  it('is limited for guesses of one network, which keeps nobody from a valid link', async () => {
    const other = await startTestService({
      database: service.database,
      role: 'install',
      env: { TRUST_PROXY: '1' },
    });
    try {
      const visitor = Visitor.of(other, { 'user-agent': IPHONE, 'x-forwarded-for': '203.0.113.9' });
      const guess = (): Promise<Page> => visitor.open(`/i/${randomBytes(32).toString('base64url')}`);
      let last = await guess();
      for (let tries = 1; last.status === 404 && tries < 200; tries++) last = await guess();
      expect(last.status).toBe(429);
      expect(last.headers.get('retry-after')).toMatch(/^\d+$/);
      expect(last.text).toContain('Try again');
      expect((await visitor.open((await newLink()).path)).status).toBe(200);
    } finally {
      await other.stop();
    }
  });
});

describe('the headers of every page', () => {
  it('permit no cache, index, frame, referrer, script or inline style', async () => {
    const { path } = await newLink({ access_code: true });
    for (const page of [
      await phone.open(path),
      await phone.open('/i/x'),
      await phone.open((await newLink()).path),
    ]) {
      expect(page.headers.get('cache-control')).toBe('no-store');
      expect(page.headers.get('referrer-policy')).toBe('no-referrer');
      expect(page.headers.get('x-robots-tag')).toContain('noindex');
      expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
      const policy = page.headers.get('content-security-policy')!;
      expect(policy).toContain("default-src 'none'; style-src 'self'");
      expect(policy).toContain("frame-ancestors 'none'");
      expect(page.text).not.toMatch(/<script|<style|\sstyle=|\son\w+=/);
    }
  });

  it('let browsers keep the style sheets, and only those', async () => {
    const page = await phone.open((await newLink()).path);
    const [, sheet] = /href="(\/assets\/install-\w+\.css)"/.exec(page.text)!;
    const styles = await phone.open(sheet!);
    expect(styles.headers.get('cache-control')).toContain('immutable');
    expect(styles.text).toContain('--brand');
    expect((await phone.open('/assets/accent-0b6e63.css')).text).toBe(':root { --brand: #0b6e63; }\n');
    expect((await phone.open('/assets/accent-red.css')).status).toBe(404);
    expect((await phone.open('/assets/../page-files.js')).status).toBe(404);
  });
});

const ios = (version: string, more = ''): string =>
  `Mozilla/5.0 (iPhone; CPU iPhone OS ${version} like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) ${more}Mobile/15E148 Safari/604.1`;
const android = (version: number, model: string, more = 'Chrome/142.0.0.0 Mobile Safari/537.36'): string =>
  `Mozilla/5.0 (Linux; Android ${version}; ${model}) AppleWebKit/537.36 (KHTML, like Gecko) ${more}`;

const PHONES: readonly [string, string, 'apple' | 'android' | 'codes'][] = [
  ['iPhone, iOS 26', ios('18_7', 'Version/26.1 '), 'apple'],
  ['iPhone, iOS 18', ios('18_1', 'Version/18.1 '), 'apple'],
  ['iPhone, iOS 17.4', ios('17_4', 'Version/17.4 '), 'apple'],
  ['iPhone, iOS 17.4.1 in Chrome', ios('17_4_1', 'CriOS/142.0.7444.128 '), 'apple'],
  ['iPhone, iOS 26 in Firefox', ios('18_7', 'FxiOS/145.0 '), 'apple'],
  ['iPhone, iOS 26 in Edge', ios('26_0', 'EdgiOS/142.0.0.0 Version/26.0 '), 'apple'],
  ['iPhone, iOS 26 in Instagram', `${ios('26_1')} Instagram 405.0.0`, 'apple'],
  ['iPad, iPadOS 18', ios('18_5').replaceAll('iPhone', 'iPad'), 'apple'],
  ['iPhone, iOS 17.3', ios('17_3', 'Version/17.3 '), 'codes'],
  ['iPhone, iOS 16', ios('16_7_10', 'Version/16.6 '), 'codes'],
  ['Pixel 10', android(16, 'Pixel 10 Pro'), 'android'],
  ['Pixel, reduced user agent', android(10, 'K'), 'android'],
  [
    'Galaxy S25, Samsung Internet',
    android(15, 'SM-S931B', 'SamsungBrowser/28.0 Chrome/130.0.0.0 Mobile Safari/537.36'),
    'android',
  ],
  ['Galaxy Fold', android(15, 'SM-F966B'), 'android'],
  ['Galaxy Tab', android(14, 'SM-X810', 'Chrome/142.0.0.0 Safari/537.36'), 'android'],
  ['Xiaomi', android(15, '24129PN74G'), 'android'],
  ['Firefox on Android', 'Mozilla/5.0 (Android 15; Mobile; rv:145.0) Gecko/145.0 Firefox/145.0', 'android'],
  [
    'Motorola in Facebook',
    android(14, 'moto g84', 'Version/4.0 Chrome/141.0.0.0 Mobile Safari/537.36 [FB_IAB/FB4A]'),
    'android',
  ],
  [
    'Huawei, HarmonyOS NEXT',
    'Mozilla/5.0 (Phone; OpenHarmony 5.0) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/132.0.0.0 Safari/537.36 ArkWeb/5.1 Mobile',
    'codes',
  ],
  [
    'Windows Phone',
    'Mozilla/5.0 (Windows Phone 10.0; Android 6.0.1; Microsoft; Lumia 950) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/52.0 Mobile Safari/537.36 Edge/15.15254',
    'codes',
  ],
];

describe('the first step on a phone', () => {
  let link: Awaited<ReturnType<typeof newLink>>;
  let code: string;
  beforeAll(async () => {
    link = await newLink();
    const { smdp, matching } = await codesOf(api, link.esimId);
    code = `LPA:1$${smdp}$${matching}`;
  });

  it.each(PHONES)('fits %s', async (_name, userAgent, first) => {
    const page = await phone.open(link.path, { 'user-agent': userAgent });
    const host = { apple: 'esimsetup.apple.com', android: 'esimsetup.android.com', codes: null }[first];
    expect(buttonOf(page)).toBe(
      host === null ? undefined : `https://${host}/esim_qrcode_provisioning?carddata=${code}`,
    );
    // Without a link, and beside that of Android, the codes are open. On an iPhone they are folded away.
    expect(page.text.includes('<h2 id="manual">Enter it by hand')).toBe(first !== 'apple');
    expect(page.text.indexOf('Show the QR code')).toBeGreaterThan(0);
  });

  it('is the QR code on a computer, without a button', async () => {
    const page = await phone.open(link.path, { 'user-agent': COMPUTER });
    expect(buttonOf(page)).toBeUndefined();
    expect(page.text).toContain('Scan this with your phone');
    expect(page.text).toContain('<svg viewBox=');
    expect(page.text).not.toContain('Show the QR code');
  });
});

describe('the page of a new eSIM', () => {
  it('names the destination and what was bought, and escapes what others wrote', async () => {
    const { text } = await phone.open((await newLink()).path);
    expect(text).toContain('<h1>Your eSIM for Japan</h1>');
    expect(text).toContain('1 GB for 7 days.');
    expect(text).toContain('This is a test eSIM');
    expect(text).toContain('Kestrel &amp; &lt;b&gt;Co&lt;/b&gt;');
    expect(text).not.toContain('<b>Co');
  });

  it("has the partner's brand, from https addresses only", async () => {
    const { path } = await newLink();
    const brand = (values: object): Promise<void> =>
      sql('UPDATE partners SET brand = $2 WHERE id = $1', [partner.id, JSON.stringify(values)]);
    const [logo, help] = ['https://cdn.kestrel.example/logo.svg', 'https://kestrel.example/help'];
    await brand({ name: 'Kestrel', logo_url: logo, accent: '#0B6E63', help_url: help });
    const branded = await phone.open(path);
    expect(branded.text).toContain('Your eSIM for Japan · Kestrel</title>');
    expect(branded.text).toContain(`<img class="logo" src="${logo}"`);
    expect(branded.text).toContain('href="/assets/accent-0b6e63.css"');
    expect(branded.text).toContain(`<a href="${help}" rel="noreferrer">Contact Kestrel</a>`);
    expect(branded.headers.get('content-security-policy')).toContain(
      '; img-src https://cdn.kestrel.example;',
    );
    await brand({ name: null, logo_url: 'http://x/', accent: 'red;', help_url: 'javascript:alert(1)' });
    const plain = await phone.open(path);
    expect(plain.text).not.toMatch(/javascript:|<img|accent-|red;/);
    for (const host of ['*', 'a.example;form-action', "a'example", 'a.example,b', 'a@b.example']) {
      await brand({ logo_url: `https://${host}/logo.svg` });
      const { headers, text } = await phone.open(path);
      expect([host, headers.get('content-security-policy')]).toEqual([
        host,
        plain.headers.get('content-security-policy'),
      ]);
      expect(text).not.toContain('<img');
    }
    await brand({ name: '🇯🇵 Travel' });
    expect((await phone.open(path)).text).toContain('<span class="mark" aria-hidden="true">🇯🇵</span>');
    await brand({});
  });

  it.each(LANGUAGES)('is complete in %s, by query, by link and by browser', async (language) => {
    const { path } = await newLink({ locale: language });
    const byLink = await phone.open(path);
    expect(byLink.text).toContain(`<html lang="${language}">`);
    expect(byLink.text).not.toMatch(/\{\w+\}/);
    const { path: open } = await newLink();
    expect((await phone.open(`${open}?lang=${language}`)).text).toContain(`<html lang="${language}">`);
    const byBrowser = await phone.open(open, { 'accept-language': `${language}-XX,en;q=0.5` });
    expect(byBrowser.text).toContain(`<html lang="${language}">`);
  });
});

describe('the page of an installed eSIM', () => {
  it('shows what is left, and the code only when asked', async () => {
    const link = await newLink();
    const { matching } = await codesOf(api, link.esimId);
    expect((await phone.open(link.path)).text).toContain(matching);
    await api.post(`/v1/sandbox/esims/${link.esimId}/activate`);
    await api.post(`/v1/sandbox/esims/${link.esimId}/consume`, { bytes: 300_000_000 });
    const page = await phone.open(link.path);
    expect(page.text).toContain('Installed and in use');
    expect(page.text).toContain('700 MB');
    expect(page.text).toMatch(/6 days|7 days/);
    expect(page.text).toContain('Data as of');
    expect(page.text).not.toContain(matching);
    const [, asked] = /href="(\?show=1[^"]*)"/.exec(page.text)!;
    expect((await phone.open(link.path + asked!.replace('&amp;', '&'))).text).toContain(matching);
  });

  it('says when all data is used, and when the eSIM is suspended', async () => {
    const link = await newLink();
    await api.post(`/v1/sandbox/esims/${link.esimId}/activate`);
    await sql(`UPDATE esims SET status = 'suspended' WHERE id = $1`, [link.esimId]);
    expect((await phone.open(link.path)).text).toContain('Paused by your provider');
    await sql(`UPDATE esims SET status = 'depleted', used_bytes = total_bytes WHERE id = $1`, [link.esimId]);
    const { text } = await phone.open(link.path);
    expect(text).toContain('All data is used');
    expect(text).toContain('0 MB');
  });

  it('says that the eSIM is no longer on the phone', async () => {
    const link = await newLink();
    await api.post(`/v1/sandbox/esims/${link.esimId}/activate`);
    await sql(`UPDATE esims SET profile_status = 'deleted' WHERE id = $1`, [link.esimId]);
    const { text } = await phone.open(link.path);
    expect(text).toContain('Removed from the phone');
    expect(text).not.toMatch(/Installed|On your phone|No internet/);
    expect(text).toContain('Show the installation code again');
  });

  it('shows no usage that is older than a day', async () => {
    const link = await newLink();
    await api.post(`/v1/sandbox/esims/${link.esimId}/activate`);
    await sql(`UPDATE esims SET usage_as_of = now() - interval '25 hours' WHERE id = $1`, [link.esimId]);
    const { text } = await phone.open(link.path);
    expect(text).toContain('The network has not reported your data use since');
    expect(text).not.toContain('Data left');
  });
});

describe('the page of an ended eSIM', () => {
  it.each([
    `status = 'expired'`,
    `status = 'canceled'`,
    // The worker that would expire it may be down.
    `status = 'active', activated_at = now() - interval '8 days', expires_at = now() - interval '1 second'`,
  ])('shows no code after %s', async (change) => {
    const link = await newLink();
    const { matching } = await codesOf(api, link.esimId);
    await sql(`UPDATE esims SET ${change} WHERE id = $1`, [link.esimId]);
    for (const path of [link.path, `${link.path}?show=1`]) {
      const { status, text } = await phone.open(path);
      expect(status).toBe(200);
      expect(text).toContain('This eSIM has ended');
      expect(text).not.toContain(matching);
    }
  });
});

describe('an opening', () => {
  it('counts when a person sees the page, not for a preview, a check or a prefetch', async () => {
    const link = await newLink();
    const { matching } = await codesOf(api, link.esimId);
    const previews = [
      'facebookexternalhit/1.1 (+http://www.facebook.com/externalhit_uatext.php)',
      'Mozilla/5.0 (Macintosh; Intel Mac OS X 10_11_1) AppleWebKit/601.2.4 (KHTML, like Gecko) Version/9.0.1 Safari/601.2.4 facebookexternalhit/1.1 Facebot Twitterbot/1.0',
      'WhatsApp/2.24.6.77 A',
      'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)',
      'TelegramBot (like TwitterBot)',
      'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)',
      'Mozilla/5.0 (Windows NT 6.1; WOW64) SkypeUriPreview Preview/0.5',
      'curl/8.5.0',
    ];
    for (const userAgent of previews) {
      const page = await phone.open(link.path, { 'user-agent': userAgent });
      expect([userAgent, page.status]).toEqual([userAgent, 200]);
      expect(page.text).not.toContain(matching);
    }
    const check = await phone.open(link.path, {}, 'HEAD');
    expect([check.status, check.text]).toEqual([200, '']);
    // The browser shows later what it loaded in advance.
    const prefetched = await phone.open(link.path, { 'sec-purpose': 'prefetch;prerender' });
    expect(prefetched.text).toContain(matching);
    const people = [
      'Mozilla/5.0 (Linux; Android 13; CUBOT P80) AppleWebKit/537.36 (KHTML, like Gecko) Version/4.0 Chrome/142.0.0.0 Mobile Safari/537.36',
      'Opera/9.80 (Android; Opera Mini/84.0.2254/191.303; U; id) Presto/2.12.423 Version/12.16',
    ];
    for (const userAgent of people)
      expect((await phone.open(link.path, { 'user-agent': userAgent })).text).toContain(matching);
    await eventually('both openings are counted', async () => (await openings(link)) === 2);
    const shown = await api.get(`/v1/esims/${link.esimId}/install-links/${link.id}`);
    expect(Date.parse(shown.body.data.last_opened_at as string)).toBeGreaterThan(Date.now() - 180_000);
  });
});

describe('an access code', () => {
  it('opens the page for an hour in the browser that entered it', async () => {
    const link = await newLink({ access_code: true });
    const { matching } = await codesOf(api, link.esimId);
    const form = await phone.open(link.path);
    expect(form.text).toContain('Enter your access code');
    expect(form.text).not.toContain('Japan');
    const wrong = await phone.enter(link.path, '00000000x');
    expect(wrong.status).toBe(403);
    expect(wrong.text).toContain('This code is not correct');
    const spaced = `${link.accessCode!.slice(0, 4)} ${link.accessCode!.slice(4)}`;
    const entered = await phone.enter(`${link.path}?lang=de`, spaced);
    expect(entered.status).toBe(303);
    expect(entered.headers.get('location')).toBe(`${link.path}?lang=de`);
    const cookie = entered.headers.get('set-cookie')!;
    expect(cookie).toMatch(new RegExp(`; Path=${link.path}; Max-Age=3600; HttpOnly; SameSite=Lax$`));
    const pass = { cookie: cookie.split(';')[0]! };
    expect((await phone.open(link.path, pass)).text).toContain(matching);
    const other = await newLink({ access_code: true });
    expect((await phone.open(other.path, pass)).text).toContain('Enter your access code');
    await eventually('one opening is counted', async () => (await openings(link)) === 1);
  });

  it('locks the link after five wrong tries, also for the correct code, until the lock ends', async () => {
    const link = await newLink({ access_code: true });
    const tries = await Promise.all(Array.from({ length: 20 }, () => phone.enter(link.path, '1')));
    expect(tries.filter(({ status }) => status === 403)).toHaveLength(4);
    const locked = await phone.enter(link.path, link.accessCode!);
    expect(locked.status).toBe(429);
    expect(locked.headers.get('retry-after')).toBe('900');
    expect(locked.text).toContain('Too many wrong codes');
    await sql(`UPDATE install_links SET locked_until = now() WHERE id = $1`, [link.id]);
    expect((await phone.enter(link.path, link.accessCode!)).status).toBe(303);
  });

  it('says on a locked link how long to wait, also before the next try', async () => {
    const link = await newLink({ access_code: true });
    const lock = `UPDATE install_links SET locked_until = now() + interval '130 seconds' WHERE id = $1`;
    await sql(lock, [link.id]);
    expect((await phone.open(link.path)).text).toContain('Try again in 3 minutes.');
    expect((await phone.open(`${link.path}?lang=de`)).text).toContain('Versuchen Sie es in 3 Minuten');
    const refused = await phone.enter(link.path, link.accessCode!);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([429, '180']);
    expect(refused.text).toContain('Try again in 3 minutes.');
  });

  it('may be typed with a Japanese keyboard', async () => {
    const link = await newLink({ access_code: true });
    const wide = link.accessCode!.replace(/\d/g, (digit) => String.fromCodePoint(0xff10 + Number(digit)));
    expect((await phone.enter(link.path, wide)).status).toBe(303);
  });

  it.each(['', 'a'.repeat(5_000)])('refuses a form with other values', async (code) => {
    const link = await newLink({ access_code: true });
    expect((await phone.enter(link.path, code)).status).toBe(403);
  });
});
