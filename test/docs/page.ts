import { readFileSync } from 'node:fs';

/** A Markdown page with access to its testable parts. */
export class Page {
  readonly text: string;

  constructor(path: string) {
    this.text = readFileSync(path, 'utf8');
  }

  /**
   * The text below a heading, up to the next heading of the same or a higher level.
   * @throws Error without such a heading
   */
  section(heading: string): string {
    const [, rest] = this.text.split(`\n${heading}\n`);
    if (rest === undefined) throw new Error(`no heading "${heading}"`);
    const level = heading.indexOf(' ');
    return linesBefore(rest, (line) => new RegExp(`^#{1,${level}} `).test(line));
  }

  /**
   * The first code block in `language` below a heading.
   * @throws Error without one
   */
  code(heading: string, language: string): string {
    const [block] = this.codes(heading, language);
    if (block === undefined) throw new Error(`no ${language} below "${heading}"`);
    return block;
  }

  /** All code blocks in `language` below a heading, in page order. */
  codes(heading: string, language: string): string[] {
    const blocks = new RegExp(`^\`\`\`${language}\n([^]*?\n)\`\`\`$`, 'gm');
    return [...this.section(heading).matchAll(blocks)].map(([, block = '']) => block);
  }

  /** The cells of the first table below a heading, without its header row. */
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

/** The lines before the first one that `ends`, ignoring lines of code such as `# comment`. */
function linesBefore(text: string, ends: (line: string) => boolean): string {
  let inCode = false;
  const lines = text.split('\n');
  const end = lines.findIndex((line) => {
    if (line.startsWith('```')) inCode = !inCode;
    return !inCode && ends(line);
  });
  return (end === -1 ? lines : lines.slice(0, end)).join('\n');
}
