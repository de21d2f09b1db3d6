/**
 * Manages accounts, keys, credits and users in the data folder or the database of a service. The service may run in other
 * processes; a change applies from its next request.
 */
import { existsSync, statSync } from 'node:fs'
import { open } from 'node:fs/promises'
import { join } from 'node:path'
import { type RushesError, usageError } from '../errors.js'
import type { Clock } from '../host/clock.js'
import { BUSY_TIMEOUT_MS, sqliteUri, withDatabase } from '../host/database.js'
import { flush, moveWithoutReplacing, removeFile, temporaryBeside } from '../host/files.js'
import { quoteWord } from '../host/shell.js'
import { describeError, errorCode } from '../host/system-error.js'
import type { LocalStatus } from '../protocol/run-state.js'
import { shortened } from '../protocol/text.js'
import { DATABASE_NAME, openData } from './data.js'
import { isEmail, storedEmail } from './rules/credentials.js'
import { checkName, type KeyTerms } from './rules/key-terms.js'
import { newKey } from './rules/secrets.js'
import type { AccountRecord } from './store/accounts.js'
import type { Store } from './store/index.js'
import type { KeyDetails } from './store/keys.js'
import type { ListedRun } from './store/lists.js'
import type { DecidedRun, StoredRun } from './store/run.js'
import { DatabaseUnavailable } from './store/sql.js'
import { explainDatabaseError, MOVED, openSqliteStore } from './store/sqlite/index.js'
import type { UserRecord } from './store/users.js'
import { addLink } from './web/sessions.js'

export interface UserWithLink {
  readonly user: UserRecord
  /** Token of a single-use sign-in link, valid for 15 minutes. */
  readonly linkToken: string
}

export interface ServiceData {
  readonly dataFolder: string
  /** `postgres://…`. If undefined, the service uses SQLite in the data folder. */
  readonly databaseUrl?: string | undefined
}

interface AdministrationOptions extends ServiceData {
  readonly clock: Clock
  /**
   * Whether to create data in a folder that has none. If false, such a folder is refused, since the path is probably
   * wrong.
   */
  readonly make: boolean
}

export async function openAdministration(options: AdministrationOptions): Promise<Administration> {
  const { dataFolder, databaseUrl, clock, make } = options
  if (databaseUrl !== undefined) {
    const { openPostgresStore } = await import('./store/postgres/index.js')
    return new Administration(await openPostgresStore(databaseUrl, { maxConnections: 1, make }), clock)
  }
  const path = join(dataFolder, DATABASE_NAME)
  if (!make && !existsSync(path) && !existsSync(`${path}${MOVED}`))
    throw usageError(
      `${dataFolder} contains no data of a local service.`,
      'Give the folder with --data. `rushes serve` creates one when it starts.',
    )
  const { folders, opened: store } = await openData(dataFolder, (each) => openSqliteStore(each))
  return new Administration(store, clock, folders.database)
}

/** Number of runs in a list. */
const MAX_LISTED = 100

/**
 * All methods throw `RushesError` (usage) for a missing object or a change that is not allowed, and then change
 * nothing.
 */
export class Administration {
  readonly #store: Store
  readonly #clock: Clock
  /** Path of an SQLite database. */
  readonly #path: string | undefined

  constructor(store: Store, clock: Clock, path?: string) {
    this.#store = store
    this.#clock = clock
    this.#path = path
  }

  /** Explains an error of the database to users. A damaged page or a lock can cause one long after the file was opened. */
  explain(error: unknown): RushesError | undefined {
    if (this.#path !== undefined) return explainDatabaseError(this.#path, error)
    if (!(error instanceof DatabaseUnavailable)) return undefined
    const problem = `The database cannot be used: ${error.message}.`
    return usageError(problem, 'Check the server, then run the command again.')
  }

  async createAccount(name: string, credits: number): Promise<AccountRecord> {
    checkName(name, 'an account')
    const created = await this.#store.addAccount({ name, credits, nowMs: this.#clock.now() })
    if (created === undefined) throw usageError(`Account ${name} already exists.`)
    return created
  }

  accounts(): Promise<readonly AccountRecord[]> {
    return this.#store.listAccounts()
  }

  async account(name: string): Promise<AccountRecord> {
    const found = await this.#store.findAccountByName(name)
    if (found !== undefined) return found
    throw usageError(`Account ${name} does not exist.`, 'List the accounts with `rushes admin account list`.')
  }

  async setBanned(account: string, banned: boolean): Promise<AccountRecord> {
    await this.#store.setBanned(account, banned)
    return await this.account(account)
  }

  /** Returns the key itself in `apiKey`. It can be shown only now, since only its hash is stored. */
  async createKey(
    account: string,
    terms: Partial<KeyTerms>,
  ): Promise<{ readonly apiKey: string; readonly key: KeyDetails }> {
    const { id: accountId } = await this.account(account)
    const { apiKey, ...secret } = newKey()
    const key = { name: 'key', ...terms, ...secret, accountId, nowMs: this.#clock.now() }
    const id = await this.#store.addKey(key)
    return { apiKey, key: await this.#key(String(id)) }
  }

  /** Lists all keys, or the keys of one account. */
  async keys(account?: string): Promise<readonly KeyDetails[]> {
    if (account === undefined) return await this.#store.listKeys()
    await this.account(account)
    return await this.#store.listKeys({ account })
  }

  /** `key` is the key's number, or its name if only one key has that name. Changes only the terms that are present. */
  async changeKey(key: string, terms: Partial<KeyTerms>): Promise<KeyDetails> {
    const { id } = await this.#key(key)
    await this.#store.changeKey(id, terms)
    return await this.#key(String(id))
  }

  async #key(numberOrName: string): Promise<KeyDetails> {
    const keys = await this.#store.listKeys({ key: numberOrName })
    const found = keys.find(({ id }) => String(id) === numberOrName) ?? keys[0]
    if (found === undefined)
      throw usageError(
        `Key ${shortened(numberOrName)} does not exist.`,
        'List the keys with `rushes admin key list`.',
      )
    if (keys.length > 1 && String(found.id) !== numberOrName)
      throw usageError(
        `More than one key is named ${numberOrName}: ${keys.map(({ id }) => id).join(', ')}.`,
        'Use the number of the key.',
      )
    return found
  }

  /** A negative amount removes credits; the balance cannot fall below 0. */
  async addCredits(account: string, amount: number): Promise<AccountRecord> {
    await this.#store.addCredits({ account, amount, nowMs: this.#clock.now() }, (after) => {
      if (after < 0)
        throw usageError(`Account ${account} has ${after - amount} credits, so ${-amount} cannot be removed.`)
      // Twice: with room for refunds, without which a run could not fail.
      if (!Number.isSafeInteger(2 * after))
        throw usageError(`The balance of account ${account} would be too large.`)
    })
    return await this.account(account)
  }

  /** Lists the newest runs of all accounts or of one. */
  async runs(account?: string, status?: LocalStatus): Promise<readonly ListedRun[]> {
    const accountId = account === undefined ? undefined : (await this.account(account)).id
    const runs: ListedRun[] = []
    let before: number | undefined
    do {
      // A page has fewer, or none, where many runs have another status.
      const page = { accountId, status, before, limit: MAX_LISTED - runs.length }
      const found = await this.#store.listRuns(page)
      runs.push(...found.runs)
      before = found.next
    } while (before !== undefined && runs.length < MAX_LISTED)
    return runs
  }

  /** Cancels a run of any account and model. A run that has ended stays as it is. */
  async cancelRun(id: string): Promise<StoredRun> {
    const found = await this.#store.cancelRun(id, this.#clock.now())
    const run = found && (await this.#store.findRun(id, found.accountId))
    if (run !== undefined) return run
    throw missingRun(id)
  }

  /** Refunds a failed run whose outcome is unknown. */
  async refundRun(id: string): Promise<void> {
    checkDecided(id, await this.#store.decideUnknown(id, { nowMs: this.#clock.now() }))
  }

  /** Follows a job of the provider as the job of a run whose outcome is unknown. */
  async adoptRun(id: string, jobId: string): Promise<void> {
    if (!/^[^\u0000-\u0020\u007f]{1,256}$/.test(jobId))
      throw usageError('The id of the provider must have 1 to 256 characters, without spaces.')
    const decision = { adopt: { handle: { id: jobId } }, nowMs: this.#clock.now() }
    checkDecided(id, await this.#store.decideUnknown(id, decision), jobId)
  }

  async addUser(written: string, account: string): Promise<UserWithLink> {
    const email = checkedEmail(written)
    const { id: accountId } = await this.account(account)
    const id = await this.#store.addUser({ email, accountId, nowMs: this.#clock.now() })
    if (id === undefined)
      throw usageError(
        `User ${email} already exists.`,
        `For another sign-in link, run \`rushes admin user link ${quoteWord(email)}\`.`,
      )
    return await this.linkUser(email)
  }

  users(): Promise<readonly UserRecord[]> {
    return this.#store.listUsers()
  }

  async removeUser(email: string): Promise<UserRecord> {
    const user = await this.#user(email)
    await this.#store.removeUser(user.id)
    return user
  }

  async linkUser(email: string): Promise<UserWithLink> {
    const user = await this.#user(email)
    return { user, linkToken: await addLink(this.#store, user.id, this.#clock.now()) }
  }

  async #user(written: string): Promise<UserRecord> {
    const email = checkedEmail(written)
    const user = await this.#store.findUser(email)
    if (user !== undefined) return user
    throw usageError(`User ${email} does not exist.`, 'List the users with `rushes admin user list`.')
  }

  /** Also throws when the database is too damaged to read. */
  verify(): ReturnType<Store['verify']> {
    return this.#store.verify()
  }

  /** Copies the database into a new file, which appears under its name only when it is complete. */
  async backup(path: string): Promise<Backup> {
    if (this.#path !== undefined) return await writeBackup(this.#path, path)
    throw usageError(
      'PostgreSQL is backed up with its own tools, not with `rushes admin backup`.',
      'For example `pg_dump --format=custom --schema=rushes` (docs/operations.md).',
    )
  }

  close(): Promise<void> {
    return this.#store.close()
  }
}

const missingRun = (id: string): RushesError =>
  usageError(`Run ${shortened(id)} does not exist.`, 'Check the id, --data and --database.')

function checkDecided(id: string, decided: DecidedRun, jobId = ''): void {
  if (decided === 'missing') throw missingRun(id)
  if (decided === 'taken')
    throw usageError(
      `The job ${shortened(jobId)} belongs to another run.`,
      "Find the job of this run in the provider's list.",
    )
  if (decided === 'no job')
    throw usageError(
      `The server of run ${id} has no jobs: it sends each result with its answer.`,
      `Give the credits back with \`rushes admin run refund ${id}\`.`,
    )
  if (decided === 'other')
    throw usageError(
      `Run ${id} has no unknown outcome, or an operator has decided on it.`,
      'List the runs that need a decision with `rushes admin verify`.',
    )
}

function checkedEmail(written: string): string {
  const email = storedEmail(written)
  if (isEmail(email)) return email
  throw usageError(
    `"${written}" is not a valid email.`,
    'Example: ann@example.com. An email has one @, no spaces, and at most 254 characters.',
  )
}

export interface Backup {
  readonly path: string
  readonly bytes: number
}

/**
 * Copies the database while a service uses it. The files beside it never change, and are copied by other means. Throws
 * `RushesError` (usage) when the file exists or cannot be written, and then leaves no file.
 */
async function writeBackup(database: string, path: string): Promise<Backup> {
  const alreadyExists = () =>
    usageError(`${path} already exists.`, 'Use another name, for example one with the date.')
  if (existsSync(path)) throw alreadyExists()
  const temporary = temporaryBeside(path)
  try {
    const file = await open(temporary, 'wx', 0o600)
    copyDatabase(database, temporary)
    await flush(file).finally(() => file.close())
    await moveWithoutReplacing(temporary, path)
    return { path, bytes: statSync(path).size }
  } catch (error) {
    await removeFile(temporary).catch(() => {})
    if (errorCode(error) === 'EEXIST') throw alreadyExists()
    throw usageError(
      `Cannot write the backup ${describeError(error, path)}.`,
      'No backup was written. Check that the folder is writable and that the disk has space.',
    )
  }
}

/**
 * Copies the database `from` into the empty file `to`. The copy gets its own id, so that the files of the original are foreign to
 * it.
 */
export function copyDatabase(from: string, to: string): void {
  const target = sqliteUri(to, 'rw').replaceAll("'", "''")
  withDatabase(sqliteUri(from, 'rw'), BUSY_TIMEOUT_MS, (source) => source.exec(`VACUUM INTO '${target}'`))
  const id = 'UPDATE format SET database_id = lower(hex(randomblob(16)))'
  withDatabase(sqliteUri(to, 'rw'), BUSY_TIMEOUT_MS, (copy) => copy.exec(id))
}
