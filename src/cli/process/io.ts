/** What `main` is given of the process that it runs in. */
import type { Readable, Writable } from 'node:stream'
import { usageError } from '../../errors.js'
import { MAX_BODY_BYTES } from '../../protocol/limits.js'

export type Env = Readonly<Record<string, string | undefined>>

export interface OutputStream extends Writable {
  readonly isTTY?: boolean
  /** Of a terminal. */
  readonly columns?: number
}

export interface InputStream extends Readable {
  readonly isTTY?: boolean
}

/** Opens standard input. Only a command that reads it does so: an open terminal or pipe would keep the process alive. */
export type Stdin = () => InputStream

export interface Io {
  /** The words after `rushes`. */
  readonly argv: readonly string[]
  readonly env: Env
  readonly stdin: Stdin
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/**
 * Nothing that is larger than a request can be sent. Throws `usage` for an endless stream (`yes |`) before it fills the memory;
 * `name` is what the message calls it.
 */
export async function readAll(stream: Readable, name: string): Promise<Buffer> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of stream) {
    chunks.push(Buffer.from(chunk as Uint8Array))
    bytes += chunks.at(-1)?.byteLength ?? 0
    if (bytes > MAX_BODY_BYTES)
      throw usageError(
        `${name} is too large; the limit is ${MAX_BODY_BYTES / 1024 / 1024} MiB. Nothing was sent.`,
        'Check where it comes from: it may never end.',
      )
  }
  return Buffer.concat(chunks)
}
