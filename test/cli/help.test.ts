import { describe, expect, it } from 'vitest';
import { CliUser, runProgram } from './cli-process.js';

const COMMANDS = [
  'login',
  'logout',
  'listen',
  'trigger',
  'catalog',
  'catalog changes',
  'destinations',
  'orders place',
  'orders list',
  'orders get',
  'orders cancel',
  'esims list',
  'esims get',
  'esims install-link',
  'esims plans',
  'esims auto-topup',
  'esims label',
  'esims suspend',
  'esims resume',
  'esims revoke',
  'esims replace',
  'topups packages',
  'topups place',
  'topups get',
  'refunds create',
  'refunds list',
  'refunds get',
  'refunds cancel',
  'events list',
  'events resend',
  'requests tail',
  'verify',
  'doctor',
  'open',
  'mcp',
  'completion',
];

describe('help', () => {
  it.each(COMMANDS)('shows usage and examples for esim %s without a key or a service', async (name) => {
    const words = name.split(' ');
    const nobody = new CliUser();
    const asked = await nobody.run(['help', ...words]);
    expect(asked).toMatchObject({ code: 0, stderr: '' });
    expect(asked.stdout).toContain(`Usage: esim ${name}`);
    expect(asked.stdout).toMatch(/Examples:\n {2}# .+\n {2}\S/);
    expect((await nobody.run([...words, '--help'])).stdout).toBe(asked.stdout);
    nobody.remove();
  });

  it('lists every command, and rejects an unknown one', async () => {
    const user = new CliUser();
    const { code, stdout } = await user.run(['help']);
    expect(code).toBe(0);
    for (const name of COMMANDS) expect(stdout).toMatch(new RegExp(`^ {2}${name} {2}`, 'm'));
    expect(stdout).toContain('To resend a webhook delivery, use the portal.');
    expect((await user.run(['help', 'exit-codes'])).stdout.match(/^ {2}\d /gm)).toHaveLength(7);
    user.remove();
  });
});

describe('--json', () => {
  it('prints one JSON value for the version, help and a completion script, wherever the option stands', async () => {
    const nobody = new CliUser();
    const json = async (...args: string[]): Promise<Record<string, unknown>> => {
      const finished = await nobody.run(args);
      expect(finished).toMatchObject({ code: 0, stderr: '' });
      return JSON.parse(finished.stdout) as Record<string, unknown>;
    };
    expect(await json('--version', '--json')).toEqual({ version: '0.1.0' });
    const all = await json('help', '--json');
    expect((all['commands'] as { name: string }[]).map(({ name }) => name)).toEqual(COMMANDS);
    expect(await json('--json', '--help')).toEqual(all);
    expect(await json('help', 'orders', 'get', '--json')).toMatchObject({
      name: 'orders get',
      arguments: '<order>',
      options: [],
      examples: [{ command: expect.stringContaining('esim orders get'), says: expect.any(String) }],
    });
    expect(await json('orders', 'get', '--help', '--json')).toMatchObject({ name: 'orders get' });
    expect((await json('help', 'orders', '--json'))['commands']).toHaveLength(4);
    const { exit_codes: codes } = await json('help', 'exit-codes', '--json');
    expect(codes).toContainEqual({ code: 2, meaning: expect.any(String) });
    expect(await json('completion', 'bash', '--json')).toEqual({
      shell: 'bash',
      script: (await nobody.run(['completion', 'bash'])).stdout,
    });
    nobody.remove();
  });
});

describe('esim completion', () => {
  it('completes commands, their verbs and their options in bash', async () => {
    const user = new CliUser();
    const { stdout: script } = await user.run(['completion', 'bash']);
    const complete = async (...words: string[]): Promise<string[]> => {
      const typed = words.map((word) => `'${word}'`).join(' ');
      const program = `${script}\nCOMP_WORDS=(${typed}); COMP_CWORD=${words.length - 1}; _esim; echo "\${COMPREPLY[@]}"`;
      return (await runProgram('bash', ['-c', program])).stdout.trim().split(' ');
    };
    expect(await complete('esim', 'li')).toEqual(['listen']);
    expect(await complete('esim', 'orders', 'p')).toEqual(['place']);
    expect(await complete('esim', 'orders', 'place', '--qu')).toEqual(['--quantity']);
    expect(await complete('esim', 'listen', '--forw')).toEqual(['--forward-to']);
    expect(await complete('esim', 'esims', 're')).toEqual(['resume', 'revoke', 'replace']);
    expect(await complete('esim', 'topups', 'place', '--es')).toEqual(['--esim']);
    user.remove();
  });
});
