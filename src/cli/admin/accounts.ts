/** `rushes admin account` and `rushes admin credits`: manage accounts, their balances and their ledger entries. */
import { usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import { MAX_CREDITS } from '../../protocol/limits.js'
import type { AccountRecord } from '../../service/store/accounts.js'
import { wholeNumber } from '../flags/values.js'
import { printList } from '../terminal/table.js'
import { type AdminCommand, type AdminTask, isoTime, LIMIT_FLAG, limitIn } from './admin-command.js'

export const accountCommands: readonly AdminCommand[] = [
  {
    usage: 'create <name>',
    about: 'Create an account',
    options: (command) => command.option('--balance <n>', 'Initial credits', '0'),
    make: true,
    async work({ ctx: { out }, admin, flags: { balance = '0' } }, name = '') {
      const credits = wholeNumber(balance, '--balance', 0, MAX_CREDITS)
      const account = await admin.createAccount(name, credits)
      if (out.mode.json) out.json(accountJson(account))
      else out.line(account.name)
      out.note(
        `The account ${account.name} has ${account.balance} credits. ` +
          `Create a key for it with \`rushes admin key create --account ${quoteWord(account.name)}\`.`,
      )
    },
  },
  {
    usage: 'list',
    about: 'List accounts with their balance and state',
    async work({ ctx: { out }, admin }) {
      await printList(out, await admin.accounts(), {
        header: ['ID', 'ACCOUNT', 'BALANCE', 'STATE', 'KEYS', 'RUNS', 'CREATED'],
        cells: ({ id, name, balance, banned, keys, runs, createdAtMs }) => [
          id,
          name,
          balance,
          banned ? 'banned' : 'active',
          keys,
          runs,
          isoTime(createdAtMs),
        ],
        json: accountJson,
      })
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

async function ban({ ctx: { out }, admin }: AdminTask, name: string, banned: boolean): Promise<void> {
  const account = await admin.setBanned(name, banned)
  if (out.mode.json) out.json(accountJson(account))
  out.note(
    banned
      ? `${account.name} is banned: new requests get 403; accepted runs are still rendered.`
      : `${account.name} is active again.`,
  )
}

export const creditsCommands: readonly AdminCommand[] = [
  {
    usage: 'add <account> <n>',
    about: 'Add credits; a negative number removes them',
    async work({ ctx: { out }, admin }, name = '', amount = '') {
      const credits = wholeNumber(amount, '<n>', -MAX_CREDITS, MAX_CREDITS)
      if (credits === 0) throw usageError('The number of credits is 0; nothing was changed.')
      const account = await admin.addCredits(name, credits)
      if (out.mode.json) out.json(accountJson(account))
      else
        out.line(
          out.stdoutIsTerminal
            ? `The account ${account.name} has ${account.balance} credits.`
            : String(account.balance),
        )
    },
  },
  {
    usage: 'list <account>',
    about: 'List credits added, charged and refunded, newest first',
    options: (command) => command.option(...LIMIT_FLAG),
    async work({ ctx: { out }, admin, flags }, name = '') {
      await printList(out, await admin.entries(name, limitIn(flags)), {
        header: ['ENTRY', 'CREDITS', 'KIND', 'RUN', 'KEY', 'CREATED'],
        cells: ({ sequence, amount, kind, runId, keyId, createdAtMs }) => [
          sequence,
          amount > 0 ? `+${amount}` : amount,
          kind,
          runId,
          keyId,
          isoTime(createdAtMs),
        ],
        json: ({ sequence, account, kind, amount, runId, keyId, createdAtMs }) => ({
          sequence,
          account,
          kind,
          amount,
          run_id: runId ?? null,
          key: keyId ?? null,
          created_at: isoTime(createdAtMs),
        }),
      })
    },
  },
]

const accountJson = ({ id, name, balance, banned, keys, runs, createdAtMs }: AccountRecord) => ({
  id,
  name,
  balance,
  banned,
  keys,
  runs,
  created_at: isoTime(createdAtMs),
})
