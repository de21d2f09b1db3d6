/** What `main` is given of the process that it runs in. */
import type { Readable, Writable } from 'node:stream'

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

export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}
