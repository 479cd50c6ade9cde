import type { Command } from '../command.js';
import type { Context } from '../context.js';
import { EXIT, type ExitCode, usageError } from '../exit-codes.js';
import type { AutoTopup, Esim, NewInstallLink } from '../partner-api.js';
import { bytesText, moneyText } from '../terminal/values.js';
import { wholeNumber } from './values.js';

export const esimsList: Command = {
  name: 'esims list',
  summary: 'list eSIMs, newest first, without install data',
  options: {
    status: { type: 'string', value: 'status', help: 'only eSIMs in this status' },
    order: { type: 'string', value: 'id', help: 'only eSIMs of this order' },
    iccid: { type: 'string', value: 'iccid', help: 'only the eSIM with this ICCID' },
    label: { type: 'string', value: 'text', help: 'only eSIMs with this label of yours' },
    limit: { type: 'string', value: 'n', help: 'maximum number to show, 1 to 100 (default: 25)' },
    cursor: { type: 'string', value: 'cursor', help: 'the cursor of the previous page' },
  },
  examples: [
    { command: 'esim esims list --status active', says: 'eSIMs in use' },
    { command: 'esim esims list --order ord_01M7SJ8EH4V8DA1TCQEKT9GHZ7 --json', says: 'eSIMs of one order' },
  ],
  run: async (context, options) => {
    const page = await context.api.esims({
      status: options.text('status'),
      order_id: options.text('order'),
      iccid: options.text('iccid'),
      label: options.text('label'),
      limit: options.text('limit'),
      cursor: options.text('cursor'),
    });
    for (const esim of page.data) context.output.data(esim);
    context.output.table(
      page.data.map(({ id, status, iccid, package_id, created_at }) => [
        id,
        status,
        `iccid ${iccid}`,
        package_id,
        created_at,
      ]),
    );
    context.output.noteNextPage(page);
    return EXIT.ok;
  },
};

function requireEsim(id: string | undefined): asserts id is string {
  if (id === undefined)
    throw usageError('the eSIM is missing', 'Pass its id. `esim esims list` lists your eSIMs.');
}

export const esimsGet: Command = {
  name: 'esims get',
  summary: 'show an eSIM with its install data',
  arguments: '<esim>',
  details: `Anyone with the activation code can install the eSIM. Show this output to the traveler only, and do not log it.`,
  examples: [
    {
      command: 'esim esims get esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7',
      says: 'an eSIM with its install links for iOS and Android',
    },
  ],
  run: async (context, _options, [id]) => {
    requireEsim(id);
    const esim = await context.api.esimWithInstall(id);
    const { output } = context;
    const { data, install, confirmation_code: confirmation } = esim;
    output.line(`${output.bold(esim.id)}  ${esim.status}  ${esim.package_id}`);
    const left = data.unlimited
      ? 'unlimited'
      : `${bytesText(data.remaining_bytes)} of ${bytesText(data.total_bytes)}`;
    output.table([
      ...(esim.label === null ? [] : [['  label', esim.label]]),
      ['  iccid', esim.iccid],
      ['  data left', left],
      [
        '  actions',
        esim.pending_action === null
          ? esim.actions.join(', ') || 'none'
          : `${esim.pending_action} is pending`,
      ],
      ...(esim.action_failure === null ? [] : [['  last action failed', esim.action_failure.reason]]),
      ['  smdp address', esim.smdp_address],
      ['  activation code', esim.activation_code],
      ...(confirmation === null ? [] : [['  confirmation code', confirmation]]),
      ...(esim.pin === null ? [] : [['  PIN', esim.pin]]),
      ...(esim.puk === null ? [] : [['  PUK', esim.puk]]),
      ['  install on iOS', install.ios_url],
      ['  install on Android', install.android_url],
    ]);
    output.data(esim);
    return EXIT.ok;
  },
};

export const esimsInstallLink: Command = {
  name: 'esims install-link',
  summary: 'create, list or revoke links to the install page of an eSIM',
  arguments: '<esim>',
  details: `The page shows the traveler how to install the eSIM. Anyone who has the link can install it. The link is shown once.`,
  options: {
    days: { type: 'string', value: 'n', help: 'lifetime of the link in days (default: 30)' },
    locale: {
      type: 'string',
      value: 'code',
      help: "language of the page, such as de (default: the browser's)",
    },
    'access-code': { type: 'boolean', help: 'let the page ask for a code, which you send separately' },
    list: { type: 'boolean', help: 'list the links and how often they were opened' },
    revoke: { type: 'string', value: 'link', help: 'end this link' },
  },
  examples: [
    {
      command: 'esim esims install-link esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7 --locale de',
      says: 'a link for a traveler who reads German',
    },
    { command: 'esim esims install-link <esim> --list', says: 'the links, without their addresses' },
  ],
  run: async (context, options, [id]) => {
    requireEsim(id);
    const revoked = options.text('revoke');
    const { output } = context;
    if (revoked !== undefined) {
      await context.writableApi.revokeInstallLink(id, revoked);
      output.note(`${revoked} no longer works.`);
      return EXIT.ok;
    }
    if (options.flag('list')) {
      const page = await context.api.installLinks(id);
      for (const link of page.data) output.data(link);
      output.table(
        page.data.map((link) => [link.id, `opened ${link.opened_count} times`, `until ${link.expires_at}`]),
      );
      return EXIT.ok;
    }
    const link = await context.writableApi.createInstallLink(id, {
      expires_in_days: wholeNumber(options, 'days', 30),
      locale: (options.text('locale') ?? null) as NonNullable<NewInstallLink['locale']> | null,
      access_code: options.flag('access-code'),
    });
    output.line(link.url ?? link.id);
    if (link.access_code !== null) output.line(`  access code  ${link.access_code}`);
    output.line(`  until ${link.expires_at}`);
    output.data(link);
    return EXIT.ok;
  },
};

export const esimsPlans: Command = {
  name: 'esims plans',
  summary: 'show the plans on an eSIM: in use, queued and ended',
  arguments: '<esim>',
  examples: [
    {
      command: 'esim esims plans esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7',
      says: 'the data and the end of each plan',
    },
  ],
  run: async (context, _options, [id]) => {
    requireEsim(id);
    const { output } = context;
    const { pooled, plans } = await context.api.plans(id);
    for (const plan of plans) output.data(plan);
    output.table(
      plans.map((plan) => [
        plan.order_id ?? plan.topup_id ?? plan.id,
        plan.status,
        plan.package_id ?? 'unknown package',
        plan.total_bytes === null
          ? ''
          : `${bytesText(plan.remaining_bytes)} of ${bytesText(plan.total_bytes)} left`,
        plan.ends_at === null ? '' : `until ${plan.ends_at}`,
      ]),
    );
    if (pooled) output.note('The wholesaler shows these plans as one. `esim esims get` shows the data left.');
    return EXIT.ok;
  },
};

export const esimsAutoTopup: Command = {
  name: 'esims auto-topup',
  summary: 'show, set or end the automatic top-up of an eSIM',
  arguments: '<esim>',
  details: `With --package, the service buys the package whenever the usage crosses --at. --off ends it. Without either, the
command shows the rule.`,
  options: {
    package: {
      type: 'string',
      short: 'p',
      value: 'id',
      help: 'the top-up to buy (see esim topups packages)',
    },
    at: { type: 'string', value: 'percent', help: 'usage that places a top-up: 50, 80 or 100 (default: 80)' },
    'max-times': { type: 'string', value: 'n', help: 'maximum number of top-ups (default: 1)' },
    'max-price': {
      type: 'string',
      value: 'amount',
      help: 'maximum price of each, in minor units such as cents (default: its current price)',
    },
    off: { type: 'boolean', help: 'end the automatic top-up' },
  },
  examples: [
    {
      command:
        'esim esims auto-topup esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7 --package pkg_fr_topup_1gb_7d --max-times 3',
      says: 'buy 1 GB at 80 % of the data, three times at most',
    },
    { command: 'esim esims auto-topup <esim> --off', says: 'buy nothing more' },
  ],
  run: async (context, options, [id]) => {
    if (id === undefined)
      throw usageError('the eSIM is missing', 'Pass its id. `esim esims list` lists your eSIMs.');
    const packageId = options.text('package');
    if (options.flag('off')) {
      if (packageId !== undefined)
        throw usageError('--off and --package exclude each other', 'Pass one of them.');
      await context.writableApi.deleteAutoTopup(id);
      context.output.note('The eSIM has no automatic top-up.');
      return EXIT.ok;
    }
    if (packageId === undefined) return shownRule(context, await context.api.autoTopup(id));
    const api = context.writableApi;
    const item = (await api.allTopupPackages(id)).find((each) => each.id === packageId);
    if (!item)
      throw usageError(
        `${packageId} does not fit this eSIM now`,
        `\`esim topups packages ${id}\` lists the packages that fit.`,
      );
    const { amount, currency } = item.price;
    const rule = {
      package_id: packageId,
      at_percent: wholeNumber(options, 'at', 80) as AutoTopup['at_percent'],
      max_times: wholeNumber(options, 'max-times', 1),
      max_price: { amount: wholeNumber(options, 'max-price', amount), currency },
    };
    return shownRule(context, await api.setAutoTopup(id, rule));
  },
};

function shownRule({ output }: Context, rule: AutoTopup): ExitCode {
  const { status, package_id, at_percent, times_used, max_times, last_failure: failure } = rule;
  output.line(`${output.bold(rule.esim_id)}  ${status}`);
  output.line(`  ${package_id} at ${at_percent} %, for at most ${moneyText(rule.max_price)} each`);
  output.line(`  ${times_used} of ${max_times} used`);
  if (failure) output.line(`  ${output.bad(failure.code)}: ${failure.reason}`);
  output.data(rule);
  return EXIT.ok;
}

export const esimsLabel: Command = {
  name: 'esims label',
  summary: 'set your own label of an eSIM, or remove it',
  arguments: '<esim> [label]',
  examples: [
    { command: "esim esims label esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7 'Trip to Lyon'", says: 'name an eSIM' },
    { command: 'esim esims label esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7', says: 'remove its name' },
  ],
  run: async (context, _options, [id, label]) => {
    requireEsim(id);
    return shown(context, await context.writableApi.labelEsim(id, label ?? null));
  },
};

export const esimsSuspend = control('suspend', {
  summary: 'suspend an eSIM: its data stops, its validity goes on',
  says: 'stop the data until the eSIM is resumed',
});

export const esimsResume = control('resume', {
  summary: 'resume a suspended eSIM',
  says: 'end the suspension',
});

export const esimsRevoke = control('revoke', {
  summary: 'end an eSIM for ever, without a refund',
  says: 'end the eSIM; to get a refund of an unused one, cancel its order',
});

export const esimsReplace: Command = {
  name: 'esims replace',
  summary: 'replace an unused eSIM by a new one of the same package',
  arguments: '<esim>',
  examples: [
    {
      command: 'esim esims replace esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7',
      says: 'cancel the eSIM, and order another one with its refund',
    },
  ],
  run: async (context, _options, [id]) => {
    requireEsim(id);
    const order = await context.writableApi.replaceEsim(id);
    const { output } = context;
    output.line(`${output.bold(order.id)}  ${order.status}  replaces ${id}`);
    output.line(`  esim orders get ${order.id}${context.live ? ' --live' : ''}`);
    output.data(order);
    return EXIT.ok;
  },
};

/** A command that requests an action. The wholesaler confirms it later. */
function control(
  action: 'suspend' | 'resume' | 'revoke',
  { summary, says }: { readonly summary: string; readonly says: string },
): Command {
  return {
    name: `esims ${action}`,
    summary,
    arguments: '<esim>',
    options: { reason: { type: 'string', value: 'text', help: 'your own reason, returned in the event' } },
    examples: [{ command: `esim esims ${action} esim_01M7SJ8EH4V8DA1TCQEKT9GHZ7`, says }],
    run: async (context, options, [id]) => {
      requireEsim(id);
      return shown(context, await context.writableApi.controlEsim(id, action, options.text('reason')));
    },
  };
}

function shown({ output }: Context, esim: Esim): ExitCode {
  const pending = esim.pending_action === null ? '' : `  ${esim.pending_action} requested`;
  output.line(`${output.bold(esim.id)}  ${esim.status}${pending}`);
  if (esim.label !== null) output.line(`  label ${esim.label}`);
  output.data(esim);
  return EXIT.ok;
}
