/** Accounts, keys and ledger entries as table rows and as JSON. */
import { keyStateOf } from '../../protocol/key-state.js'
import { RUNS_LIMIT } from '../../protocol/limits.js'
import { printable } from '../../protocol/text.js'
import type { AccountRecord, KeyDetails, LedgerEntry, UserDetails } from '../../service/administration.js'
import { formatRate } from '../flags/rate.js'
import { formatAgo } from '../terminal/list-table.js'

const iso = (ms: number): string => new Date(ms).toISOString()
const isoOrNull = (ms: number | undefined): string | null => (ms === undefined ? null : iso(ms))
const NONE = '-'
const of = (used: number, limit: number | undefined): string =>
  limit === undefined ? `${used}` : `${used}/${limit}`

export const accountJson = ({ id, name, balance, banned, keys, runs, createdAtMs }: AccountRecord) => ({
  id,
  name,
  balance,
  banned,
  keys,
  runs,
  created_at: iso(createdAtMs),
})

export const ACCOUNT_HEADER = ['ID', 'ACCOUNT', 'BALANCE', 'STATE', 'KEYS', 'RUNS', 'CREATED']

export const accountCells = (account: AccountRecord): readonly string[] => [
  String(account.id),
  printable(account.name),
  String(account.balance),
  account.banned ? 'banned' : 'active',
  String(account.keys),
  String(account.runs),
  iso(account.createdAtMs),
]

export const keyJson = (key: KeyDetails, nowMs: number) => ({
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
  rate: key.rate === undefined ? null : formatRate(key.rate),
  expires_at: isoOrNull(key.expiresAtMs),
  created_at: iso(key.createdAtMs),
  last_used_at: isoOrNull(key.usedAtMs),
  rotates_until: isoOrNull((key.rotatesUntilMs ?? 0) > nowMs ? key.rotatesUntilMs : undefined),
})

export const KEY_HEADER = [
  'ID',
  'ACCOUNT',
  'KEY',
  'STATE',
  'SPENT',
  'RUNS',
  'ALLOWED IPS',
  'EXPIRES',
  'CREATED',
  'RATE',
  'PREFIX',
  'LAST USED',
]

/** What a narrow terminal leaves out, least important first. */
export const KEY_EXPENDABLE = ['CREATED', 'RATE', 'PREFIX', 'ALLOWED IPS', 'LAST USED']

/** For a pipe. */
export const keyCells = (key: KeyDetails, nowMs: number): readonly string[] => [
  String(key.id),
  printable(key.account),
  printable(key.name),
  keyStateOf(key, nowMs),
  of(key.spent, key.spendLimit),
  of(key.used, key.quota),
  key.allowedIps?.join(' ') ?? 'any',
  key.expiresAtMs === undefined ? 'never' : iso(key.expiresAtMs),
  iso(key.createdAtMs),
  // New columns come last, so that scripts which read the others by their place go on working.
  formatRate(key.rate ?? RUNS_LIMIT),
  key.prefix ?? NONE,
  isoOrNull(key.usedAtMs) ?? NONE,
]

/** Times are shorter on a terminal, so that the columns fit. */
export const keyTableCells = (key: KeyDetails, nowMs: number): readonly string[] => {
  const lastUsed = key.usedAtMs === undefined ? NONE : formatAgo(nowMs - key.usedAtMs)
  return [...keyCells(key, nowMs).slice(0, -1).map(dayOf), lastUsed]
}

const dayOf = (cell: string): string => cell.replace(/^(\d{4}-\d\d-\d\d)T\S+Z$/, '$1')

export const userJson = (user: UserDetails) => ({
  id: user.id,
  email: user.email,
  account: user.account,
  has_password: user.password !== undefined,
  sessions: user.sessions,
  last_seen_at: isoOrNull(user.lastSeenAtMs),
  created_at: iso(user.createdAtMs),
})

export const USER_HEADER = ['ID', 'EMAIL', 'ACCOUNT', 'PASSWORD', 'SESSIONS', 'LAST SEEN', 'CREATED']

export const userCells = (user: UserDetails): readonly string[] => [
  String(user.id),
  printable(user.email),
  printable(user.account),
  user.password === undefined ? NONE : 'set',
  String(user.sessions),
  isoOrNull(user.lastSeenAtMs) ?? NONE,
  iso(user.createdAtMs),
]

export const entryJson = ({ sequence, account, kind, amount, runId, keyId, createdAtMs }: LedgerEntry) => ({
  sequence,
  account,
  kind,
  amount,
  run_id: runId ?? null,
  key: keyId ?? null,
  created_at: iso(createdAtMs),
})

export const ENTRY_HEADER = ['ENTRY', 'CREDITS', 'KIND', 'RUN', 'KEY', 'CREATED']

export const entryCells = (entry: LedgerEntry): readonly string[] => [
  String(entry.sequence),
  entry.amount > 0 ? `+${entry.amount}` : String(entry.amount),
  entry.kind,
  entry.runId ?? NONE,
  entry.keyId === undefined ? NONE : String(entry.keyId),
  iso(entry.createdAtMs),
]
