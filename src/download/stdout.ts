/** `-o -`: writes one output to a stream, from a file that is complete and checked. */
import { createReadStream } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Writable } from 'node:stream'
import { raceAbort } from '../host/abort.js'
import { makeOwnFolder } from '../host/own-folder.js'
import { withWriteErrors } from './file-errors.js'

/** Has the stream's error as its `cause`. EPIPE means that the reader is gone: not a failed download. */
export class StreamFailed extends Error {
  override readonly name = 'StreamFailed'
}

/**
 * A path in a private folder in the system's temporary folder (`TMPDIR`), which is removed after `work`.
 */
export async function withTemporaryFile<Result>(work: (path: string) => Promise<Result>): Promise<Result> {
  const folder = await withWriteErrors(tmpdir(), () => makeOwnFolder(tmpdir(), 'rushes-'))
  try {
    return await work(join(folder.path, 'output'))
  } finally {
    await folder.remove().catch(() => {})
  }
}

/**
 * Writes the file to the stream, with backpressure, and leaves the stream open. Rejects with `StreamFailed` or the
 * signal's reason.
 */
export async function pipeFile(
  path: string,
  stream: Writable,
  signal: AbortSignal | undefined,
): Promise<void> {
  // The caller gets the error from the write; without a listener it would also end the process. It is emitted after the
  // write has failed, so the listener is removed only on success.
  const quiet = () => {}
  stream.on('error', quiet)
  for await (const chunk of createReadStream(path)) await writeChunk(stream, chunk as Uint8Array, signal)
  stream.off('error', quiet)
}

/** Ends on abort even when the reader has stopped reading. */
async function writeChunk(
  stream: Writable,
  chunk: Uint8Array,
  signal: AbortSignal | undefined,
): Promise<void> {
  signal?.throwIfAborted()
  const write = new Promise<void>((resolve, reject) => {
    stream.write(chunk, (error) => {
      if (error) reject(new StreamFailed(error.message, { cause: error }))
      else resolve()
    })
  })
  await raceAbort(write, signal)
}
