/**
 * Manages accounts, keys and credits in the data folder or the database of a service. The service may run in other
 * processes; a change applies from its next request.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { type RushesError, usageError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { MAX_ACTIVE_KEYS, MAX_TIME_MS } from '../protocol/credentials.js'
import { printable, shortened } from '../protocol/text.js'
import { type Backup, writeBackup } from './backup.js'
import { DATABASE_NAME, openData } from './data.js'
import type { JobHandle } from './engines/engine.js'
import { isPlainName, MAX_NAME_LENGTH } from './rules/key-terms.js'
import { parseNetwork } from './rules/networks.js'
import { Refusal } from './rules/refusal.js'
import { newKey } from './rules/secrets.js'
import type { AccountRecord, KeyDetails, KeyTerms, LedgerEntry, NewKey } from './store/account-store.js'
import { withMethods } from './store/calls.js'
import { DatabaseUnavailable, type DecidedRun, type Store } from './store/contract.js'
import type { StoredRun } from './store/run.js'
import { explainDatabaseError, MOVED, openSqliteStore } from './store/sqlite/index.js'
import { createUserAdministration, type UserAdministration } from './user-administration.js'

export type { Backup } from './backup.js'
export type { AccountRecord, KeyDetails, KeyTerms, LedgerEntry, Verification } from './store/account-store.js'
export type { UserDetails } from './store/console-store.js'

import type { LocalStatus } from '../protocol/run-state.js'
import type { ListedRun } from './store/console-store.js'

export type { UserWithLink } from './user-administration.js'

/**
 * All functions throw `RushesError` (usage) for a missing object or a change that is not allowed, and then change
 * nothing.
 */
export interface Administration extends UserAdministration {
  createAccount(name: string, credits: number): Promise<AccountRecord>
  accounts(): Promise<readonly AccountRecord[]>
  setBanned(account: string, banned: boolean): Promise<AccountRecord>
  /** Returns the key itself in `apiKey`. It can be shown only now, since only its hash is stored. */
  createKey(
    account: string,
    terms: Partial<KeyTerms>,
  ): Promise<{ readonly apiKey: string; readonly key: KeyDetails }>
  /** Lists all keys, or the keys of one account. */
  keys(account?: string): Promise<readonly KeyDetails[]>
  /** `key` is the key's number, or its name if only one key has that name. Changes only the terms that are present. */
  changeKey(key: string, terms: Partial<KeyTerms>): Promise<KeyDetails>
  /** A negative amount removes credits; the balance cannot fall below 0. */
  addCredits(account: string, amount: number): Promise<AccountRecord>
  /** Lists ledger entries, newest first. */
  entries(account: string, limit?: number): Promise<readonly LedgerEntry[]>
  /** Lists runs of all accounts or of one, newest first, with the names of their accounts. */
  runs(filter: AdminRunFilter): Promise<readonly AdminRun[]>
  /** Cancels a run of any account and model. A run that has ended stays as it is. */
  cancelRun(id: string): Promise<StoredRun>
  /** Also throws when the database is too damaged to read. */
  readonly verify: Store['verify']
  /** Refunds a failed run whose outcome is unknown. */
  refundRun(id: string): Promise<void>
  /** Follows a job of the provider as the job of a run whose outcome is unknown. */
  adoptRun(id: string, jobId: string): Promise<void>
  /** Copies the database into a new file, which appears under its name only when it is complete. */
  backup(path: string): Promise<Backup>
  close(): Promise<void>
}

export interface AdminRunFilter {
  readonly account?: string | undefined
  readonly status?: LocalStatus | undefined
  readonly limit?: number | undefined
}

export interface AdminRun extends ListedRun {
  readonly account: string
}

export interface ServiceData {
  readonly dataFolder: string
  /** `postgres://…`. If undefined, the service uses SQLite in the data folder. */
  readonly databaseUrl?: string | undefined
}

export interface AdministrationOptions extends ServiceData {
  readonly clock: Clock
  /**
   * Whether to create data in a folder that has none. If false, such a folder is refused, since the path is probably
   * wrong.
   */
  readonly make: boolean
}

export async function openAdministration(options: AdministrationOptions): Promise<Administration> {
  const { dataFolder, databaseUrl, clock, make } = options
  if (databaseUrl !== undefined) return await openPostgresAdministration(databaseUrl, options)
  const path = join(dataFolder, DATABASE_NAME)
  if (!make && !existsSync(path) && !existsSync(`${path}${MOVED}`))
    throw usageError(
      `${dataFolder} contains no data of a local service.`,
      'Give the folder with --data. `rushes serve` creates one when it starts.',
    )
  const { folders, opened: store } = await openData(dataFolder, (each) => openSqliteStore(each))
  const { database } = folders
  const explain = (error: unknown) => explainDatabaseError(database, error)
  return {
    ...administrationOf(explaining(store, explain), clock),
    backup: (path) => writeBackup(database, path),
  }
}

async function openPostgresAdministration(
  databaseUrl: string,
  { clock, make }: AdministrationOptions,
): Promise<Administration> {
  const { openPostgresStore } = await import('./store/postgres/index.js')
  const store = await openPostgresStore(databaseUrl, { maxConnections: 1, make })
  return {
    ...administrationOf(explaining(store, explainUnavailable), clock),
    backup: async () => {
      throw usageError(
        'PostgreSQL is backed up with its own tools, not with `rushes admin backup`.',
        'For example `pg_dump --format=custom --schema=rushes` (docs/operations.md).',
      )
    },
  }
}

const explainUnavailable = (error: unknown): RushesError | undefined =>
  error instanceof DatabaseUnavailable
    ? usageError(
        `The database cannot be used: ${error.message}.`,
        'Check the server, then run the command again.',
      )
    : undefined

/**
 * Replaces the errors of a database with messages for users. A damaged page or a lock can cause an error long after the
 * file was opened.
 */
const explaining = (store: Store, explain: Explain): Store =>
  withMethods(
    store,
    (method) =>
      (...args) =>
        explained(explain, method(...args)),
  )

type Explain = (error: unknown) => RushesError | undefined

const explained = <Result>(explain: Explain, result: Promise<Result>): Promise<Result> =>
  result.catch((error) => {
    throw explain(error) ?? error
  })

function administrationOf(store: Store, clock: Clock): Omit<Administration, 'backup'> {
  async function accountOf(name: string): Promise<AccountRecord> {
    const accounts = await store.listAccounts()
    const found = accounts.find((each) => each.name === name)
    if (found === undefined) throw noAccount(name, accounts)
    return found
  }

  return {
    ...createUserAdministration(store, clock, accountOf),
    async createAccount(name, credits) {
      checkName(name, 'an account')
      const created = await store.addAccount({ name, credits, nowMs: clock.now() })
      if (created === undefined) throw usageError(`Account ${name} already exists.`)
      return created
    },
    accounts: () => store.listAccounts(),
    async setBanned(account, banned) {
      await store.setBanned(account, banned)
      return await accountOf(account)
    },

    async createKey(account, terms) {
      checkTerms(terms)
      const { id: accountId } = await accountOf(account)
      const { apiKey, ...secret } = newKey()
      const key: NewKey = { name: 'key', ...terms, ...secret, accountId, nowMs: clock.now() }
      const id = await explainTooManyKeys(account, store.addKey(key))
      return { apiKey, key: await keyOf(store, String(id)) }
    },
    async keys(account) {
      if (account === undefined) return await store.listKeys()
      await accountOf(account)
      return (await store.listKeys()).filter((key) => key.account === account)
    },
    async changeKey(key, terms) {
      checkTerms(terms)
      const { id, account } = await keyOf(store, key)
      await explainTooManyKeys(account, store.changeKey(id, terms))
      return await keyOf(store, String(id))
    },

    async addCredits(account, amount) {
      await store.addCredits({ account, amount, nowMs: clock.now() }, (after) => {
        if (after < 0)
          throw usageError(
            `Account ${account} has ${after - amount} credits, so ${-amount} cannot be removed.`,
          )
        if (!Number.isSafeInteger(after))
          throw usageError(`The balance of account ${account} would be too large.`)
      })
      return await accountOf(account)
    },
    async entries(account, limit = Number.MAX_SAFE_INTEGER) {
      await accountOf(account)
      return await store.listEntries(account, limit)
    },
    async runs({ account, status, limit = Number.MAX_SAFE_INTEGER }) {
      const accounts = await store.listAccounts()
      const found = accounts.find(({ name }) => name === account)
      if (account !== undefined && found === undefined) throw noAccount(account, accounts)
      const runs: AdminRun[] = []
      let before: number | undefined
      do {
        const page = await store.listRuns({
          accountId: found?.id,
          status,
          before,
          limit: Math.min(MAX_LISTED, limit - runs.length),
        })
        for (const run of page.runs)
          runs.push({ ...run, account: accounts.find(({ id }) => id === run.accountId)?.name ?? '' })
        before = page.next
      } while (before !== undefined && runs.length < limit)
      return runs
    },
    async cancelRun(id) {
      const found = await store.cancelRun(id, clock.now())
      const run = found && (await store.findRun(id, found.accountId))
      if (run !== undefined) return run
      throw usageError(
        `Run ${shortened(printable(id))} does not exist.`,
        'Check the id, --data and --database.',
      )
    },
    verify: () => store.verify(),
    refundRun: async (id) => checkDecided(id, await store.decideUnknown(id, { nowMs: clock.now() })),
    adoptRun: async (id, jobId) => {
      if (!/^[^\u0000-\u0020\u007f]{1,256}$/.test(jobId))
        throw usageError('The id of the provider must have 1 to 256 characters, without spaces.')
      const handle = { id: jobId }
      const decided = await store.decideUnknown(id, { adopt: { handle }, nowMs: clock.now() })
      checkDecided(id, decided, handle)
    },
    close: () => store.close(),
  }
}

/** Number of runs that one query reads. */
const MAX_LISTED = 500

async function keyOf(store: Store, numberOrName: string): Promise<KeyDetails> {
  const keys = await store.listKeys()
  const byNumber = keys.find(({ id }) => String(id) === numberOrName)
  if (byNumber !== undefined) return byNumber
  const named = keys.filter(({ name }) => name === numberOrName)
  const [found, ...others] = named
  if (found === undefined)
    throw usageError(`Key ${numberOrName} does not exist.`, 'List the keys with `rushes admin key list`.')
  if (others.length > 0)
    throw usageError(
      `More than one key is named ${numberOrName}: ${[found, ...others].map(({ id }) => id).join(', ')}.`,
      'Use the number of the key.',
    )
  return found
}

function checkDecided(id: string, decided: DecidedRun, adopt?: JobHandle): void {
  if (decided === 'missing') throw usageError(`Run ${id} does not exist.`)
  if (decided === 'taken')
    throw usageError(
      `The job ${shortened(printable(adopt?.id ?? ''))} belongs to another run.`,
      "Find the job of this run in the provider's list.",
    )
  if (decided === 'other')
    throw usageError(
      `Run ${id} has no unknown outcome, or an operator has decided on it.`,
      'List the runs that need a decision with `rushes admin verify`.',
    )
}

async function explainTooManyKeys<Changed>(account: string, change: Promise<Changed>): Promise<Changed> {
  try {
    return await change
  } catch (error) {
    if (!(error instanceof Refusal && error.code === 'too_many_keys')) throw error
    throw usageError(
      `Account ${account} has ${MAX_ACTIVE_KEYS} active keys, and can have no more.`,
      'Disable one that is not used any more: `rushes admin key disable <number>`.',
    )
  }
}

function noAccount(name: string, accounts: readonly AccountRecord[]): RushesError {
  const names = accounts.slice(0, 10).map((each) => each.name)
  return usageError(
    `Account ${name} does not exist.`,
    names.length === 0
      ? 'Create one with `rushes admin account create <name>`.'
      : `Accounts: ${names.join(', ')}${accounts.length > names.length ? ', …' : ''}.`,
  )
}

function checkName(name: string, what: string): void {
  if (!isPlainName(name))
    throw usageError(
      `"${name}" is not a valid name for ${what}.`,
      `Use 1 to ${MAX_NAME_LENGTH} characters, without invisible characters and without spaces at the ends.`,
    )
}

function checkTerms({ name, expiresAtMs = 0, allowedIps = [] }: Partial<KeyTerms>): void {
  if (name !== undefined) checkName(name, 'a key')
  if (!(expiresAtMs <= MAX_TIME_MS)) throw usageError('A key must expire before the year 10000, or never.')
  for (const text of allowedIps)
    if (parseNetwork(text) === undefined)
      throw usageError(
        `--allow-ip "${text}" is not an IP address or CIDR range.`,
        'Examples: 203.0.113.7, 203.0.113.0/24, 2001:db8::1, 2001:db8::/32',
      )
}
