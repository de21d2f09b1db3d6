/** `rushes forget`: removes unconfirmed rows from the journal. */
import type { Command } from 'commander'
import { type RushesError, usageError } from '../../errors.js'
import type { ForgetResult } from '../../journal/index.js'
import { printable } from '../../protocol/text.js'
import type { Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import type { CommandEnvironment } from './command-environment.js'

export function register(command: Command, { run }: CommandEnvironment, forget = forgetCommand): void {
  command
    .argument('<key...>', 'keys of unconfirmed rows, such as ~3f2a')
    .action((keys: string[]) => run(command, (ctx) => forget(ctx, keys)))
}

/** Every name is tried; the worst result is the exit code. */
export async function forgetCommand(ctx: Context, names: readonly string[]): Promise<number> {
  const { out } = ctx
  const journal = await ctx.journal()
  const errors: RushesError[] = []
  for (const name of names) {
    const key = /^[0-9a-f]{4,}$/.test(name) ? `~${name}` : name
    const outcome = journal.forget(key, key.startsWith('~') ? undefined : await ctx.address())
    if (outcome === 'forgotten') {
      if (out.mode.json) out.json({ forgotten: key })
      out.note(`${printable(key)} is forgotten.`)
    } else {
      const error = errorOf(key, outcome)
      errors.push(error)
      out.error(error)
    }
  }
  return exitCodeOf(errors)
}

function errorOf(name: string, outcome: Exclude<ForgetResult, 'forgotten'>): RushesError {
  switch (outcome) {
    case 'unknown':
      return usageError(
        `The journal has no row ${name}.`,
        'Unconfirmed rows: rushes list --status unconfirmed',
      )
    case 'sending':
      return usageError(
        `${name} is being sent by another process at this moment.`,
        'When that one has ended, the row has an id or is unconfirmed.',
      )
    case 'exists':
      return usageError(
        `Run ${name} exists, and may have been paid for: it is not forgotten.`,
        'Only unconfirmed rows are, and runs that the service said it does not have.',
      )
  }
}
