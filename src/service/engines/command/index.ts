/**
 * A shell command of the user as an engine (`--engine video=<command>`): it reads the input as JSON on standard input and
 * leaves the outputs as files in the empty folder `RUSHES_OUTPUT_DIR`. A non-zero exit fails the run,
 * with the end of its standard error. It runs by `sh -c`, in the folder in which the service was started.
 */
import { constants } from 'node:os'
import { resolve } from 'node:path'
import { onAbort } from '../../../host/abort.js'
import type { Clock } from '../../../host/clock.js'
import { holdFolder, makeOwnFolderAt, type OwnFolder } from '../../../host/own-folder.js'
import type { Engine, RenderedFile, RenderJob } from '../engine.js'
import { commandEnvironment, type Env } from '../environment.js'
import { RendererCrashed } from '../renderer-crashed.js'
import { environmentOf, inputText, moveReferences } from './command-input.js'
import { takeOutputs } from './command-outputs.js'
import { type CommandEnd, startGroup } from './process-group.js'

export interface CommandEngineOptions {
  /** As one would type it in a shell. */
  readonly command: string
  /** The service's environment; the service's own variables are removed, and those that hold one of the `urls`. */
  readonly env: Env
  /** Of the service's database and storage. */
  readonly urls?: readonly (string | undefined)[]
  readonly clock: Pick<Clock, 'alarm' | 'sleep'>
}

export function createCommandEngine({ command, env, urls, clock }: CommandEngineOptions): Engine {
  const own = commandEnvironment(env, urls)

  /** Ends the command when the job is aborted. Once this settles, no process of the command is left. */
  async function run(
    job: RenderJob,
    inputFolder: string,
    outputFolder: OwnFolder,
  ): Promise<readonly RenderedFile[]> {
    const files = await moveReferences(inputFolder, job.references)
    job.signal.throwIfAborted()
    const group = startGroup(
      { command, env: environmentOf(own, job, inputFolder), stdin: inputText(job.input, files) },
      clock,
    )
    const forget = onAbort(job.signal, group.end)
    try {
      const end = await group.ended
      job.signal.throwIfAborted()
      checkEnd(end)
      const outputs = await takeOutputs(outputFolder)
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
      const outputFolder = await holdFolder(job.folder)
      try {
        const inputFolder = await makeOwnFolderAt(`${job.folder}-input`)
        try {
          return await run(job, inputFolder.path, outputFolder)
        } finally {
          // What cannot be removed is in the folder of the worker, which a later start removes.
          await inputFolder.remove().catch(() => {})
        }
      } finally {
        await outputFolder.close()
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
