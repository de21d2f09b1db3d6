/** The edges of a command line, as values: what `main` is given and nothing beside it. */
import type { Readable, Writable } from 'node:stream'
import type { Env } from './settings.js'

export interface OutputStream extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
}

export interface InputStream extends Readable {
  readonly isTTY?: boolean
}

export interface Io {
  /** Without the program and the script: what the user typed after `rushes`. */
  readonly argv: readonly string[]
  readonly env: Env
  readonly stdin: InputStream
  readonly stdout: OutputStream
  readonly stderr: OutputStream
}

/** Everything that stands on standard input, as bytes. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}
