/** `rushes admin backup`: a copy of the database beside a running service. */

import { formatBytes } from '../../protocol/byte-size.js'
import { printable } from '../../protocol/text.js'
import { plural } from '../terminal/plural.js'
import type { AdminCommand, Work } from './admin-command.js'

export const backupCommand: AdminCommand = {
  usage: 'backup <file>',
  about: 'Write a consistent copy of the database, also while the service runs',
  work: backUp,
}

async function backUp({ ctx: { out, interrupts }, admin }: Work, file = ''): Promise<void> {
  const { path, bytes, accounts, entries, runs, credits, problems } = await admin.backup(
    file,
    interrupts.first,
  )
  if (out.mode.json) out.json({ path, bytes, accounts, entries, runs, credits, problems })
  else out.line(path)
  if (problems.length > 0)
    out.warn(
      `The copy is complete, but ${plural(problems.length, 'balance does', 'balances do')} not match the ledger. See \`rushes admin verify\`.`,
    )
  out.note(
    `${printable(path)}: ${plural(runs, 'run')}, ${plural(accounts, 'account')}, ${formatBytes(bytes)}, checked.`,
  )
}
