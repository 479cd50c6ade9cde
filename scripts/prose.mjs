// Checks comments and handwritten pages against "How we write" in CONTRIBUTING. `node scripts/prose.mjs [pathspec…]`
// prints each violation and exits with 1 if there are any.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import path from 'node:path';

/** Each rule says what to write instead. `docs` rules apply to Markdown only. */
const RULES = [
  {
    rule: 'no headless clause as a subject: name the actor',
    at: /^(What|Who|Whoever|Whom|Whose)\b(?!.*\?$)/,
  },
  {
    rule: 'a function returns, an endpoint responds; "answers" is for people',
    at: /\b[Aa]nswers?\b (?!to\b)(with|the|a|an|null|undefined|true|false|nothing|[0-9]{3}|`)/,
  },
  {
    rule: "possession with 's or a noun phrase",
    at: /\bof (theirs|his|hers|ours|yours)\b|\bof its(?=[.,;:)]|$| (that|which|is|are|was|has|in|at|to|and)\b)/,
  },
  {
    rule: 'the usual verb: connects, happens, returns, learns, receives',
    at: /\b([Cc](a|o)mes? about|is at it|gives? back|(is|are) told|hears)\b/,
  },
  {
    rule: 'American spelling',
    at: /\b(catalogue|cancelled|cancelling|behaviour|colour|honour|favour|neighbour|labelled|initialis|serialis|normalis|authoris|recognis|organis)/i,
  },
  { rule: 'at most 30 words in a sentence', docs: true, over: 30 },
];

/** Correct sentences that match a rule, such as quotes and terms. */
const ALLOWED = [];

const GENERATED = /\.gen\.ts$|^(docs\/(reference|openapi|errors\.md|postman\.json)|CHANGELOG\.md)/;

const TYPES = new Set(['.ts', '.tsx', '.mjs', '.md']);

function filesToCheck(paths) {
  const listed = execFileSync('git', ['ls-files', '-z', '--', ...paths], { encoding: 'utf8' }).split('\0');
  return listed.filter((file) => TYPES.has(path.extname(file)) && !GENERATED.test(file));
}

/** @returns blocks of prose, each with its first line */
function commentsOf(text) {
  const blocks = [];
  let last = null;
  for (const [index, line] of text.split('\n').entries()) {
    const match = /^\s*(?:\/\*\*?|\*\/|\*|\/\/)\s?(.*?)(?:\*\/)?$/.exec(line) ?? /\s\/\/ (.*)$/.exec(line);
    if (match === null) {
      last = null;
      continue;
    }
    const said = match[1].trim();
    const begins = /^\s*\/\*/.test(line) || said === '' || /^[@*-]/.test(said);
    if (begins || last === null) blocks.push((last = { line: index + 1, text: '' }));
    last.text += ` ${said.replace(/^(@(param|returns?|throws)\b\s*(\{[^}]*\}\s*)?|[*-] )/, '')}`;
  }
  return blocks;
}

/** @returns the page's paragraphs, list items, cells and headings, without code */
function paragraphsOf(text) {
  const blocks = [];
  let code = false;
  let last = null;
  for (const [index, line] of text.split('\n').entries()) {
    if (/^\s*(```|~~~)/.test(line)) code = !code;
    if (code || /^\s*(```|~~~|<)/.test(line) || line.trim() === '') {
      last = null;
      continue;
    }
    if (/^\s*\|/.test(line)) {
      for (const cell of line.split(/(?<!\\)\|/)) blocks.push({ line: index + 1, text: cell });
      last = null;
      continue;
    }
    if (last === null || /^\s*([-*>#]|\d+\.) /.test(line))
      blocks.push((last = { line: index + 1, text: '' }));
    last.text += ` ${line.trim().replace(/^([-*>]|#+|\d+\.) /, '')}`;
  }
  return blocks;
}

function* sentencesOf(block) {
  const text = block.text
    .replace(/\]\([^)]*\)/g, ']')
    .replace(/\s+/g, ' ')
    .trim();
  for (const sentence of text.split(/(?<=[.!?]["”)*]*)\s+(?=[A-Z`“"*[(])/))
    yield sentence.replace(/^[*_("“]+/, '');
}

let found = 0;
for (const file of filesToCheck(process.argv.slice(2))) {
  const isPage = path.extname(file) === '.md';
  const text = readFileSync(file, 'utf8');
  for (const block of isPage ? paragraphsOf(text) : commentsOf(text)) {
    for (const sentence of sentencesOf(block)) {
      if (ALLOWED.some((allowed) => sentence.includes(allowed))) continue;
      for (const { rule, at, docs, over } of RULES) {
        if (docs && !isPage) continue;
        if (at ? !at.test(sentence) : sentence.split(' ').length <= over) continue;
        found += 1;
        console.log(`${file}:${block.line}: ${rule}\n    ${sentence}`);
      }
    }
  }
}
process.exit(found === 0 ? 0 : 1);
