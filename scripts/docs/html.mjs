const ESCAPES = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;' };

export const escapeHtml = (text) => String(text).replaceAll(/[&<>"]/g, (character) => ESCAPES[character]);

/** Back-ticks and bold, which is all that the document's descriptions use within a line. */
export function inlineMarkdown(text) {
  return escapeHtml(text)
    .replaceAll(/`([^`]+)`/g, '<code>$1</code>')
    .replaceAll(/\*\*([^*]+)\*\*/g, '<strong>$1</strong>');
}

/** Paragraphs and lists. */
export function markdown(text) {
  return text
    .split(/\n{2,}/)
    .map((block) =>
      block.startsWith('- ')
        ? `<ul>${block
            .slice(2)
            .split(/\n- /)
            .map((item) => `<li>${inlineMarkdown(item.replaceAll(/\n\s*/g, ' '))}</li>`)
            .join('')}</ul>`
        : `<p>${inlineMarkdown(block)}</p>`,
    )
    .join('\n');
}

export const codeBlock = (text, label) =>
  `<figure><figcaption>${escapeHtml(label)}</figcaption><pre><code>${escapeHtml(text)}</code></pre></figure>`;

export const jsonBlock = (value, label) => codeBlock(JSON.stringify(value, null, 2), label);
