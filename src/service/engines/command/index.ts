/**
 * A shell command of the user as an engine (`--engine video=<command>`): it reads the input as JSON on standard input and
 * leaves the outputs as files in the empty folder `RUSHES_OUTPUT_DIR`. A non-zero exit fails the run,
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
  /** The service's environment; the service's own variables are removed. */
  readonly env: Readonly<Record<string, string | undefined>>
  readonly clock: Pick<Clock, 'alarm' | 'sleep'>
}

export function createCommandEngine({ command, env, clock }: CommandEngineOptions): Engine {
  /** Ends the command when the job is aborted. Once this settles, no process of the command is left. */
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
      checkEnd(end)
      const outputs = await takeOutputs(job.folder)
      if (outputs.length === 0)
        throw new Error(withStderr('The engine wrote no output file.', end.stderrTail))
      return outputs
    } finally {
      forget()
    }
  }

  return {
    async render(asked) {
      // Absolute, since the command may change its working directory.
      const job = { ...asked, folder: resolve(asked.folder) }
      const inputFolder = `${job.folder}-input`
      try {
        return await run(job, inputFolder)
      } catch (error) {
        await emptyFolder(job.folder)
        throw error
      } finally {
        await rm(inputFolder, { recursive: true, force: true })
      }
    },
  }
}

/** A shell exits with 128 + n when its command was ended by signal n. */
const SIGNAL_EXIT_BASE = 128

/**
 * A non-zero exit means that the engine failed the run. An end by a signal is a crash: the system was out of memory, or
 * somebody killed the command, so the run is tried again a few times.
 */
function checkEnd({ code, signal, stderrTail }: CommandEnd): void {
  if (code === 0) return
  const by = signal ?? signalOf(code)
  if (by !== undefined) throw new RendererCrashed(`the engine was killed by ${by}`, stderrTail)
  throw new Error(withStderr(`The engine ended with exit code ${code}.`, stderrTail))
}

const signalOf = (code: number | null): string | undefined =>
  Object.entries(constants.signals).find(([, number]) => SIGNAL_EXIT_BASE + number === code)?.[0]

const withStderr = (sentence: string, stderrTail: string): string =>
  stderrTail === '' ? sentence : `${sentence.replace(/\.$/, '')}: ${stderrTail}`

async function emptyFolder(folder: string): Promise<void> {
  await mkdir(folder, { recursive: true })
  for (const name of await readdir(folder)) await rm(join(folder, name), { recursive: true, force: true })
}
