/** `rushes admin key`. A key is given by its number, or by its name when only one key has it. */
import { Option } from 'commander'
import { usageError } from '../../errors.js'
import { type KeyState, keyStateOf } from '../../protocol/key-state.js'
import { MAX_CREDITS } from '../../protocol/key-terms.js'
import type { KeyTerms, Rotation } from '../../service/administration.js'
import type { Context } from '../context/context.js'
import { parseDuration } from '../flags/duration.js'
import { parseRate } from '../flags/rate.js'
import { repeated } from '../flags/repeated.js'
import { wholeNumber } from '../flags/whole-number.js'
import { printList } from '../terminal/table.js'
import type { AdminCommand, AdminFlags, Work } from './admin-command.js'
import { KEY_EXPENDABLE, KEY_HEADER, keyCells, keyJson, keyTableCells } from './admin-rows.js'

const MAX_QUOTA = 1_000_000_000_000
const NONE = 'none'

const termOptions = (lifts: boolean): readonly Option[] => {
  const orNone = lifts ? ', or none' : ''
  return [
    new Option('--name <text>', 'Name of the key'),
    new Option('--spend-limit <n>', `Maximum credits over its lifetime${orNone}`),
    new Option('--quota <n>', `Maximum runs over its lifetime${orNone}`),
    new Option('--allow-ip <cidr>', `Allowed IP address or CIDR range${orNone} (repeatable)`).argParser(
      repeated,
    ),
    new Option('--rate <rate>', `Requests in a time, for example 100/10s${orNone}`),
    new Option('--expires <duration>', `Lifetime, for example 30d${orNone}`),
  ]
}

export const keyCommands: readonly AdminCommand[] = [
  {
    usage: 'create',
    about: 'Create a key (shown only once)',
    options: () => [
      new Option('--account <account>', 'Account of the key (required)'),
      ...termOptions(false),
    ],
    make: true,
    async work({ ctx, admin, flags }) {
      if (flags.account === undefined)
        throw usageError('Missing --account.', 'List the accounts with `rushes admin account list`.')
      const { apiKey, key } = await admin.createKey(flags.account, termsOf(ctx, flags))
      const { out } = ctx
      if (out.mode.json) out.json({ ...keyJson(key, ctx.clock.now()), api_key: apiKey })
      else out.line(apiKey)
      out.note(`Created key ${key.id} (${key.name}) of ${key.account}. The key is shown only once.`)
    },
  },
  {
    usage: 'list',
    about: 'List keys with their usage and limits',
    options: () => [new Option('--account <account>', 'Only keys of this account')],
    async work({ ctx: { out, clock }, admin, flags }) {
      const nowMs = clock.now()
      printList(out, await admin.keys(flags.account), {
        header: KEY_HEADER,
        cells: (key) => (out.stdoutIsTerminal ? keyTableCells : keyCells)(key, nowMs),
        expendable: KEY_EXPENDABLE,
        json: (key) => keyJson(key, nowMs),
      })
    },
  },
  {
    usage: 'disable <key>',
    about: 'Disable a key (401)',
    work: (work, key = '') => change(work, key, { disabled: true }, 'is disabled'),
  },
  {
    usage: 'enable <key>',
    about: 'Enable a disabled key',
    work: (work, key = '') => change(work, key, { disabled: false }, 'is enabled'),
  },
  {
    usage: 'rotate <key>',
    about: 'Replace the secret of a key (the new one is shown only once)',
    options: () => [new Option('--now', 'End the old secret at once, for example when it leaked')],
    async work({ ctx: { out, clock }, admin, flags: { now = false } }, wanted = '') {
      const rotation = await admin.rotateKey(wanted, { endOld: now })
      const { apiKey, key } = rotation
      if (out.mode.json) out.json({ ...keyJson(key, clock.now()), api_key: apiKey })
      else out.line(apiKey)
      const note = `Key ${key.id} (${key.name}) of ${key.account} has a new secret, which is shown only once.`
      out.note([note, ...oldSecretWords(rotation, now, clock.now())].join(' '))
    },
  },
  {
    usage: 'set <key>',
    about: 'Change the name, limits or lifetime of a key',
    options: () => termOptions(true),
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

/** What became of the secrets that the key had. */
function oldSecretWords({ key, endedUntilMs }: Rotation, isEnded: boolean, nowMs: number): readonly string[] {
  const { expiresAtMs = Number.POSITIVE_INFINITY, rotatesUntilMs = 0 } = key
  const iso = (ms: number) => new Date(ms).toISOString()
  const works = `The old one works until ${iso(Math.min(rotatesUntilMs, expiresAtMs))}.`
  const words: Partial<Record<KeyState, string>> = {
    disabled: `The key is disabled, so neither this secret nor the old one works before \`rushes admin key enable ${key.id}\`.`,
    expired: 'The key has expired, so neither this secret nor the old one works.',
  }
  const state = keyStateOf(key, nowMs)
  return [
    isEnded ? 'The old one no longer works.' : (words[state] ?? works),
    ...(endedUntilMs === undefined || state === 'expired'
      ? []
      : [`The secret before it, which was to work until ${iso(endedUntilMs)}, no longer works.`]),
  ]
}

async function change(
  { ctx: { out, clock }, admin }: Work,
  wanted: string,
  terms: Partial<KeyTerms>,
  said: string,
): Promise<void> {
  const key = await admin.changeKey(wanted, terms)
  if (out.mode.json) out.json(keyJson(key, clock.now()))
  out.note(`Key ${key.id} (${key.name}) of ${key.account} ${said}.`)
}

/** The terms of the flags that were given; `none` removes a limit by setting it to undefined. */
function termsOf({ clock }: Context, flags: AdminFlags): Partial<KeyTerms> {
  const { name, spendLimit, quota, allowIp, rate, expires } = flags
  return {
    ...(name !== undefined && { name }),
    ...(spendLimit !== undefined && { spendLimit: limitOf(spendLimit, '--spend-limit', MAX_CREDITS) }),
    ...(quota !== undefined && { quota: limitOf(quota, '--quota', MAX_QUOTA) }),
    ...(allowIp !== undefined && { allowedIps: allowedIpsOf(allowIp) }),
    ...(rate !== undefined && { rate: rate === NONE ? undefined : parseRate(rate, '--rate') }),
    ...(expires !== undefined && {
      expiresAtMs: expires === NONE ? undefined : clock.now() + lifeOf(expires),
    }),
  }
}

const limitOf = (text: string, flag: string, most: number): number | undefined =>
  text === NONE ? undefined : wholeNumber(text, flag, 0, most)

function allowedIpsOf(texts: readonly string[]): readonly string[] | undefined {
  if (!texts.includes(NONE)) return texts
  if (texts.length > 1)
    throw usageError('--allow-ip none cannot be used with other addresses: it removes the whitelist.')
  return undefined
}

function lifeOf(text: string): number {
  const ms = parseDuration(text, '--expires', 'Examples: 90d, 12h, 30m.')
  if (ms > 0) return ms
  throw usageError(
    `--expires: ${text} is not a lifetime; the key would expire immediately.`,
    'To stop a key, use `rushes admin key disable <key>`.',
  )
}
