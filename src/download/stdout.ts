/** `-o -`: the bytes of one output to a stream, from a file that is whole and checked: never half an answer. */
import { createReadStream } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { raceAbort } from '../host/abort.js'
import { makeTemporaryFolder } from '../host/files.js'
import { writing } from './file-errors.js'

/** The stream's own error, as `cause`: EPIPE means that the reader is gone, which is no failed download. */
export class StreamFailed extends Error {
  override readonly name = 'StreamFailed'
}

/**
 * A path in a folder for the user alone, in the system's place for temporary files (`TMPDIR`); removed after `work`,
 * whatever happens. Between download and delivery the output takes its size there.
 */
export async function withTemporaryFile<Result>(work: (path: string) => Promise<Result>): Promise<Result> {
  const folder = await writing(tmpdir(), () => makeTemporaryFolder('rushes-'))
  try {
    return await work(join(folder, 'output'))
  } finally {
    await rm(folder, { recursive: true, force: true }).catch(() => {})
  }
}

/**
 * Writes the file to the stream as fast as that takes it, and leaves the stream open. Rejects with `StreamFailed` or
 * the signal's reason.
 */
export async function pour(path: string, stream: Writable, signal: AbortSignal | undefined): Promise<void> {
  // The error reaches the caller through the write; without a listener it would end the process as well. It is
  // emitted after the write has failed, so the listener goes only when all is well.
  const quiet = () => {}
  stream.on('error', quiet)
  for await (const chunk of createReadStream(path)) await written(stream, chunk as Uint8Array, signal)
  stream.off('error', quiet)
}

/** A reader that stands still must not keep Ctrl-C from working. */
async function written(stream: Writable, chunk: Uint8Array, signal: AbortSignal | undefined): Promise<void> {
  signal?.throwIfAborted()
  const write = new Promise<void>((resolve, reject) => {
    stream.write(chunk, (error) => {
      if (error) reject(new StreamFailed(error.message, { cause: error }))
      else resolve()
    })
  })
  await raceAbort(write, signal)
}
