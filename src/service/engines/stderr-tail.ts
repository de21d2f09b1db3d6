/** The end of what a process wrote to standard error, which usually says why it ended. */
import { stripVTControlCharacters } from 'node:util'

const MAX_CHARACTERS = 2_000

export interface StderrTail {
  /** Without control characters; begins at the beginning of a line where there is one. */
  readonly text: string
}

/** Reads the stream to its end, since a full pipe would block the process. */
export function readStderrTail(stream: NodeJS.ReadableStream | null): StderrTail {
  let tail = ''
  let isCut = false
  stream?.setEncoding('utf8')
  stream?.on('error', () => {})
  stream?.on('data', (chunk: string) => {
    tail += chunk
    // Twice as much is kept as is returned, so that not every chunk costs a copy.
    if (tail.length <= 2 * MAX_CHARACTERS) return
    isCut = true
    tail = tail.slice(-MAX_CHARACTERS)
  })
  return {
    get text() {
      const end = tail.slice(-MAX_CHARACTERS)
      const isPart = isCut || end.length < tail.length
      return plainText(isPart ? end.replace(/^[^\n]*\n(?=.)/s, '') : end)
    },
  }
}

/** Removes terminal control sequences, and of a progress bar all but its last state. */
const plainText = (text: string): string =>
  stripVTControlCharacters(text)
    .replace(/\r\n/g, '\n')
    .replace(/^[^\n]*\r(?=[^\n])/gm, '')
    .replace(/\t/g, ' ')
    .replace(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/g, '')
    .trim()
