/**
 * Every setting, one row each. A flag overrides the environment, which overrides the config file and the default; an
 * empty environment variable counts as unset. Help, `rushes config` and the docs are projections of this table.
 */
import { usageError } from '../../errors.js'
import { isModelName } from '../../protocol/models.js'
import { nearest } from '../../protocol/nearest.js'
import { parseDuration } from '../flags/duration.js'
import type { Env } from '../process/io.js'

/** Variables for the API key, by precedence. The key is not a setting: there is no flag and no config key for it. */
export const KEY_VARIABLES = ['RUSHES_API_KEY', 'RUSHES_API_KEY_FILE', 'RUSHES_API_KEY_COMMAND'] as const

interface Setting {
  readonly about: string
  readonly environment?: string
  /** Its key in a profile of the config file; undefined when it cannot be set there. */
  readonly key?: string
  readonly default?: string
  /** Throws `usage` for an invalid value. */
  check?(value: string, what: string): void
}

const modelName = (value: string, what: string): void => {
  if (!isModelName(value)) throw usageError(`${what}: "${value}" is not of the form <provider>/<name>.`)
}

/** A first check; the client checks addresses in full. */
const address = (value: string, what: string): void => {
  if (!/^https?:\/\/./i.test(value) || !URL.canParse(value))
    throw usageError(`${what}: "${value}" is no address.`, 'An address looks like https://api.example.com.')
}

export const SETTINGS = {
  baseUrl: {
    about: 'address of the service',
    environment: 'RUSHES_BASE_URL',
    key: 'baseUrl',
    check: address,
  },
  videoModel: {
    about: 'identifier of the video model',
    environment: 'RUSHES_VIDEO_MODEL',
    key: 'models.video',
    check: modelName,
  },
  imageModel: {
    about: 'identifier of the image model',
    environment: 'RUSHES_IMAGE_MODEL',
    key: 'models.image',
    check: modelName,
  },
  timeout: {
    about: 'how long to wait for a run; 0 waits for ever',
    environment: 'RUSHES_TIMEOUT',
    key: 'timeout',
    default: '30m',
    check: (value, what) => void parseDuration(value, what),
  },
  failureStatuses: {
    about: 'further statuses that mean failure, separated by commas',
    environment: 'RUSHES_FAILURE_STATUSES',
    key: 'failureStatuses',
  },
  runIdField: { about: 'where the run id stands in the answer to a create, with dots', key: 'runIdField' },
  apiKeyCommand: {
    about: 'command whose first line of output is the API key',
    environment: 'RUSHES_API_KEY_COMMAND',
    key: 'apiKeyCommand',
  },
} as const satisfies Record<string, Setting>

export type SettingName = keyof typeof SETTINGS

/** Variables that are not settings: folders, the profile, and the key itself. */
export const FURTHER_ENVIRONMENT = {
  RUSHES_API_KEY: 'the API key',
  RUSHES_API_KEY_FILE: 'a file whose first line is the API key; a warning when others can read it',
  RUSHES_PROFILE: 'the profile of the config file, where `--profile` does not name one',
  RUSHES_CONFIG_DIR: 'the folder of the config file',
  RUSHES_STATE_DIR:
    'the folder of what rushes remembers: the [journal](journal.md), the shared limit, the data of the local service',
  RUSHES_ALLOW_HTTP: '`1` allows plain http to other machines: the key then travels in clear',
} as const

/** Common variables that other programs use too. */
export const SHARED_ENVIRONMENT = {
  NO_COLOR: 'when set, no colour; goes before `FORCE_COLOR`',
  FORCE_COLOR: 'when set, colour also where there is no terminal; `0` or `false` turns it off',
  CI: 'when set, lines in place of the spinner',
  TERM: '`dumb`: neither colour nor spinner',
  'LC_ALL, LC_CTYPE, LANG':
    'the first that is set; where it names another character set than UTF-8, what is drawn is ASCII',
  'HTTPS_PROXY, HTTP_PROXY, NO_PROXY':
    'the proxy, in capitals or small letters; loopback never goes through one',
  NODE_COMPILE_CACHE:
    'Node 22.8 and later: the folder in which Node keeps compiled code; default `node-compile-cache` in the temporary folder',
  NODE_DISABLE_COMPILE_CACHE: 'when set, Node keeps no compiled code',
  TMPDIR: 'where `-o -` keeps an output until it is whole',
  'XDG_CONFIG_HOME, XDG_STATE_HOME': 'on Linux, where the folders below are',
} as const

/** The journal's address for `--local`, whose port changes with every process. */
export const LOCAL_ADDRESS = 'local'

const rows = Object.entries(SETTINGS) as [SettingName, Setting][]

/** The keys of `rushes config`, in the order of the table. */
export const CONFIG_KEYS: readonly string[] = rows.flatMap(([, { key }]) => (key === undefined ? [] : [key]))

/** The row of a config key. Throws `usage` with the nearest key. */
export function settingOfKey(key: string): Setting {
  if (/^api_?key$/i.test(key))
    throw usageError(
      'The API key is not set this way: it would stay in the shell history.',
      'Store it with: rushes login.',
    )
  const found = rows.find(([, setting]) => setting.key === key)
  if (found !== undefined) return found[1]
  const near = nearest(key, CONFIG_KEYS)
  throw usageError(
    `There is no setting "${key}"${near === undefined ? '' : `; the nearest is ${near}`}.`,
    `The settings: ${CONFIG_KEYS.join(', ')}.`,
  )
}

/** An environment variable, where empty counts as unset. */
export const variable = (env: Env, name: string): string | undefined => env[name] || undefined

export interface SettingSources {
  readonly flag?: string | undefined
  readonly env: Env
  /** The values of the profile by config key. */
  readonly file: Readonly<Record<string, string>>
}

export interface SettingValue {
  readonly value: string
  /** For messages: `--base-url`, `RUSHES_BASE_URL`, `the config file`. */
  readonly from: string
}

/** The value of a setting and its source; undefined when it is not set and has no default. */
export function findSetting(
  name: SettingName,
  { flag, env, file }: SettingSources,
): SettingValue | undefined {
  const setting: Setting = SETTINGS[name]
  const candidates: readonly (readonly [string | undefined, string])[] = [
    [flag, 'the command line'],
    [
      setting.environment === undefined ? undefined : variable(env, setting.environment),
      setting.environment ?? '',
    ],
    [setting.key === undefined ? undefined : file[setting.key], `the config file (${setting.key})`],
    [setting.default, 'the default'],
  ]
  for (const [value, from] of candidates) {
    if (value === undefined) continue
    setting.check?.(value, from === 'the command line' ? name : from)
    return { value, from }
  }
  return undefined
}
