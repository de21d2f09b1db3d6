/**
 * Names on this machine that can be completed: runs, models, profiles, accounts. What cannot be read is left out. Uses no
 * key and no network, and creates no file.
 */
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { parseBaseUrl } from '../../client/service-access.js'
import type { RecentRun } from '../../journal/readonly-queries.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { printable, shortened } from '../../protocol/text.js'
import { DATABASE_NAME } from '../../service/data-folders.js'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import { profileIn, profilesIn, settingsOf } from '../settings/config-file.js'
import { configPath, foldersOf, JOURNAL_FILE, SERVICE_FOLDER } from '../settings/folders.js'
import { MODEL_SETTINGS } from '../settings/required-settings.js'
import {
  CONFIG_KEYS,
  findSetting,
  isLocal,
  LOCAL_ADDRESS,
  type SettingName,
  variable,
} from '../settings/table.js'

export interface Completion {
  readonly value: string
  readonly about: string
}

export interface RunName extends RecentRun {
  /** One printable line. */
  readonly about: string
}

export interface LocalNames {
  /** The newest runs of the current address; of all addresses when none is set. */
  runs(): Promise<readonly RunName[]>
  everyRun(): Promise<readonly RunName[]>
  models(kind: Kind | undefined): Promise<readonly Completion[]>
  profiles(): Promise<readonly Completion[]>
  /** Accounts and key numbers of the local service in the state folder. */
  service(): Promise<{ readonly accounts: readonly Completion[]; readonly keys: readonly Completion[] }>
  /** Emails of the console's users there. */
  users(): Promise<readonly Completion[]>
}

const MAX_RUNS = 1_000
const ABOUT_LENGTH = 60

/** Ids and statuses come from a server: only those without characters special to a shell are offered. */
const isPlainWord = (text: string): boolean => /^[\w.~][\w.:~@+/-]*$/.test(text)

const readOr = async <Value>(otherwise: Value, read: () => Promise<Value> | Value): Promise<Value> => {
  try {
    return await read()
  } catch {
    return otherwise
  }
}

export function createLocalNames(env: Env, globals: Globals): LocalNames {
  const folders = foldersOf(env)
  const serviceDatabase = join(folders.state, SERVICE_FOLDER, DATABASE_NAME)

  /** Without `conf`, whose loading takes half of the start-up time. */
  const configFile = (): Promise<unknown> =>
    readOr(undefined, () => JSON.parse(readFileSync(configPath(folders.config), 'utf8')))

  const file = async (): Promise<Readonly<Record<string, string>>> => {
    const profile = globals.profile ?? variable(env, 'RUSHES_PROFILE') ?? 'default'
    return settingsOf(profileIn(await configFile(), profile), CONFIG_KEYS)
  }

  const setting = (name: SettingName, flag?: string): Promise<string | undefined> =>
    readOr(undefined, async () => findSetting(name, { flag, env, file: await file() })?.value)

  const address = async (): Promise<string | undefined> => {
    if (await readOr(false, () => isLocal({ globals, env, file }))) return LOCAL_ADDRESS
    const text = await setting('baseUrl', globals.baseUrl)
    return text === undefined ? undefined : readOr(undefined, () => parseBaseUrl(text, { allowHttp: true }))
  }

  const everyRun = (): Promise<readonly RunName[]> =>
    readOr<readonly RunName[]>([], async () => {
      const path = join(folders.state, JOURNAL_FILE)
      // Loading the database takes as long as everything else here.
      if (!existsSync(path)) return []
      const { readRecentRuns } = await import('../../journal/readonly-queries.js')
      return readRecentRuns(path, MAX_RUNS)
        .filter(({ name, status }) => isPlainWord(name) && isPlainWord(status))
        .map((run) => ({ ...run, about: aboutOf(run) }))
    })

  return {
    everyRun,
    async runs() {
      const here = await address()
      const all = await everyRun()
      return here === undefined ? all : all.filter((run) => run.address === here)
    },
    async models(kind) {
      const isMeant = (each: string | undefined) => kind === undefined || each === kind
      const set = await Promise.all(KINDS.filter(isMeant).map((each) => setting(MODEL_SETTINGS[each])))
      const used = (await everyRun()).filter((run) => isMeant(run.kind)).map(({ model }) => model)
      const names = [...set, ...used].filter((name) => name !== undefined && isPlainWord(name))
      return [...new Set(names)].map((value) => ({ value: value ?? '', about: '' }))
    },
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

const aboutOf = ({ status, kind, prompt }: RecentRun): string =>
  shortened(
    printable([status, kind, prompt].filter((each) => each !== undefined && each !== '').join(' ')),
    ABOUT_LENGTH,
  )
