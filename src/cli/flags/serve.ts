/** The flags of `rushes serve`; `rushes admin` has some of them too. Functions that check a value throw `usage`. */
import { join, resolve } from 'node:path'
import { Option } from 'commander'
import { usageError } from '../../errors.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { parseDuration } from '../../protocol/units.js'
import type { Storage } from '../../service/files/contract.js'
import { parseFault } from '../../service/http/faults.js'
import type { ModelSources } from '../../service/models/model-set.js'
import type { ServiceOptions } from '../../service/options.js'
import type { NodeRole } from '../../service/rules/names.js'
import { parseNetwork } from '../../service/rules/networks.js'
import { type Env, variable } from '../process/io.js'
import { SERVICE_FOLDER } from '../settings/folders.js'
import type { Terminal } from '../terminal/output.js'
import { wholeNumber } from './values.js'

/** The flags as commander reads them. */
export interface ServeFlags {
  readonly port: string
  readonly host: string
  readonly publicUrl?: string
  readonly data?: string
  readonly concurrency?: string
  /** False with --no-console. */
  readonly console: boolean
  readonly fault?: readonly string[]
  readonly models?: string
  readonly engine?: readonly string[]
  readonly database?: string
  readonly storage?: string
  readonly retain?: string
  readonly role: NodeRole
  readonly bodyLimit: string
  readonly trustProxy?: readonly string[]
  readonly metricsPort?: string
}

/** The flags after validation. */
export interface ServeSettings {
  readonly port: number
  readonly host: string
  readonly metricsPort: number | undefined
  readonly hasConsole: boolean
  readonly concurrency: number | undefined
  readonly storageUrl: string | undefined
  /** Sources of the models that a node of this role offers or renders. */
  readonly models: ModelSources
  readonly service: Pick<
    ServiceOptions,
    | 'dataFolder'
    | 'databaseUrl'
    | 'role'
    | 'publicUrl'
    | 'faults'
    | 'retainMs'
    | 'bodyLimitBytes'
    | 'trustedProxies'
  >
}

export function readFlags(app: ServiceFolders, flags: ServeFlags): ServeSettings {
  const { host, role, publicUrl, concurrency, metricsPort, storage: storageUrl } = flags
  return {
    port: portOf(flags.port, '--port'),
    host,
    metricsPort: metricsPort === undefined ? undefined : portOf(metricsPort, '--metrics-port'),
    hasConsole: flags.console && role !== 'worker',
    concurrency: concurrency === undefined ? undefined : wholeNumber(concurrency, '--concurrency', 1, 64),
    storageUrl,
    models: {
      path: flags.models,
      engines: enginesByKind(flags.engine),
      env: app.env,
      readsEngines: role !== 'api',
    },
    service: {
      dataFolder: resolve(dataFolderOf(flags.data, app)),
      databaseUrl: databaseUrlOf(flags.database, app.env),
      role,
      publicUrl: publicUrl === undefined ? undefined : publicUrlOf(publicUrl),
      faults: flags.fault?.map(parseFault) ?? [],
      retainMs: retainedMs(flags.retain),
      bodyLimitBytes: sizeOf(flags.bodyLimit),
      trustedProxies: networksOf(flags.trustProxy),
    },
  }
}

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

/** Where the data of a service is without a flag. */
interface ServiceFolders {
  readonly env: Env
  readonly stateFolder: string
}

export const dataFolderOf = (flag: string | undefined, { env, stateFolder }: ServiceFolders): string =>
  flag ?? variable(env, 'RUSHES_DATA') ?? join(stateFolder, SERVICE_FOLDER)

function enginesByKind(words: readonly string[] = []): Partial<Record<Kind, string>> {
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
  { env, out }: Terminal,
  url: string | undefined,
): Promise<Storage | undefined> {
  if (url === undefined) return undefined
  const { openS3Storage } = await import('../../service/files/s3-storage.js')
  return await openS3Storage({ url, env, warn: out.warn })
}

export function sizeOf(text: string): number {
  const [, amount = '', unit] = /^(\d{1,9})(MiB)?$/.exec(text) ?? []
  const bytes = Number(amount) * (unit === undefined ? 1 : 1_048_576)
  if (bytes >= 1) return bytes
  throw usageError(`--body-limit: "${text}" is not a valid size.`, 'Examples: 64MiB, 1048576.')
}

const portOf = (text: string, flag: string): number => wholeNumber(text, flag, 0, 65_535)

/** URL of `rushes serve` when it has no flags. */
export const DEFAULT_PUBLIC_URL = `http://${DEFAULTS.host}:${DEFAULTS.port}`

/** Checks the URL and removes slashes at its end, because paths are appended to it. */
export function publicUrlOf(text: string): string {
  // Checks for white space first, because a URL parser ignores line ends and tabs.
  if (/^https?:\/\/[^\s\p{C}@?#]+$/iu.test(text) && URL.canParse(text)) return text.replace(/\/+$/, '')
  // The message does not repeat the URL, which may contain a password.
  throw usageError(
    '--public-url must be an http or https URL without a user name, a query or a fragment.',
    'Examples: https://runs.example.com, https://example.com/runs',
  )
}

const MIN_RETENTION_MS = 60_000

function retainedMs(text: string | undefined): number | undefined {
  if (text === undefined) return undefined
  const ms = parseDuration(text, '--retain', 'Examples: 30d, 12h.')
  if (ms >= MIN_RETENTION_MS) return ms
  throw usageError(
    `--retain: ${text} is too short; the minimum is 1m.`,
    'To keep everything, leave --retain out.',
  )
}

function networksOf(texts: readonly string[] = []): readonly string[] {
  for (const text of texts)
    if (parseNetwork(text) === undefined)
      throw usageError(
        `--trust-proxy: "${text}" is not an IP address or CIDR range.`,
        'Examples: 10.0.0.7, 10.0.0.0/8.',
      )
  return texts
}
