/** The end of what a process wrote to standard error: mostly the reason of its death. */
import { stripVTControlCharacters } from 'node:util'

const KEPT = 2_000

export interface LastWords {
  /** Without control characters, from the beginning of a line where there is one. */
  readonly said: string
}

/** Reads the stream to its end, so that the process is never held up by a full pipe, and keeps little of it. */
export function hearLastWords(stream: NodeJS.ReadableStream | null): LastWords {
  let words = ''
  let cut = false
  stream?.setEncoding('utf8')
  stream?.on('error', () => {})
  stream?.on('data', (more: string) => {
    words += more
    // Twice as much is kept as is shown, so that not every piece costs a copy.
    if (words.length <= 2 * KEPT) return
    cut = true
    words = words.slice(-KEPT)
  })
  return {
    get said() {
      const end = words.slice(-KEPT)
      const whole = cut || end.length < words.length ? end.replace(/^[^\n]*\n(?=.)/s, '') : end
      return tidy(whole)
    },
  }
}

/** Lines stay lines; what drives a terminal goes, and of a progress bar only its last state stays. */
const tidy = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/\r\n/g, '\n')
    .replace(/^[^\n]*\r(?=[^\n])/gm, '')
    .replace(/\t/g, ' ')
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '')
    .trim()
