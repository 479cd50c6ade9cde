import { readFileSync } from 'node:fs';

/** A Markdown page, read for what can be checked in it. */
export class Page {
  readonly text: string;

  constructor(path: string) {
    this.text = readFileSync(path, 'utf8');
  }

  /** What is below a heading, to the next heading of the same or a higher level. @throws Error without one */
  section(heading: string): string {
    const [, rest] = this.text.split(`\n${heading}\n`);
    if (rest === undefined) throw new Error(`no heading "${heading}"`);
    const level = heading.indexOf(' ');
    return linesBefore(rest, (line) => new RegExp(`^#{1,${level}} `).test(line));
  }

  /** The first block of code in `language` below a heading. @throws Error without one */
  code(heading: string, language: string): string {
    const [block] = this.codes(heading, language);
    if (block === undefined) throw new Error(`no ${language} below "${heading}"`);
    return block;
  }

  /** Every block of code in `language` below a heading, in the page's order. */
  codes(heading: string, language: string): string[] {
    const blocks = new RegExp(`^\`\`\`${language}\n([^]*?\n)\`\`\`$`, 'gm');
    return [...this.section(heading).matchAll(blocks)].map(([, block = '']) => block);
  }

  /** The cells of the first table below a heading, without its head. */
  table(heading: string): string[][] {
    const rows = this.section(heading)
      .split('\n')
      .filter((line) => line.startsWith('|'));
    return rows.slice(2).map((row) =>
      row
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim()),
    );
  }
}

/** The lines before the first one that `ends`; a line of code (`# comment`) never does. */
function linesBefore(text: string, ends: (line: string) => boolean): string {
  let inCode = false;
  const lines = text.split('\n');
  const end = lines.findIndex((line) => {
    if (line.startsWith('```')) inCode = !inCode;
    return !inCode && ends(line);
  });
  return (end === -1 ? lines : lines.slice(0, end)).join('\n');
}
