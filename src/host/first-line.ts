/** Reads the first line that is not blank from a file, a pipe or a process, up to a maximum length. */
import { constants, createReadStream, openSync, statSync } from 'node:fs'
import type { Readable } from 'node:stream'
import { onAbort } from './abort.js'

interface FirstLine {
  /** Adds bytes; bytes after the line are dropped. */
  add(chunk: Uint8Array): void
  /** Whether the end of the line, or `maxBytes` bytes, have been added. */
  readonly isWhole: boolean
  /** The line without leading space and without its line end. If the line end has not arrived, the text so far. */
  readonly text: string
}

/** Keeps at most `maxBytes` bytes, including blank lines before the line. */
export function createFirstLine(maxBytes: number): FirstLine {
  let bytes = Buffer.alloc(0)
  const fromStart = () => decoded(bytes).replace(/^\uFEFF?[\u0000-\u0020]*/, '')
  const isWhole = () => bytes.byteLength >= maxBytes || fromStart().includes('\n')
  return {
    add(chunk) {
      if (!isWhole()) bytes = Buffer.concat([bytes, chunk]).subarray(0, maxBytes)
    },
    get isWhole() {
      return isWhole()
    },
    get text() {
      const [line = ''] = fromStart().split('\n', 1)
      return line.replace(/\r$/, '')
    },
  }
}

/** `>` in PowerShell 5 writes UTF-16 with a byte order mark. */
const decoded = (bytes: Buffer): string =>
  bytes.toString(bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf16le' : 'utf8')

/**
 * Reads up to the end of the line, then destroys the stream. Rejects with the signal's reason or the stream's error.
 */
export async function readFirstLine(
  stream: Readable,
  maxBytes: number,
  signal: AbortSignal,
): Promise<string> {
  const line = createFirstLine(maxBytes)
  const forget = onAbort(signal, () => stream.destroy())
  try {
    for await (const chunk of stream) {
      line.add(chunk)
      if (line.isWhole) break
    }
  } catch (error) {
    signal.throwIfAborted()
    throw error
  } finally {
    forget()
  }
  signal.throwIfAborted()
  return line.text
}

/**
 * Opens a file or a pipe. A pipe without a writer does not block a thread of Node, which would keep the process alive.
 * Returns undefined for a device, which may have no end. Throws the system's errors.
 */
export async function openReadable(path: string): Promise<Readable | undefined> {
  const stats = statSync(path)
  if (stats.isCharacterDevice() || stats.isBlockDevice()) return undefined
  const fd = openSync(path, constants.O_RDONLY | (constants.O_NONBLOCK ?? 0))
  if (!stats.isFIFO()) return createReadStream(path, { fd })
  const { Socket } = await import('node:net')
  return new Socket({ fd, readable: true, writable: false })
}
