/** `rushes open`: opens the downloaded files of runs, or else their URLs. It sends no requests. */
import { join } from 'node:path'
import type { Command } from 'commander'
import { RushesError, usageError } from '../../errors.js'
import { describeReason } from '../../host/system-error.js'
import type { JournalRun } from '../../journal/index.js'
import { isHttpUrl } from '../../protocol/parse.js'
import { printable, quoteWord } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import { readIds } from '../process/io.js'
import { createFileFinder } from '../runs/find-files.js'
import { lastRow, nameOfRun, rowOf } from '../runs/journal-rows.js'
import { addRunIds, checkOneWay, type RunChoice } from '../runs/run-selection.js'
import { flagsToReach } from '../runs/where.js'
import { LOCAL_FOLDER } from '../settings/folders.js'
import { LOCAL_ADDRESS } from '../settings/table.js'
import { plural } from '../terminal/format.js'

export function register(command: Command, { run }: CommandEnvironment, open = openCommand): void {
  addRunIds(command).action((ids: string[], { last }: { last?: boolean }) =>
    run(command, (ctx) => open(ctx, { ids, last })),
  )
}

/** Opens the results of each run. Reports each run that has none, and opens those of the others. */
export async function openCommand(ctx: Context, choice: RunChoice): Promise<number> {
  checkOneWay(choice)
  const { out } = ctx
  const journal = await ctx.journal()
  const findFiles = createFileFinder(journal, join(ctx.stateFolder, LOCAL_FOLDER))
  const names = await readIds(choice.ids, ctx.stdin, ctx.interrupts.first)
  const errors: RushesError[] = []
  for (const name of choice.last === true ? [undefined] : names)
    try {
      const run = name === undefined ? await lastRow(ctx) : await rowOf(ctx, journal, name)
      const { files, missing } = await findFiles(run)
      const results = files.length > 0 ? files.map(({ path }) => path) : linksOf(run)
      if (results.length === 0) throw await withoutFile(ctx, run)
      if (missing > 0) out.warn(`${nameOfRun(run)}: ${plural(missing, 'file')} moved, changed or deleted.`)
      for (const result of results) {
        ctx.interrupts.first.throwIfAborted()
        await ctx.openResult(result).catch((error: unknown) => {
          throw usageError(`Could not open ${result}: ${describeReason(error)}.`)
        })
        if (out.mode.json) out.json({ id: nameOfRun(run), opened: result })
        else out.line(printable(result))
      }
    } catch (error) {
      if (!(error instanceof RushesError)) throw error
      errors.push(error)
      out.error(error)
    }
  return exitCodeOf(errors)
}

/** The URLs of a local run stop working when the process that printed them ends. */
const linksOf = ({ address, urls }: JournalRun): readonly string[] =>
  address === LOCAL_ADDRESS ? [] : urls.filter(isHttpUrl)

/** Returns the error for a run without a file on this machine and without a URL. It names the next command. */
async function withoutFile(ctx: Context, run: JournalRun): Promise<RushesError> {
  const { id, phase, status } = run
  const name = nameOfRun(run)
  const message = `${name} has no file on this machine. Its last status is ${status}.`
  if (phase === 'failed' || id === undefined)
    return new RushesError(phase === 'failed' ? 'run_failed' : 'submission_unknown', message, {
      hint: `See it with \`rushes show ${name}\`.`,
    })
  const words = [
    phase === 'succeeded' ? 'download' : 'wait -d',
    ...(await flagsToReach(ctx, run)),
    quoteWord(name),
  ]
  const hint = `Download it with \`rushes ${words.join(' ')}\`.`
  return new RushesError(phase === 'succeeded' ? 'usage' : 'wait_timeout', message, { hint })
}
