/** `rushes open`: opens the downloaded files of a run, or else its URLs. It sends no requests. */
import { once } from 'node:events'
import { extname } from 'node:path'
import type { Command } from 'commander'
import { hasKnownFormat } from '../../download/file-kind.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Clock } from '../../host/clock.js'
import { describeReason, errorCode } from '../../host/system-error.js'
import type { JournalRun } from '../../journal/index.js'
import { isHttpUrl } from '../../protocol/parse.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { createFileFinder, flagsToReach, nameOfRun } from '../runs/journal-rows.js'
import { addRunId, selectRun } from '../runs/run-selection.js'
import { idArguments } from '../settings/globals.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { plural } from '../terminal/format.js'

export function register(command: Command, { act }: CommandEnvironment): void {
  act(addRunId(command), openCommand)
}

/** Opens each result of the run. */
async function openCommand(
  ctx: Context,
  { last }: { readonly last?: boolean },
  name?: string,
): Promise<number> {
  const { out, parts, clock, interrupts } = ctx
  const signal = interrupts.first
  const run = await selectRun(ctx, name, last)
  const journal = await ctx.journal()
  const { files, missing } = createFileFinder(journal)(run)
  // The URLs of a local run stop working when the process that printed them ends.
  const links = run.address === LOCAL_ADDRESS ? [] : run.urls.filter(isHttpUrl)
  const results = files.length > 0 ? files.map(({ path }) => path) : links
  if (results.length === 0) throw await withoutFile(ctx, run)
  if (missing > 0) out.warn(`${nameOfRun(run)}: ${plural(missing, 'file')} moved, changed or deleted.`)
  for (const result of results) {
    signal.throwIfAborted()
    refuseProgram(result)
    try {
      await (parts.openResult?.(result) ?? openFile(result, { clock, signal }))
    } catch (error) {
      signal.throwIfAborted()
      throw usageError(
        `Could not open ${result}: ${describeReason(error)}.`,
        'Without a desktop, no program can show it.',
      )
    }
    out.answer({ id: nameOfRun(run), opened: result }, result)
  }
  return EXIT.ok
}

/** Returns the error for a run without a file on this machine and without a URL. It names the next command. */
async function withoutFile(ctx: Context, run: JournalRun): Promise<RushesError> {
  const { id, phase, status } = run
  const name = nameOfRun(run)
  const named = idArguments([name])
  const message = `${name} has no file on this machine. Its last status is ${status}.`
  if (phase === 'failed' || id === undefined)
    return new RushesError(phase === 'failed' ? 'run_failed' : 'submission_unknown', message, {
      hint: `See it with \`rushes show ${named.join(' ')}\`.`,
    })
  const words = ['wait -d', ...(await flagsToReach(ctx, run)), ...named]
  return new RushesError(phase === 'succeeded' ? 'usage' : 'wait_timeout', message, {
    hint: `Download it with \`rushes ${words.join(' ')}\`.`,
  })
}

/**
 * Throws `usage` for a file of an unknown format: the system may run it, for example `.exe` or `.desktop`, and the ending may
 * come from the URL of an output.
 */
function refuseProgram(target: string): void {
  if (isHttpUrl(target) || hasKnownFormat(target)) return
  throw usageError(
    `Could not open ${target}: the system may run a ${extname(target)} file as a program.`,
    'Open it in the program of your choice.',
  )
}

/**
 * Maximum wait for the opener. A failing opener exits sooner. An opener that is the browser itself runs until the user
 * closes it.
 */
const MAX_WAIT_MS = 2_000

interface OpenOptions {
  readonly clock: Clock
  /** Aborting stops the wait. The opener continues. */
  readonly signal: AbortSignal
}

/**
 * Opens the target. Throws an error with a readable message when the opener cannot start or fails, for example on a
 * machine without a browser.
 */
export async function openFile(target: string, { clock, signal }: OpenOptions): Promise<void> {
  const { default: open } = await import('open')
  const opener = await open(target)
  const waited = clock.sleep(MAX_WAIT_MS, signal).then(() => [0])
  try {
    // `once` rejects on 'error'. Without a listener, that event would end the process.
    const [code] = await Promise.race([once(opener, 'exit'), waited])
    if (typeof code === 'number' && code !== 0)
      throw new Error(`${opener.spawnfile} failed with exit code ${code}`)
  } catch (error) {
    if (errorCode(error) === 'ENOENT') throw new Error(`${opener.spawnfile} is not installed`)
    throw error
  }
}
