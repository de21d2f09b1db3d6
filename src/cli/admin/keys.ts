/** `rushes admin key`. The user gives a key by its number, or by its name if only one key has that name. */
import type { Command } from 'commander'
import { usageError } from '../../errors.js'
import { keyStateOf, RUNS_LIMIT } from '../../protocol/limits.js'
import { isoOrNull, isoTime } from '../../protocol/units.js'
import { type KeyTerms, readKeyTerms } from '../../service/rules/key-terms.js'
import { formatRate } from '../../service/rules/rate.js'
import type { KeyDetails } from '../../service/store/keys.js'
import type { Context } from '../context/context.js'
import { repeated } from '../flags/values.js'
import { printList } from '../terminal/table.js'
import type { AdminCommand, AdminFlags, AdminTask } from './admin-command.js'

function addTerms(command: Command, noneHint: string): Command {
  return command
    .option('--name <text>', 'Name of the key')
    .option('--spend-limit <n>', `Maximum credits over its lifetime${noneHint}`)
    .option('--quota <n>', `Maximum runs over its lifetime${noneHint}`)
    .option('--allow-ip <cidr>', `Allowed IP address or CIDR range${noneHint} (repeatable)`, repeated)
    .option('--rate <rate>', `Rate limit, for example 100/10s${noneHint}`)
    .option('--expires <duration>', `Lifetime, for example 30d${noneHint}`)
}

export const keyCommands: readonly AdminCommand[] = [
  {
    usage: 'create',
    about: 'Create a key (shown only once)',
    options: (command) =>
      addTerms(command.option('--account <account>', 'Account of the key (required)'), ''),
    make: true,
    async work(task) {
      const { ctx, admin, flags } = task
      if (flags.account === undefined)
        throw usageError('Missing --account.', 'List the accounts with `rushes admin account list`.')
      const { apiKey, key } = await admin.createKey(flags.account, termsOf(ctx, flags))
      ctx.out.answer({ ...keyJson(key), api_key: apiKey }, apiKey)
      ctx.out.note(`Created key ${key.id} (${key.name}) of ${key.account}. The key is shown only once.`)
    },
  },
  {
    usage: 'list',
    about: 'List keys with their usage and limits',
    options: (command) => command.option('--account <account>', 'Only keys of this account'),
    async work({ ctx: { out, clock }, admin, flags: { account } }) {
      await printList(out, await admin.keys(account), {
        header: KEY_HEADER,
        cells: (key) => [
          key.id,
          key.account,
          key.name,
          keyStateOf(key, clock.now()),
          usageText(key.spent, key.spendLimit),
          usageText(key.used, key.quota),
          key.allowedIps?.join(' ') ?? 'any',
          isoOrNull(key.expiresAtMs) ?? 'never',
          formatRate(key.rate ?? RUNS_LIMIT),
        ],
        json: keyJson,
      })
    },
  },
  {
    usage: 'disable <key>',
    about: 'Disable a key (its requests get 401)',
    work: (work, key = '') => change(work, key, { disabled: true }, 'is disabled'),
  },
  {
    usage: 'enable <key>',
    about: 'Enable a disabled key',
    work: (work, key = '') => change(work, key, { disabled: false }, 'is enabled'),
  },
  {
    usage: 'set <key>',
    about: 'Change the name, limits or lifetime of a key',
    options: (command) => addTerms(command, ', or none'),
    async work(work, key = '') {
      const terms = termsOf(work.ctx, work.flags)
      if (Object.keys(terms).length === 0)
        throw usageError(
          'Nothing to change: no flag was given.',
          'Flags: --name, --spend-limit, --quota, --allow-ip, --rate, --expires.',
        )
      await change(work, key, terms, 'was changed')
    },
  },
]

async function change(
  { ctx: { out }, admin }: AdminTask,
  keyName: string,
  terms: Partial<KeyTerms>,
  outcome: string,
): Promise<void> {
  const key = await admin.changeKey(keyName, terms)
  out.answer(keyJson(key))
  out.note(`Key ${key.id} (${key.name}) of ${key.account} ${outcome}.`)
}

const FLAG_NAMES: Readonly<Record<string, string>> = {
  spend_limit: '--spend-limit',
  quota: '--quota',
  allowed_ips: '--allow-ip',
  rate: '--rate',
  expires_at: '--expires',
}

/** The terms that the flags change. The value `none` removes a limit. */
function termsOf({ clock }: Context, flags: AdminFlags): Partial<KeyTerms> {
  const limits = {
    spend_limit: flags.spendLimit,
    quota: flags.quota,
    allowed_ips: flags.allowIp?.join(' '),
    rate: flags.rate,
    expires_at: flags.expires,
  }
  const texts: Record<string, string | undefined> = { name: flags.name }
  for (const [name, text] of Object.entries(limits)) {
    // A variable of a script that is not set must not remove a limit.
    if (text !== undefined && /^[\s,]*$/.test(text)) throw usageError(`${FLAG_NAMES[name]} has no value.`)
    texts[name] = text === 'none' ? '' : text
  }
  return readKeyTerms(texts, clock.now(), FLAG_NAMES)
}

const keyJson = (key: KeyDetails) => ({
  id: key.id,
  account: key.account,
  name: key.name,
  prefix: key.prefix ?? null,
  disabled: key.disabled,
  spend_limit: key.spendLimit ?? null,
  spent: key.spent,
  quota: key.quota ?? null,
  used: key.used,
  allowed_ips: key.allowedIps ?? null,
  rate: formatRate(key.rate ?? RUNS_LIMIT),
  expires_at: isoOrNull(key.expiresAtMs),
  created_at: isoTime(key.createdAtMs),
  last_used_at: isoOrNull(key.usedAtMs),
})

const KEY_HEADER = ['ID', 'ACCOUNT', 'KEY', 'STATE', 'SPENT', 'RUNS', 'ALLOWED IPS', 'EXPIRES', 'RATE']

const usageText = (used: number, limit: number | undefined): string =>
  limit === undefined ? `${used}` : `${used}/${limit}`
