/**
 * A command of the user's as an engine (`--engine video=<command>`): the input as JSON on standard input, an empty
 * folder in `RUSHES_OUTPUT_DIR`, and the files that it leaves there are the outputs. A non-zero exit fails the run,
 * with the end of its standard error. It runs by `sh -c`, in the folder in which the service was started.
 */
import { mkdir, readdir, rm } from 'node:fs/promises'
import { constants } from 'node:os'
import { join, resolve } from 'node:path'
import { onAbort } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import type { Engine, RenderedFile, RenderJob } from '../engine.js'
import { RendererCrashed } from '../renderer-crashed.js'
import { environmentOf, inputText, writeReferences } from './command-input.js'
import { takeOutputs } from './command-outputs.js'
import { type CommandEnd, startGroup } from './process-group.js'

export interface CommandEngineOptions {
  /** As one would type it in a shell. */
  readonly command: string
  /** The service's own environment; what is meant for the service alone is taken out. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Pick<Clock, 'alarm' | 'sleep'>
}

export function createCommandEngine({ command, env, clock }: CommandEngineOptions): Engine {
  /** Ends the command when the job is aborted; nothing of it writes any more when this settles. */
  async function run(job: RenderJob, inputFolder: string): Promise<readonly RenderedFile[]> {
    const files = await writeReferences(inputFolder, job.references)
    job.signal.throwIfAborted()
    const group = startGroup(
      { command, env: environmentOf(env, job, inputFolder), stdin: inputText(job.input, files) },
      clock,
    )
    const forget = onAbort(job.signal, group.end)
    try {
      const end = await group.ended
      job.signal.throwIfAborted()
      judge(end)
      const outputs = await takeOutputs(job.folder)
      if (outputs.length === 0) throw new Error(withWords('The engine left no output.', end.stderrTail))
      return outputs
    } finally {
      forget()
    }
  }

  return {
    async render(asked) {
      // The command may change its folder, so what it is told is true from everywhere.
      const job = { ...asked, folder: resolve(asked.folder) }
      const inputFolder = `${job.folder}-input`
      try {
        return await run(job, inputFolder)
      } catch (error) {
        await empty(job.folder)
        throw error
      } finally {
        await rm(inputFolder, { recursive: true, force: true })
      }
    },
  }
}

/** A shell says "ended by signal n" as 128 + n. */
const SIGNALLED = 128

/**
 * A non-zero exit is the engine's own word on the run. An end by a signal is not: the system was out of memory, or
 * somebody killed it, so the run is tried again, a few times.
 */
function judge({ code, signal, stderrTail }: CommandEnd): void {
  if (code === 0) return
  const by = signal ?? signalOf(code)
  if (by !== undefined) throw new RendererCrashed(`the engine was ended by ${by}`, stderrTail)
  throw new Error(withWords(`The engine ended with exit code ${code}.`, stderrTail))
}

const signalOf = (code: number | null): string | undefined =>
  Object.entries(constants.signals).find(([, number]) => SIGNALLED + number === code)?.[0]

const withWords = (sentence: string, words: string): string =>
  words === '' ? sentence : `${sentence.replace(/\.$/, '')}: ${words}`

async function empty(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true })
}
