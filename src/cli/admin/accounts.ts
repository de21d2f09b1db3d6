/** `rushes admin account`, `credits` and `user`: accounts, their balances and ledger entries, and who may sign in. */
import { usageError } from '../../errors.js'
import { quoteWord } from '../../host/shell.js'
import { MAX_CREDITS } from '../../protocol/limits.js'
import { isoTime } from '../../protocol/units.js'
import type { UserWithLink } from '../../service/admin.js'
import type { AccountRecord } from '../../service/store/accounts.js'
import type { UserRecord } from '../../service/store/users.js'
import { linkPath } from '../../service/web/sessions.js'
import { DEFAULT_PUBLIC_URL, publicUrlOf } from '../flags/serve.js'
import { wholeNumber } from '../flags/values.js'
import { printList } from '../terminal/table.js'
import type { AdminCommand, AdminTask } from './admin-command.js'

export const accountCommands: readonly AdminCommand[] = [
  {
    usage: 'create <name>',
    about: 'Create an account',
    options: (command) => command.option('--balance <n>', 'Initial credits', '0'),
    make: true,
    async work({ ctx: { out }, admin, flags: { balance = '0' }, withFlags }, name = '') {
      const credits = wholeNumber(balance, '--balance', 0, MAX_CREDITS)
      const account = await admin.createAccount(name, credits)
      out.answer(accountJson(account), account.name)
      out.note(
        withFlags(
          `The account ${account.name} has ${account.balance} credits. ` +
            `Create a key for it with \`rushes admin key create --account ${quoteWord(account.name)}\`.`,
        ),
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
  out.answer(accountJson(account))
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
      out.answer(
        accountJson(account),
        out.stdoutIsTerminal
          ? `The account ${account.name} has ${account.balance} credits.`
          : String(account.balance),
      )
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

const URL_FLAG = ['--public-url <url>', `Base URL of the link (default: ${DEFAULT_PUBLIC_URL})`] as const

export const userCommands: readonly AdminCommand[] = [
  {
    usage: 'add <email>',
    about: 'Let a person sign in to the console',
    options: (command) =>
      command
        .option('--account <account>', 'Account of the user (default: the only one)')
        .option(...URL_FLAG),
    async work(work, email = '') {
      const account = work.flags.account ?? (await onlyAccount(work))
      const base = baseOf(work)
      const added = await work.admin.addUser(email, account)
      printLink(work, base, added)
      work.ctx.out.note(
        `Added ${added.user.email} to account ${added.user.account}. ` +
          `Single-use link; expires in 15 minutes. They set a password there.${otherUrlNote(work)}`,
      )
    },
  },
  {
    usage: 'list',
    about: 'List users with their account',
    async work({ ctx: { out }, admin }) {
      await printList(out, await admin.users(), {
        header: ['ID', 'EMAIL', 'ACCOUNT', 'PASSWORD', 'CREATED'],
        cells: ({ id, email, account, password, createdAtMs }) => [
          id,
          email,
          account,
          password === undefined ? undefined : 'set',
          isoTime(createdAtMs),
        ],
        json: userJson,
      })
    },
  },
  {
    usage: 'remove <email>',
    about: 'Remove a user, and end their sessions',
    async work({ ctx: { out }, admin }, email = '') {
      const user = await admin.removeUser(email)
      out.answer(userJson(user))
      out.note(
        `Removed ${user.email}. Their sessions and links have ended; the keys and runs of ${user.account} stay.`,
      )
    },
  },
  {
    usage: 'link <email>',
    about: 'Create another sign-in link, for example after a lost password',
    options: (command) => command.option(...URL_FLAG),
    async work(work, email = '') {
      const base = baseOf(work)
      const linked = await work.admin.linkUser(email)
      printLink(work, base, linked)
      work.ctx.out.note(
        `Single-use link for ${linked.user.email}; expires in 15 minutes. ` +
          `A new password can be set there without the current one.${otherUrlNote(work)}`,
      )
    },
  },
]

/** Throws `usage` if there are several. */
async function onlyAccount({ admin }: AdminTask): Promise<string> {
  const [account, ...others] = await admin.accounts()
  if (account !== undefined && others.length === 0) return account.name
  throw usageError('Missing --account.', 'List the accounts with `rushes admin account list`.')
}

const otherUrlNote = ({ flags }: AdminTask): string =>
  flags.publicUrl === undefined ? ' If the service has another URL, add --public-url.' : ''

const baseOf = ({ flags }: AdminTask): string => publicUrlOf(flags.publicUrl ?? DEFAULT_PUBLIC_URL)

function printLink({ ctx: { out } }: AdminTask, base: string, { user, linkToken }: UserWithLink): void {
  const link = `${base}${linkPath(linkToken)}`
  out.answer({ ...userJson(user), link }, link)
}

const userJson = (user: UserRecord) => ({
  id: user.id,
  email: user.email,
  account: user.account,
  has_password: user.password !== undefined,
  created_at: isoTime(user.createdAtMs),
})
