/**
 * The page with what stands between the marks of `docs/measured/<name>` written anew.
 * @throws Error when the page has lost its marks
 */
export function withMeasured(page, name, text) {
  const mark = `<!-- from docs/measured/${name} -->`;
  const from = page.indexOf(mark);
  const to = page.indexOf('<!-- end -->', from);
  if (from < 0 || to < from) throw new Error(`a page has not the mark ${mark} with its end`);
  return page.slice(0, from + mark.length) + `\n\n${text}\n\n` + page.slice(to);
}

/** A table as the formatter would have it: columns padded. */
export function aligned(lines) {
  const widths = lines[0].map((_, column) => Math.max(...lines.map((line) => line[column].length)));
  const render = (line) => `| ${line.map((text, column) => text.padEnd(widths[column])).join(' | ')} |`;
  return [
    render(lines[0]),
    `| ${widths.map((width) => '-'.repeat(width)).join(' | ')} |`,
    ...lines.slice(1).map(render),
  ].join('\n');
}
