/** `rushes admin account`. */
import { Option } from 'commander'
import { MAX_CREDITS } from '../../protocol/key-terms.js'
import { quoteWord } from '../../protocol/shell-word.js'
import { wholeNumber } from '../flags/whole-number.js'
import { printList } from '../terminal/table.js'
import type { AdminCommand, Work } from './admin-command.js'
import { ACCOUNT_HEADER, accountCells, accountJson } from './admin-rows.js'

export const accountCommands: readonly AdminCommand[] = [
  {
    usage: 'create <name>',
    about: 'Create an account',
    options: () => [new Option('--balance <n>', 'Initial credits').default('0')],
    make: true,
    async work({ ctx: { out }, admin, flags: { balance = '0' } }, name = '') {
      const credits = wholeNumber(balance, '--balance', 0, MAX_CREDITS)
      const account = await admin.createAccount(name, credits)
      if (out.mode.json) out.json(accountJson(account))
      else out.line(account.name)
      out.note(
        `The account ${account.name} has ${account.balance} credits. Create a key for it with \`rushes admin key create --account ${quoteWord(account.name)}\`.`,
      )
    },
  },
  {
    usage: 'list',
    about: 'List accounts with their balance and state',
    async work({ ctx: { out }, admin }) {
      const format = { header: ACCOUNT_HEADER, cells: accountCells, json: accountJson }
      printList(out, await admin.accounts(), format)
    },
  },
  {
    usage: 'ban <name>',
    about: 'Refuse all requests of an account (403)',
    work: (work, name = '') => ban(work, name, true),
  },
  {
    usage: 'unban <name>',
    about: 'Allow the requests of a banned account again',
    work: (work, name = '') => ban(work, name, false),
  },
]

async function ban({ ctx: { out }, admin }: Work, name: string, banned: boolean): Promise<void> {
  const account = await admin.setBanned(name, banned)
  if (out.mode.json) out.json(accountJson(account))
  out.note(
    banned
      ? `${account.name} is banned: new requests get 403; accepted runs are still rendered.`
      : `${account.name} is active again.`,
  )
}
