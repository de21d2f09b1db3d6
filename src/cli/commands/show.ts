/** `rushes show`: everything that the journal knows of one run. The service is not asked. */
import { type Command, Option } from 'commander'
import { EXIT, usageError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { checkOneWay, lastOption } from '../flags/run-ids.js'
import { lastRow } from '../runs/earlier.js'
import { nameOfRun, rowOf } from '../runs/journal-rows.js'
import { alignedRow, tabRow } from '../terminal/cell-rows.js'
import { listJson } from '../terminal/list-lines.js'
import { showRows } from '../terminal/show-rows.js'
import type { CommandEnvironment } from './command-environment.js'

export interface ShowOptions {
  /** Undefined: the newest run of the current service. */
  readonly name: string | undefined
  readonly again: boolean
}

interface Flags {
  readonly last?: boolean
  readonly again?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, show = showCommand): void {
  command
    .argument('[id]', 'Run id, or the key of an unconfirmed row such as ~3f2a')
    .addOption(lastOption())
    .addOption(new Option('--again', 'Print only the command that repeats the run'))
    .action((name: string | undefined, { last = false, again = false }: Flags) =>
      run(command, (ctx) => {
        checkOneWay({ ids: name === undefined ? [] : [name], last })
        return show(ctx, { name, again })
      }),
    )
}

export async function showCommand(ctx: Context, { name, again }: ShowOptions): Promise<number> {
  const { out, clock } = ctx
  const journal = await ctx.journal()
  const run = name === undefined ? await lastRow(ctx) : await rowOf(ctx, journal, name)
  const files = journal.filesOf(run)
  if (again || out.mode.json) {
    const { againOf } = await import('../runs/again.js')
    const { command, missing } = await againOf(ctx, journal, run)
    const isWhole = missing.length === 0
    if (out.mode.json) {
      out.json({ ...listJson(run, files), again: isWhole ? command : null })
      return EXIT.ok
    }
    if (!isWhole)
      throw usageError(
        `${nameOfRun(run)} cannot be repeated by one command. ${missing.join(' ')}`,
        `Add each image with -i <path> to \`${command}\`.`,
      )
    if (run.phase === 'unconfirmed')
      out.warn(
        `${nameOfRun(run)} is unconfirmed: the run may exist. Check the runs of your account before you repeat it.`,
      )
    out.line(command)
    return EXIT.ok
  }
  const rows = showRows(run, files, { nowMs: clock.now(), isTerminal: out.stdoutIsTerminal })
  const width = Math.max(...rows.map(([label = '']) => label.length))
  for (const row of rows) out.line(out.stdoutIsTerminal ? alignedRow(row, [width]) : tabRow(row))
  if (run.phase === 'going')
    out.note(
      `This is the status of the last request. For the current status, run \`rushes status ${nameOfRun(run)}\`.`,
    )
  return EXIT.ok
}
