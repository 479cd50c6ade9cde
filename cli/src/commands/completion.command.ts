import { type Command, GLOBAL_OPTIONS } from '../command.js';
import { EXIT, usageError } from '../exit-codes.js';

/** Creates the command that prints completions for `commands`. */
export function completionOf(commands: readonly Command[]): Command {
  const scripts: Readonly<Record<string, () => string>> = {
    bash: () => bash(commands),
    zsh: () => `autoload -U +X bashcompinit && bashcompinit\n${bash(commands)}`,
    fish: () => fish(commands),
  };
  return {
    name: 'completion',
    summary: 'print a completion script for bash, zsh or fish',
    arguments: '<shell>',
    examples: [
      { command: 'source <(esim completion bash)', says: 'in the current shell' },
      { command: 'esim completion fish > ~/.config/fish/completions/esim.fish', says: 'permanently' },
    ],
    run: (context, _options, [shell = '']) => {
      const script = scripts[shell];
      if (script === undefined)
        throw usageError(
          shell === '' ? 'the shell is missing' : `"${shell}" is not supported`,
          'Use bash, zsh or fish.',
        );
      if (!context.output.json) context.output.raw(script());
      context.output.data({ shell, script: script() });
      return Promise.resolve(EXIT.ok);
    },
  };
}

const optionsOf = (command: Command): string[] =>
  Object.keys({ ...command.options, ...GLOBAL_OPTIONS }).map((name) => `--${name}`);

const firstWords = (commands: readonly Command[]): string[] => [
  ...new Set([...commands.map(({ name }) => name.split(' ')[0] ?? name), 'completion', 'help']),
];

/** Second words and options, by the words before them. */
function wordsAfter(commands: readonly Command[]): Map<string, string[]> {
  const words = new Map<string, string[]>();
  for (const command of commands) {
    const [group, verb] = command.name.split(' ');
    if (verb !== undefined) words.set(group ?? '', [...(words.get(group ?? '') ?? []), verb]);
    words.set(command.name, optionsOf(command));
  }
  words.set('completion', ['bash', 'zsh', 'fish']);
  return words;
}

function bash(commands: readonly Command[]): string {
  const cases = [...wordsAfter(commands)].map(
    ([after, words]) => `    '${after}') words='${words.join(' ')}' ;;`,
  );
  return `_esim() {
  local words current="\${COMP_WORDS[COMP_CWORD]}" one="\${COMP_WORDS[1]}" two="\${COMP_WORDS[1]} \${COMP_WORDS[2]}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W '${firstWords(commands).join(' ')}' -- "$current"))
    return
  fi
  words=''
  for typed in "$two" "$one"; do
    [ -n "$words" ] && break
    case "$typed" in
${cases.map((line) => `  ${line}`).join('\n')}
    esac
  done
  COMPREPLY=($(compgen -W "$words" -- "$current"))
}
complete -F _esim esim
`;
}

function fish(commands: readonly Command[]): string {
  const lines = commands.flatMap((command) => {
    const [group = '', verb] = command.name.split(' ');
    const seen = `__fish_seen_subcommand_from ${group}`;
    const after = verb === undefined ? seen : `${seen}; and __fish_seen_subcommand_from ${verb}`;
    const own = Object.keys({ ...command.options, ...GLOBAL_OPTIONS }).map(
      (name) => `complete -c esim -n '${after}' -l ${name}`,
    );
    return verb === undefined ? own : [`complete -c esim -f -n '${seen}' -a ${verb}`, ...own];
  });
  return `complete -c esim -f -n __fish_use_subcommand -a '${firstWords(commands).join(' ')}'\n${lines.join('\n')}\n`;
}
