/** The edges of a command line, as values: what `main` is given and nothing beside it. */
import type { Readable, Writable } from 'node:stream'
import type { Env } from '../settings/table.js'

export interface OutputStream extends Writable {
  readonly isTTY?: boolean
  readonly columns?: number
}

export interface InputStream extends Readable {
  readonly isTTY?: boolean
}

/** Opened when it is first asked for, as the outlets' streams are: that takes Node longer than a short command takes. */
export type Stdin = () => InputStream

/** Where text goes. */
export interface Outlet {
  readonly isTTY: boolean
  /** Of a terminal. */
  readonly columns?: number | undefined
  write(text: string): void
  /** For bytes, and for whoever draws. */
  stream(): OutputStream
}

export interface Io {
  /** Without the program and the script: what the user typed after `rushes`. */
  readonly argv: readonly string[]
  readonly env: Env
  readonly stdin: Stdin
  readonly stdout: Outlet
  readonly stderr: Outlet
}

/** Everything that stands on standard input, as bytes. */
export async function readAll(stream: Readable): Promise<Buffer> {
  const chunks: Buffer[] = []
  for await (const chunk of stream) chunks.push(Buffer.from(chunk as Uint8Array))
  return Buffer.concat(chunks)
}
