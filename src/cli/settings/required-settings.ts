/**
 * Settings that a command requires: the service URL, the key and the models. One error reports all that are missing.
 */
import { RushesError, usageError } from '../../errors.js'
import { KINDS, type Kind, type ModelDocument } from '../../protocol/models.js'
import { didYouMean } from '../../protocol/text.js'
import { SETTINGS, type SettingName } from './table.js'

/** A setting that a command needs and that is not set. */
export interface Missing {
  readonly code: 'no_base_url' | 'no_api_key' | 'usage'
  readonly text: string
  readonly hint: string
}

export const NO_BASE_URL: Missing = {
  code: 'no_base_url',
  text: 'service URL',
  hint:
    'Set the service URL with --base-url <url>, RUSHES_BASE_URL or `rushes config set baseUrl <url>`. ' +
    'To try rushes without a service, or for local runs, add --local.',
}

export const noKey = (baseUrl?: string): Missing => ({
  code: 'no_api_key',
  text: baseUrl === undefined ? 'API key' : `API key for ${new URL(baseUrl).origin}`,
  hint: 'Set the key with `rushes login`, RUSHES_API_KEY, RUSHES_API_KEY_FILE or RUSHES_API_KEY_COMMAND.',
})

/** Creates one error for all missing settings, so that the user can fix them together. */
export function missingError(missing: readonly Missing[]): RushesError {
  const code = missing.find((each) => each.code !== 'no_api_key')?.code ?? 'no_api_key'
  return new RushesError(code, `Not set: ${missing.map(({ text }) => text).join(', ')}.`, {
    hint: missing.map(({ hint }) => hint).join('\n  '),
  })
}

/** Throws `usage` for a profile that is not in the config file. */
export function checkProfile(name: string, known: readonly string[]): void {
  if (known.includes(name)) return
  throw usageError(
    `The config file has no profile "${name}".${didYouMean(name, known)}`,
    `Profiles: ${known.join(', ')}. Create one with \`rushes login --profile <name>\` or \`rushes config set <key> <value> ` +
      `--profile <name>\`.`,
  )
}

/** Setting with the model of each kind, for command lines without a model. */
export const MODEL_SETTINGS = {
  video: 'videoModel',
  image: 'imageModel',
} as const satisfies Record<Kind, SettingName>

/** Parts of the command's context that are used to find a model. */
interface ModelSource {
  readonly globals: { readonly local: boolean }
  setting(name: SettingName): string | undefined
  models(): Promise<{ defaultOf(kind: Kind): ModelDocument | undefined }>
}

/**
 * Returns the model of a kind: with `--local`, the default model of the local service. Undefined when no setting has a
 * model.
 */
export const modelFor = async (
  { globals, setting, models }: ModelSource,
  kind: Kind,
): Promise<string | undefined> =>
  globals.local ? (await models()).defaultOf(kind)?.name : setting(MODEL_SETTINGS[kind])

/** Returns the models of the kinds that have one. */
export async function modelsByKind(source: ModelSource): Promise<Readonly<Partial<Record<Kind, string>>>> {
  const models: Partial<Record<Kind, string>> = {}
  for (const kind of KINDS) {
    const model = await modelFor(source, kind)
    if (model !== undefined) models[kind] = model
  }
  return models
}

/** Creates the entry for a missing model. `hintOf` receives the setting's environment variable and config key. */
export function missingModel(kind: Kind, hintOf: (environment: string, key: string) => string): Missing {
  const { environment, key } = SETTINGS[MODEL_SETTINGS[kind]]
  return { code: 'usage', text: `${kind} model`, hint: hintOf(environment, key) }
}

/** Creates the error for a model of another kind. `isTyped`: whether it is on the line, and not from a setting. */
export function wrongKind({ name, kind }: ModelDocument, wanted: Kind, isTyped: boolean): RushesError {
  if (isTyped)
    return usageError(`${name} is a model of kind ${kind}.`, `Use \`rushes run ${kind} --model ${name}\`.`)
  const { environment, key } = SETTINGS[MODEL_SETTINGS[wanted]]
  return usageError(
    `The ${wanted} model is set to ${name}, which is a model of kind ${kind}.`,
    `Change ${environment} or run \`rushes config set ${key} <provider/name>\`, or add --model <provider/name>.`,
  )
}
