/** Names the files that a browser saves: the start of the prompt, then the id of the run. Pure. */

/**
 * Maximum length of the prompt's part, in UTF-16 code units. Each unit has at most 3 bytes in UTF-8, so the name stays
 * below the 255 bytes of file systems.
 */
const MAX_PROMPT_LENGTH = 60

/** Letters, digits and hyphens are safe on every file system. They include no dots, spaces or format characters. */
const UNSAFE = /[^\p{L}\p{M}\p{N}]+/gu
const NAME = /^[\p{L}\p{M}\p{N}_-]{1,120}$/u

/** The extension of an output, with its dot; empty if it has none. */
const extensionOf = (name: string): string => /\.[A-Za-z0-9]{1,10}$/.exec(name)?.[0] ?? ''

export interface DownloadedOutput {
  readonly prompt: string
  readonly runId: string
  /** Index of the output in its run. */
  readonly index: number
  /** Name of the stored file. */
  readonly fileName: string
}

/** For example `a-red-fox-in-fresh-snow-run_7k2m9x.png`, and `…-2.png` for the second output of the run. */
export function downloadName({ prompt, runId, index, fileName }: DownloadedOutput): string {
  const id = runId.replace(/[^\w-]/g, '_').slice(0, 40)
  const parts = [beginningOf(prompt), id, ...(index === 0 ? [] : [index + 1])].filter((part) => part !== '')
  return `${parts.join('-')}${extensionOf(fileName)}`
}

/** Cuts between words, unless the first word is too long. */
function beginningOf(prompt: string): string {
  // A prompt can have 100,000 characters.
  const words = prompt.slice(0, 1_000).normalize('NFC').replace(UNSAFE, '-').replace(/^-|-$/g, '')
  if (words.length <= MAX_PROMPT_LENGTH) return words
  const cut = words.slice(0, MAX_PROMPT_LENGTH + 1)
  const end = cut.lastIndexOf('-')
  return end > 0 ? cut.slice(0, end) : cut.slice(0, MAX_PROMPT_LENGTH).replace(/[\ud800-\udbff]$/, '')
}

/**
 * Returns the name under which a browser saves an output. `wanted` comes from a URL, which others may have written, so
 * it cannot change the extension.
 */
export function savedName(fileName: string, wanted: unknown): string {
  const extension = extensionOf(fileName)
  if (typeof wanted !== 'string' || !wanted.endsWith(extension)) return fileName
  return NAME.test(wanted.slice(0, wanted.length - extension.length)) ? wanted : fileName
}
