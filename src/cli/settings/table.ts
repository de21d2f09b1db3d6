/**
 * All settings, one row each. A flag overrides the environment, the environment overrides the config file, and the
 * config file overrides the default. An empty environment variable counts as unset. Help, `rushes config` and the docs
 * are generated from this table.
 */
import { resolve } from 'node:path'
import { usageError } from '../../errors.js'
import { DEFAULTS } from '../../protocol/defaults.js'
import { isModelName, type Kind } from '../../protocol/models.js'
import { parseAmount } from '../../protocol/price.js'
import { didYouMean, isQuoted } from '../../protocol/text.js'
import { parseDuration } from '../../protocol/units.js'
import { type Env, variable } from '../process/io.js'
import { type RawProfile, settingOf } from './config-file.js'

/**
 * Environment variables for the API key, in order of precedence. The key is not a setting: no flag or config key sets
 * it.
 */
const KEY_VARIABLES = ['RUSHES_API_KEY', 'RUSHES_API_KEY_FILE', 'RUSHES_API_KEY_COMMAND'] as const

/** The first variable that is set. */
export const keyVariableIn = (env: Env): string | undefined =>
  KEY_VARIABLES.find((name) => variable(env, name) !== undefined)

interface SettingRow {
  readonly about: string
  readonly environment?: string
  /** Key in a profile of the config file. */
  readonly key: string
  readonly default?: string
  /** Throws `usage` for an invalid value. */
  check?(value: string, what: string): void
  /** Returns the value as the config file stores it. */
  stored?(value: string): string
}

const modelName = (value: string, what: string): void => {
  if (isQuoted(value))
    throw usageError(`${what}: the model name ${value} has quotes around it.`, 'Remove the quotes.')
  if (!isModelName(value))
    throw usageError(
      `${what}: "${value}" is not a valid model name.`,
      'A model name has the form <provider>/<name>, for example acme/still-1.',
    )
}

const ON = ['on', 'true', 'yes', '1']
const OFF = ['off', 'false', 'no', '0']

/** Parses a switch: on and off, true and false, yes and no, 1 and 0. Throws `usage` for any other value. */
export function isOn(value: string, what = 'local'): boolean {
  const word = value.toLowerCase()
  if (ON.includes(word)) return true
  if (OFF.includes(word)) return false
  throw usageError(`${what}: "${value}" is not a valid value.`, 'Use on or off.')
}

const amount = (value: string, what: string): void => {
  if (parseAmount(value) === undefined)
    throw usageError(
      `${what}: "${value}" is not an amount.`,
      'Use a number with at most six decimals, such as 12.50.',
    )
}

export const SETTINGS = {
  baseUrl: {
    about: 'URL of the service',
    environment: 'RUSHES_BASE_URL',
    key: 'baseUrl',
  },
  videoModel: {
    about: 'Video model, as provider/name',
    environment: 'RUSHES_VIDEO_MODEL',
    key: 'models.video',
    check: modelName,
  },
  imageModel: {
    about: 'Image model, as provider/name',
    environment: 'RUSHES_IMAGE_MODEL',
    key: 'models.image',
    check: modelName,
  },
  timeout: {
    about: 'How long to wait for a run; 0 for no limit',
    environment: 'RUSHES_TIMEOUT',
    key: 'timeout',
    default: DEFAULTS.timeout,
    check: (value, what) => void parseDuration(value, what),
  },
  local: {
    about: 'Always use the local service, as `--local` does: on or off',
    environment: 'RUSHES_LOCAL',
    key: 'local',
    default: 'off',
    check: (value, what) => void isOn(value, what),
  },
  localModels: {
    about: 'File or folder with the models of the local service; default: its previews',
    key: 'local.models',
    stored: (value) => resolve(value),
  },
  prices: {
    about: 'Prices by model, as JSON, @file or -; they override those of the model files',
    key: 'prices',
  },
  currency: {
    about: 'Currency of the prices of this profile, such as USD',
    key: 'currency',
    default: 'credits',
    check(value, what) {
      if (!/^[^\s\p{C}]{1,16}$/u.test(value))
        throw usageError(
          `${what}: "${value}" is not a valid currency.`,
          'Use one word of at most 16 characters, such as USD.',
        )
    },
  },
  maxCost: {
    about: 'Refuse to create runs whose estimate is higher, or without a price',
    environment: 'RUSHES_MAX_COST',
    key: 'maxCost',
    check: amount,
  },
  maxCostPerDay: {
    about: 'Refuse to create runs if the estimates of 24 hours, of all commands together, would be higher',
    environment: 'RUSHES_MAX_COST_PER_DAY',
    key: 'maxCostPerDay',
    check: amount,
  },
  failureStatuses: {
    about: 'More statuses that mean failure, separated by commas',
    environment: 'RUSHES_FAILURE_STATUSES',
    key: 'failureStatuses',
  },
  runIdField: {
    about: 'Path of the run id in the response to a create, for example data.run.id',
    key: 'runIdField',
  },
  apiKeyCommand: {
    about: 'Command that prints the API key on its first line',
    environment: 'RUSHES_API_KEY_COMMAND',
    key: 'apiKeyCommand',
  },
} as const satisfies Record<string, SettingRow>

export type SettingName = keyof typeof SETTINGS

export const SETTING_NAMES = Object.keys(SETTINGS) as readonly SettingName[]

/** The setting with the model of a kind, for command lines without a model. */
export const modelSetting = (kind: Kind) => SETTINGS[`${kind}Model` as const]

/** Address of the local service in the journal. Its real URL has another port in every process. */
export const LOCAL_ADDRESS = 'local'

const ROWS: readonly SettingRow[] = Object.values(SETTINGS)

/** Keys of `rushes config`, in the order of the table. */
export const CONFIG_KEYS: readonly string[] = ROWS.map(({ key }) => key)

/** Returns the row of a config key. For an unknown key, throws `usage` and suggests the most similar key. */
export function settingOfKey(key: string): SettingRow {
  if (/^api_?key$/i.test(key))
    throw usageError(
      'The API key is not a setting: `rushes config` neither shows nor changes it.',
      'Store it with `rushes login`, and remove it with `rushes logout`.',
    )
  const found = ROWS.find((row) => row.key === key)
  if (found !== undefined) return found
  throw usageError(
    `Unknown setting "${key}".${didYouMean(key, CONFIG_KEYS)}`,
    `Settings: ${CONFIG_KEYS.join(', ')}.`,
  )
}

interface SettingSources {
  readonly flag?: string | undefined
  readonly env: Env
  profile(): RawProfile
}

const kebabCase = (name: string): string => name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)

/** Reads the value of a setting. Undefined when it is not set and has no default. Throws `usage` for an invalid value. */
export function readSetting(name: SettingName, { flag, env, profile }: SettingSources): string | undefined {
  const { environment = '', key, default: byDefault, check }: SettingRow = SETTINGS[name]
  const sources: readonly (readonly [source: string, value: string | undefined])[] = [
    [`--${kebabCase(name)}`, flag],
    [environment, variable(env, environment)],
    [`the config file (${key})`, settingOf(profile(), key)],
    ['default', byDefault],
  ]
  const [source = '', value] = sources.find(([, each]) => each !== undefined) ?? []
  if (value !== undefined) check?.(value, source)
  return value
}
