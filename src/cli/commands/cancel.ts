/** `rushes cancel`: asks the service to cancel runs. */
import { type Command, Option } from 'commander'
import { usageError } from '../../errors.js'
import { printable } from '../../protocol/text.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import { addRunIds, type RunChoice, selectRuns } from '../runs/run-selection.js'
import { confirm } from '../terminal/confirm.js'
import { showRuns } from './status.js'

export interface CancelOptions extends RunChoice {
  readonly yes?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, cancel = cancelCommand): void {
  addRunIds(command, { hasAll: true })
    .addOption(new Option('--yes', 'Do not ask before canceling several runs with --all'))
    .action((ids: string[], flags: Omit<CancelOptions, 'ids'>) =>
      run(command, (ctx) => cancel(ctx, { ...flags, all: flags.all === true, ids })),
    )
}

export async function cancelCommand(ctx: Context, options: CancelOptions): Promise<number> {
  const { out, interrupts } = ctx
  const runs = await selectRuns(ctx, options)
  const needsAnswer = options.all === true && options.yes !== true && runs.length > 1
  if (needsAnswer && (await confirm(ctx, `Cancel all ${runs.length} unfinished runs?`)) === 'no')
    throw usageError('Nothing was canceled.')
  const { errors, states } = await showRuns(ctx, runs, ({ client }, id) =>
    client.cancel(id, interrupts.first),
  )
  for (const { id, status, phase } of states)
    if (phase === 'succeeded') out.note(`${id} had already ended (${printable(status)}).`)
    else if (phase === 'running') out.note(`${id} is not canceled yet (${printable(status)}).`)
  return exitCodeOf(errors)
}
