/**
 * `rushes login`: reads the key from a hidden prompt or standard input, or gets it from the service's console. Checks
 * the key and stores it.
 */
import { randomBytes } from 'node:crypto'
import { type Command, Option } from 'commander'
import type { ApiClient } from '../../client/index.js'
import { parseApiKey } from '../../client/service-access.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { readModelDocument } from '../../protocol/model-document.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import type { ServiceModels, WebLogin } from '../login/web-login.js'
import type { AskService } from '../models/known-models.js'
import { emptyStdin } from '../process/io.js'
import { type RawProfile, settingsOf, storedKeyOf, withValue } from '../settings/config-file.js'
import type { ListOwner } from '../settings/folders.js'
import { MAX_LINE_BYTES } from '../settings/key.js'
import { MODEL_SETTINGS } from '../settings/required-settings.js'
import { SETTINGS, variable } from '../settings/table.js'

/** They come before the stored key. */
const KEY_VARIABLES = ['RUSHES_API_KEY', 'RUSHES_API_KEY_FILE', 'RUSHES_API_KEY_COMMAND']

export interface LoginOptions {
  readonly verify: boolean
  readonly web?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, logIn = loginCommand): void {
  command
    .addOption(new Option('--no-verify', 'Store the key without checking it at the service'))
    .addOption(
      new Option(
        '--web',
        "Sign in on the service's console in a browser of this machine, which creates a key",
      ),
    )
    .action((flags: LoginOptions) =>
      run(command, (ctx) => logIn(ctx, flags), {
        createsProfile: true,
        ignoresLocal: true,
      }),
    )
}

export async function loginCommand(ctx: Context, { verify, web = false }: LoginOptions): Promise<number> {
  if (ctx.globals.local)
    throw usageError('--local needs no API key.', 'Try `rushes run image --local "a red fox"`.')
  const baseUrl = await ctx.baseUrl()
  const { origin } = new URL(baseUrl)
  const { apiKey, models } = await (web ? webKey(ctx, baseUrl) : typedKey(ctx, origin))
  const listed = verify ? await checkKey(ctx, baseUrl, apiKey) : undefined
  const offered = listed === undefined ? { models, unclear: [] } : defaultsIn(listed)
  let added: readonly ModelSetting[] = []
  let unclear: readonly string[] = []
  await ctx.config.update(ctx.profileName, (profile) => {
    const kinds = KINDS.filter((kind) => takesModel(profile, kind, origin))
    added = newModels(profile, offered.models, kinds)
    unclear = kinds.filter((kind) => offered.unclear.includes(kind)).map(modelKey)
    const withKey = withValue(profile, 'apiKey', { value: apiKey, origin })
    const withAddress = ctx.globals.baseUrl === undefined ? withKey : withValue(withKey, 'baseUrl', baseUrl)
    return added.reduce((all, [key, model]) => withValue(all, key, model), withAddress)
  })
  ctx.out.note(
    `${verify ? 'The service accepted the API key.' : 'The API key was not checked.'} Stored for ${origin} in ` +
      `${ctx.config.path}.`,
  )
  if (ctx.globals.baseUrl === undefined && variable(ctx.env, 'RUSHES_BASE_URL') !== undefined)
    ctx.out.note('The service URL is from RUSHES_BASE_URL. To store it too, use --base-url.')
  const key = KEY_VARIABLES.find((name) => variable(ctx.env, name) !== undefined)
  if (key !== undefined) ctx.out.note(`${key} is set: commands use that API key instead.`)
  if (added.length > 0)
    ctx.out.note(`Set the service's models: ${added.map(([key, model]) => `${key}=${model}`).join(', ')}.`)
  if (unclear.length > 0)
    ctx.out.note(
      `Not set, because the service's list has invalid documents: ${unclear.join(', ')}. ` +
        'Use `rushes config set <key> <provider/name>`.',
    )
  return EXIT.ok
}

type ModelSetting = readonly [key: string, model: string]

const modelKey = (kind: Kind) => SETTINGS[MODEL_SETTINGS[kind]].key
const modelIn = (profile: RawProfile, kind: Kind) => settingsOf(profile, [modelKey(kind)])[modelKey(kind)]

/** A model that the user has set stays, unless it belongs to the service that this login replaces. */
function takesModel(profile: RawProfile, kind: Kind, origin: string): boolean {
  const before = storedKeyOf(profile)
  return modelIn(profile, kind) === undefined || (before !== undefined && before.origin !== origin)
}

/** Models to store in the profile. */
const newModels = (
  profile: RawProfile,
  models: ServiceModels,
  kinds: readonly Kind[],
): readonly ModelSetting[] =>
  kinds.flatMap((kind): readonly ModelSetting[] => {
    const model = models[kind]
    return model === undefined || model === modelIn(profile, kind) ? [] : [[modelKey(kind), model]]
  })

interface OfferedModels {
  readonly models: ServiceModels
  /** Kinds whose model depends on a document that is not valid. */
  readonly unclear: readonly Kind[]
}

/** Returns the default model of each kind in a service's list, or its only one. Invalid documents count too. */
export function defaultsIn(listed: readonly unknown[]): OfferedModels {
  const entries = listed.map((entry) => ({
    ...(isObject(entry) ? { kind: entry.kind, isDefault: Boolean(entry.default) } : {}),
    name: readModelDocument(entry, () => {})?.name,
  }))
  const choices = KINDS.map((kind) => {
    const ofKind = entries.filter((entry) => entry.kind === kind || typeof entry.kind !== 'string')
    const defaults = ofKind.filter(({ isDefault }) => isDefault)
    const candidates = defaults.length > 0 ? defaults : ofKind
    const names = candidates.flatMap(({ name }) => name ?? [])
    const isClear = names.length === candidates.length
    const model = isClear && (defaults.length > 0 || names.length === 1) ? names[0] : undefined
    return { kind, model, isUnclear: !isClear && names.length < 2 }
  })
  return {
    models: Object.fromEntries(choices.flatMap(({ kind, model }) => (model ? [[kind, model]] : []))),
    unclear: choices.flatMap(({ kind, isUnclear }) => (isUnclear ? [kind] : [])),
  }
}

async function webKey(ctx: Context, baseUrl: string): Promise<WebLogin> {
  const { logInOnWeb } = await import('../login/web-login.js')
  const { apiKey, models } = await logInOnWeb(ctx, baseUrl)
  return { apiKey: parseApiKey(apiKey, 'the service'), models }
}

const typedKey = async (ctx: Context, origin: string): Promise<WebLogin> => ({
  apiKey: parseApiKey(await readKey(ctx, origin), 'standard input'),
  models: {},
})

async function readKey({ stdin: openStdin, stderr, interrupts }: Context, origin: string): Promise<string> {
  const stdin = openStdin()
  if (stdin.isTTY !== true) {
    const { readFirstLine } = await import('../../host/first-line.js')
    const line = await readFirstLine(stdin, MAX_LINE_BYTES, interrupts.first)
    if (line.trim() === '') throw emptyStdin('the API key')
    return line
  }
  const { default: password } = await import('@inquirer/password')
  try {
    return await password(
      { message: `API key for ${origin}` },
      { input: stdin, output: stderr, signal: interrupts.first },
    )
  } catch (error) {
    interrupts.first.throwIfAborted()
    // The prompt itself handles Ctrl-C and Ctrl-D, and then rejects.
    throw new RushesError('interrupted', 'No API key was entered; nothing was stored.', { cause: error })
  }
}

/**
 * Requests a run that cannot exist. For a valid key the service returns 404 `run_not_found`, at no cost. Then asks for
 * the list of models, and returns it; undefined if the service sends none.
 */
async function checkKey(
  ctx: Context,
  baseUrl: string,
  apiKey: string,
): Promise<readonly unknown[] | undefined> {
  const client = await ctx.clientFor(baseUrl, apiKey)
  try {
    await client.get(`login-check-${randomBytes(8).toString('hex')}`, ctx.interrupts.first)
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
    if (error.code !== 'run_not_found')
      throw error.with({
        consequence: 'The API key was not stored.',
        // The requested run is not one of the user's.
        runId: undefined,
        hint:
          error.exitCode === EXIT.key
            ? "Check that you copied the whole key. Keys are created and enabled in the account's settings (API keys)."
            : `${error.hint ?? ''} To store the key without this check, add --no-verify.`.trim(),
      })
  }
  const { accountOfKey } = await import('../settings/quick-settings.js')
  return listOf(ctx, { address: baseUrl, account: accountOfKey(apiKey) }, client)
}

async function listOf(
  { configFolder, stateFolder, clock, interrupts, out }: Context,
  { address, account }: ListOwner,
  client: ApiClient,
): Promise<readonly unknown[] | undefined> {
  const { createKnownModels } = await import('../models/known-models.js')
  let listed: readonly unknown[] | undefined
  const models: AskService['models'] = async (_, signal) => {
    // Without an ETag: the kept list does not have the invalid documents.
    const outcome = await client.models(undefined, signal)
    if (outcome.kind === 'list') listed = outcome.models
    return outcome
  }
  const ask = { clock, signal: interrupts.first, warn: out.warn, models }
  await createKnownModels({ configFolder, stateFolder, address, account, ask }).refreshInTime()
  return listed
}
