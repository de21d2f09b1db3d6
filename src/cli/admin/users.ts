/** `rushes admin user`: manages the users who may sign in to the console. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { usageError } from '../../errors.js'
import type { UserWithLink } from '../../service/admin.js'
import { isoOrNull } from '../../service/rules/times.js'
import type { UserDetails } from '../../service/store/users.js'
import { linkPath } from '../../service/web/sessions.js'
import { DEFAULT_PUBLIC_URL, publicUrlOf, URL_FILE } from '../serve/flags.js'
import { printList } from '../terminal/table.js'
import { type AdminCommand, type AdminTask, isoTime } from './admin-command.js'

const URL_FLAG = [
  '--public-url <url>',
  `Base URL of the link (default: of the last start, else ${DEFAULT_PUBLIC_URL})`,
] as const

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
    about: 'List users with their account and when they were last seen',
    async work({ ctx: { out }, admin }) {
      await printList(out, await admin.users(), {
        header: ['ID', 'EMAIL', 'ACCOUNT', 'PASSWORD', 'SESSIONS', 'LAST SEEN', 'CREATED'],
        cells: ({ id, email, account, password, sessions, lastSeenAtMs, createdAtMs }) => [
          id,
          email,
          account,
          password === undefined ? undefined : 'set',
          sessions,
          isoOrNull(lastSeenAtMs),
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
      if (out.mode.json) out.json(userJson(user))
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

const baseOf = (task: AdminTask): string =>
  publicUrlOf(task.flags.publicUrl ?? rememberedUrl(task) ?? DEFAULT_PUBLIC_URL)

/** Returns the URL of the last start of the service; undefined on another machine, or before the first start. */
function rememberedUrl({ dataFolder }: AdminTask): string | undefined {
  if (dataFolder === undefined) return undefined
  try {
    return readFileSync(join(dataFolder, URL_FILE), 'utf8').trim()
  } catch {
    return undefined
  }
}

const otherUrlNote = (task: AdminTask): string =>
  task.flags.publicUrl === undefined && rememberedUrl(task) === undefined
    ? ' If the service has another URL, add --public-url.'
    : ''

function printLink({ ctx: { out } }: AdminTask, base: string, { user, linkToken }: UserWithLink): void {
  const link = `${base}${linkPath(linkToken)}`
  if (out.mode.json) out.json({ ...userJson(user), link })
  else out.line(link)
}

const userJson = (user: UserDetails) => ({
  id: user.id,
  email: user.email,
  account: user.account,
  has_password: user.password !== undefined,
  sessions: user.sessions,
  last_seen_at: isoOrNull(user.lastSeenAtMs),
  created_at: isoTime(user.createdAtMs),
})
