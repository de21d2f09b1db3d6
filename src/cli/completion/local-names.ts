/**
 * Names on this machine for completion: runs, models, profiles, accounts. Skips what cannot be read. Uses no key and no
 * network, and creates no file.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { RecentRun } from '../../journal/readonly-queries.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { printable, shortened } from '../../protocol/text.js'
import { DATABASE_NAME } from '../../service/data-folders.js'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import { profileIn, profilesIn, settingsOf } from '../settings/config-file.js'
import { foldersOf, JOURNAL_FILE, SERVICE_FOLDER } from '../settings/folders.js'
import { createQuickSettings, readOr } from '../settings/quick-settings.js'
import { MODEL_SETTINGS } from '../settings/required-settings.js'

export interface Completion {
  readonly value: string
  readonly about: string
}

export interface RunName extends RecentRun {
  /** Description on one line, without control characters. */
  readonly about: string
}

export interface LocalNames {
  /** The newest runs of the current address, or of all addresses if no address is set. */
  runs(): Promise<readonly RunName[]>
  everyRun(): Promise<readonly RunName[]>
  labels(): Promise<readonly string[]>
  models(kind: Kind | undefined): Promise<readonly Completion[]>
  /** Names of the models that `rushes models add` stored. */
  added(): Promise<readonly string[]>
  profiles(): Promise<readonly Completion[]>
  /** Accounts and key numbers of the local service whose data is in the state folder. */
  service(): Promise<{ readonly accounts: readonly Completion[]; readonly keys: readonly Completion[] }>
  /** Emails of the console users of that local service. */
  users(): Promise<readonly Completion[]>
}

const MAX_RUNS = 1_000
const ABOUT_LENGTH = 60

/**
 * Whether a text is safe in a shell. Ids and statuses come from a server, so only those without special characters are
 * suggested.
 */
export const isPlainWord = (text: string): boolean => /^[\w.~][\w.:~@+/-]*$/.test(text)

/**
 * Whether a text is safe in each kind of quotes: labels have spaces and any letters, and inside an open quote the shell
 * inserts them unquoted. A colon at the beginning marks the last line of the output.
 */
const isSafeInQuotes = (text: string): boolean => !/^:|["'$`\\!\p{C}]/u.test(text)

export function createLocalNames(env: Env, globals: Globals): LocalNames {
  const folders = foldersOf(env)
  const serviceDatabase = join(folders.state, SERVICE_FOLDER, DATABASE_NAME)
  const { configFile, setting, address } = createQuickSettings(env, globals)

  const fromJournal = <Found>(
    read: (queries: typeof import('../../journal/readonly-queries.js'), path: string) => readonly Found[],
  ) =>
    readOr<readonly Found[]>([], async () => {
      const path = join(folders.state, JOURNAL_FILE)
      // Without a journal, the database code is not loaded: loading it takes as long as everything else here.
      return existsSync(path) ? read(await import('../../journal/readonly-queries.js'), path) : []
    })

  const everyRun = (): Promise<readonly RunName[]> =>
    fromJournal(({ readRecentRuns }, path) =>
      readRecentRuns(path, MAX_RUNS)
        .filter(({ name, status }) => isPlainWord(name) && isPlainWord(status))
        .map((run) => ({ ...run, about: describeRun(run) })),
    )

  const documents = (): Promise<readonly ModelDocument[]> =>
    readOr([], async () => {
      const { openModels } = await import('../models/known-models.js')
      return (await openModels({ env, globals })).list().map(({ document }) => document)
    })

  return {
    everyRun,
    labels: () => fromJournal(({ readLabels }, path) => readLabels(path, MAX_RUNS).filter(isSafeInQuotes)),
    async runs() {
      const currentAddress = await address()
      const all = await everyRun()
      return currentAddress === undefined ? all : all.filter((run) => run.address === currentAddress)
    },
    async models(kind) {
      const matchesKind = (each: string | undefined) => kind === undefined || each === kind
      const set = await Promise.all(KINDS.filter(matchesKind).map((each) => setting(MODEL_SETTINGS[each])))
      const used = (await everyRun()).filter((run) => matchesKind(run.kind)).map(({ model }) => model)
      const known = (await documents()).filter((each) => matchesKind(each.kind))
      const abouts = new Map(
        known.map(({ name, input }) => [name, shortened(printable(input.description), ABOUT_LENGTH)]),
      )
      const names = [...set, ...abouts.keys(), ...used].filter((name) => name !== undefined)
      return [...new Set(names)]
        .filter(isPlainWord)
        .map((value) => ({ value, about: abouts.get(value) ?? '' }))
    },
    added: () =>
      readOr([], async () => {
        const { listAdded } = await import('../models/added-models.js')
        return listAdded(folders.config)
          .documents.map(({ name }) => name)
          .filter(isPlainWord)
      }),
    async profiles() {
      const file = await configFile()
      return Object.keys(profilesIn(file))
        .filter((value) => value !== '' && value === printable(value) && !value.startsWith('-'))
        .map((value) => ({ value, about: settingsOf(profileIn(file, value), ['baseUrl']).baseUrl ?? '' }))
    },
    service: () =>
      readOr({ accounts: [], keys: [] }, async () => {
        if (!existsSync(serviceDatabase)) return { accounts: [], keys: [] }
        const { readAccountNames } = await import('../../service/store/sqlite/account-names.js')
        const { accounts, keys } = readAccountNames(serviceDatabase)
        return {
          accounts: accounts
            .filter(({ name }) => isPlainWord(name))
            .map(({ name, balance }) => ({ value: name, about: `${balance} credits` })),
          keys: keys.map(({ id, name, account }) => ({
            value: String(id),
            about: shortened(printable(`${name} of ${account}`), ABOUT_LENGTH),
          })),
        }
      }),
    users: () =>
      readOr([], async () => {
        if (!existsSync(serviceDatabase)) return []
        const { readUsers } = await import('../../service/store/sqlite/account-names.js')
        return readUsers(serviceDatabase)
          .filter(({ email }) => isPlainWord(email))
          .map(({ email, account }) => ({ value: email, about: account }))
      }),
  }
}

const describeRun = ({ status, kind, prompt }: RecentRun): string =>
  shortened(
    printable([status, kind, prompt].filter((each) => each !== undefined && each !== '').join(' ')),
    ABOUT_LENGTH,
  )
