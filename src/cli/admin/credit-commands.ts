/** `rushes admin credits`. */
import { Option } from 'commander'
import { usageError } from '../../errors.js'
import { MAX_CREDITS } from '../../protocol/key-terms.js'
import { wholeNumber } from '../flags/whole-number.js'
import { printList } from '../terminal/table.js'
import type { AdminCommand } from './admin-command.js'
import { accountJson, ENTRY_HEADER, entryCells, entryJson } from './admin-rows.js'

export const creditsCommands: readonly AdminCommand[] = [
  {
    usage: 'add <account> <n>',
    about: 'Add credits; a negative number removes them',
    async work({ ctx: { out }, admin }, name = '', amount = '') {
      const credits = wholeNumber(amount, '<n>', -MAX_CREDITS, MAX_CREDITS)
      if (credits === 0) throw usageError('The number of credits is 0; nothing was changed.')
      const account = await admin.addCredits(name, credits)
      if (out.mode.json) out.json(accountJson(account))
      else out.line(String(account.balance))
    },
  },
  {
    usage: 'list <account>',
    about: 'List credits added, charged and returned, newest first',
    options: () => [new Option('--limit <n>', 'Show the newest N entries; 0 for all').default('50')],
    async work({ ctx: { out }, admin, flags }, name = '') {
      const limit = wholeNumber(flags.limit ?? '', '--limit', 0, 1_000_000_000)
      const entries = await admin.entries(name, limit === 0 ? undefined : limit)
      printList(out, entries, { header: ENTRY_HEADER, cells: entryCells, json: entryJson })
    },
  },
]
