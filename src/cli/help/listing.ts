/** Terms and descriptions in two columns, 80 characters wide. The texts are shared with the docs, without Markdown. */
const COLUMNS = 80

export function listing(rows: readonly (readonly [string, string])[]): string {
  const width = Math.max(...rows.map(([term]) => term.length)) + 2
  return rows
    .map(([term, text]) => {
      const [first = '', ...others] = wrapped(withoutMarkdown(text), COLUMNS - width - 2)
      return [
        `  ${term.padEnd(width)}${first}`,
        ...others.map((line) => `  ${' '.repeat(width)}${line}`),
      ].join('\n')
    })
    .join('\n')
}

/** Without Markdown. */
export const withoutMarkdown = (markdown: string): string => markdown.replace(/`/g, '').replace(/\\\|/g, '|')

export function wrapped(text: string, columns: number): readonly string[] {
  const lines: string[] = []
  for (const word of text.split(' ')) {
    const last = lines.at(-1)
    if (last === undefined || last.length + 1 + word.length > columns) lines.push(word)
    else lines[lines.length - 1] = `${last} ${word}`
  }
  return lines
}
