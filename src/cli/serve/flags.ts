/** The flags of `rushes serve`; `rushes admin` has some of them too. Functions that check a value throw `usage`. */
import { join } from 'node:path'
import { Option } from 'commander'
import { usageError } from '../../errors.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { shortened } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import type { Storage } from '../../service/files/contract.js'
import type { ModelSources } from '../../service/models/model-set.js'
import type { NodeRole } from '../../service/rules/names.js'
import { parseNetwork } from '../../service/rules/networks.js'
import type { Context } from '../context/context.js'
import { repeated, wholeNumber } from '../flags/values.js'
import { type Env, variable } from '../process/io.js'
import { SERVICE_FOLDER } from '../settings/folders.js'

const DATABASE_VARIABLE = 'RUSHES_DATABASE_URL'

export const databaseOption = (): Option =>
  new Option(
    '--database <url>',
    `PostgreSQL database of the service, postgres://… (default: ${DATABASE_VARIABLE}, else SQLite in the data folder)`,
  )

/**
 * The URL from the flag, or else from the variable, which keeps a password out of the list of processes. The store
 * checks the URL.
 */
export const databaseUrlOf = (flag: string | undefined, env: Env): string | undefined =>
  flag ?? variable(env, DATABASE_VARIABLE)

export const dataFolderOf = (flag: string | undefined, { env, stateFolder }: Context): string =>
  flag ?? variable(env, 'RUSHES_DATA') ?? join(stateFolder, SERVICE_FOLDER)

export interface EngineFlags {
  readonly models?: string
  readonly engine?: readonly string[]
  readonly engineTimeout: string
}

export const engineOptions = (): readonly Option[] => [
  new Option(
    '--models <path>',
    'Models to serve: a YAML or JSON file, or a folder of *.yaml files (default: previews)',
  ),
  new Option(
    '--engine <kind=engine>',
    'Engine of a kind, video or image: a command, or a server such as images:<url> (repeatable)',
  ).argParser(repeated),
  new Option('--engine-timeout <duration>', 'Time limit for one run, except for previews; 0 for no limit')
    .default(DEFAULTS.engineTimeout)
    .helpGroup('Engine options:'),
]

/** Returns the sources of the models that a node of this role offers or renders. */
export function modelSourcesOf(
  { models, engine = [], engineTimeout }: EngineFlags,
  env: Env,
  role: NodeRole,
): ModelSources {
  const limitMs = parseDuration(engineTimeout, '--engine-timeout')
  return {
    path: models,
    engines: enginesByKind(engine),
    env,
    timeoutMs: limitMs === 0 ? Number.POSITIVE_INFINITY : limitMs,
    readsEngines: role !== 'api',
  }
}

function enginesByKind(words: readonly string[]): Partial<Record<Kind, string>> {
  const found: Partial<Record<Kind, string>> = {}
  for (const word of words) {
    const [, name = '', value = ''] = /^([^=]*)=(.*)$/s.exec(word) ?? []
    const kind = KINDS.find((each) => each === name)
    if (kind === undefined || value.trim() === '')
      throw usageError(
        `--engine: "${word}" must have the form ${KINDS.map((each) => `${each}=<value>`).join(' or ')}.`,
        'Example: --engine video=./my-model.sh',
      )
    if (found[kind] !== undefined) throw usageError(`--engine is given twice for ${kind}.`)
    found[kind] = value
  }
  return found
}

/**
 * Opens the storage of the flag, or returns undefined without the flag. Loads the AWS SDK. Also throws `usage` when the
 * storage refuses an operation that the service needs.
 */
export async function openStorage(
  { env, out }: Context,
  url: string | undefined,
): Promise<Storage | undefined> {
  if (url === undefined) return undefined
  const { openS3Storage } = await import('../../service/files/s3-storage.js')
  return await openS3Storage({ url, env, warn: out.warn })
}

const MIN_RETENTION_MS = 60_000

const SIZE_UNITS: Readonly<Record<string, number>> = {
  '': 1,
  b: 1,
  kib: 1024,
  mib: 1024 ** 2,
  gib: 1024 ** 3,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
}

export function sizeOf(text: string): number {
  const [, amount = '', unit = ''] = /^(\d+(?:\.\d+)?)\s*([a-z]*)$/i.exec(text.trim()) ?? []
  const factor = SIZE_UNITS[unit.toLowerCase()]
  const bytes = Math.round(Number(amount) * (factor ?? Number.NaN))
  if (amount !== '' && bytes >= 1) return bytes
  throw usageError(`--body-limit: "${text}" is not a valid size.`, 'Examples: 64MiB, 500kB, 1048576.')
}

export const portOf = (text: string, flag: string): number => wholeNumber(text, flag, 0, 65_535)

/** URL of `rushes serve` when it has no flags. */
export const DEFAULT_PUBLIC_URL = `http://${DEFAULTS.host}:${DEFAULTS.port}`
/** File in the data folder with the base URL of the last start, for the links of `rushes admin user`. */
export const URL_FILE = 'public-url'

/** Checks the URL and removes slashes at its end, because paths are appended to it. */
export function publicUrlOf(text: string): string {
  const problem = publicUrlProblem(text)
  if (problem === undefined) return text.replace(/\/+$/, '')
  throw usageError(
    `--public-url: ${problem}.`,
    'Examples: https://runs.example.com, https://example.com/runs',
  )
}

function publicUrlProblem(text: string): string | undefined {
  // Checks for white space first, because a URL parser ignores line ends and tabs.
  if (!/^https?:\/\/[^\s\p{C}]+$/iu.test(text) || !URL.canParse(text))
    return `"${shortened(text)}" is not an http or https URL`
  const { username, password } = new URL(text)
  // The message does not repeat the URL, which contains a password.
  if (username !== '' || password !== '') return 'the URL must not contain a user name or a password'
  if (/[?#]/.test(text)) return `"${shortened(text)}" must not contain a query or a fragment`
  return undefined
}

export function retainedMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text, '--retain', 'Examples: 30d, 12h.')
  if (ms >= MIN_RETENTION_MS) return ms
  throw usageError(
    `--retain: ${text} is too short; the minimum is 1m.`,
    'To keep everything, leave --retain out.',
  )
}

export function networksOf(texts: readonly string[] = []): readonly string[] {
  for (const text of texts)
    if (parseNetwork(text) === undefined)
      throw usageError(
        `--trust-proxy: "${text}" is not an IP address or CIDR range.`,
        'Examples: 10.0.0.7, 10.0.0.0/8.',
      )
  return texts
}
