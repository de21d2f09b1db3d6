/**
 * Names on this machine for completion: runs, models, profiles. Skips what cannot be read. Uses no key and no
 * network, and creates no file.
 */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { RecentRun } from '../../journal/readonly-queries.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { printable, shortened } from '../../protocol/text.js'
import type { Globals } from '../flags/globals.js'
import type { Env } from '../process/io.js'
import { settingsOf } from '../settings/config-file.js'
import { foldersOf, JOURNAL_FILE } from '../settings/folders.js'
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
  const { config, setting, address } = createQuickSettings(env, globals)

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
    profiles: () =>
      readOr([], async () => {
        const names = (await config.profiles()).filter(
          (name) => name !== '' && name === printable(name) && !name.startsWith('-'),
        )
        return Promise.all(
          names.map(async (value) => {
            const { baseUrl = '' } = settingsOf(await config.read(value), ['baseUrl'])
            return { value, about: baseUrl }
          }),
        )
      }),
  }
}

const describeRun = ({ status, kind, prompt }: RecentRun): string =>
  shortened(
    printable([status, kind, prompt].filter((each) => each !== undefined && each !== '').join(' ')),
    ABOUT_LENGTH,
  )
