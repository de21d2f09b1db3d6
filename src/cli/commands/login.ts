/**
 * `rushes login`: reads the key from a hidden prompt or standard input, checks it, and stores it. `rushes logout` removes
 * it.
 */
import type { Command } from 'commander'
import { parseApiKey } from '../../client/service-access.js'
import { EXIT, RushesError, usageError } from '../../errors.js'
import { isUsableName } from '../../protocol/model-document.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { isObject } from '../../protocol/parse.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { emptyStdin, readFirstLine } from '../process/io.js'
import { type RawProfile, settingOf, storedKeyOf, withValue } from '../settings/config-file.js'
import { checkKey, MAX_LINE_BYTES } from '../settings/key.js'
import { missingError, NO_BASE_URL, serviceUrlOf } from '../settings/settings.js'
import { keyVariableIn, modelSetting, SETTINGS } from '../settings/table.js'
import { askLine } from '../terminal/confirm.js'

export function register(command: Command, { act }: CommandEnvironment): void {
  command.option('--no-verify', 'Store the key without checking it at the service')
  act(command, loginCommand, { createsProfile: true, ignoresLocal: true })
}

export function registerLogout(command: Command, { act }: CommandEnvironment): void {
  act(command, logoutCommand, { ignoresLocal: true })
}

async function loginCommand(ctx: Context, { verify }: { readonly verify: boolean }): Promise<number> {
  const { out, env, globals } = ctx
  if (globals.local)
    throw usageError('--local needs no API key.', 'Try `rushes run image --local "a red fox"`.')
  const configured = await ctx.findAddress()
  const baseUrl = configured ?? (await askAddress(ctx))
  const { origin } = new URL(baseUrl)
  const apiKey = parseApiKey(await readKey(ctx, origin), 'standard input')
  const offered = verify ? defaultsIn(await askService(ctx, ctx.at(baseUrl, apiKey), origin)) : {}
  let models: readonly ModelSetting[] = []
  await ctx.config.update(ctx.profileName, (profile) => {
    models = newModels(profile, offered, origin)
    const address: readonly ModelSetting[] =
      configured === undefined || globals.baseUrl !== undefined ? [[SETTINGS.baseUrl.key, baseUrl]] : []
    const withKey = withValue(profile, 'apiKey', { value: apiKey, origin })
    return [...address, ...models].reduce((all, [key, value]) => withValue(all, key, value), withKey)
  })
  out.note(
    `${verify ? 'The service accepted the API key.' : 'The API key was not checked.'} Stored for ${origin} in ` +
      `${ctx.config.path}.`,
  )
  // They come before the stored key.
  const key = keyVariableIn(env)
  if (key !== undefined) out.note(`${key} is set: commands use that API key instead.`)
  if (models.length > 0)
    out.note(`Set the service's models: ${models.map(([name, model]) => `${name}=${model}`).join(', ')}.`)
  return EXIT.ok
}

/** Throws `no_base_url` without a terminal, and without an answer. */
async function askAddress(ctx: Context): Promise<string> {
  const text = await askLine(ctx, 'Service URL:')
  if (!text)
    throw missingError([NO_BASE_URL]).with({
      hint: 'Give the URL of the service: `rushes login --base-url <url>`.',
    })
  return serviceUrlOf(text, ctx.env)
}

async function readKey({ stdin: openStdin, stderr, interrupts }: Context, origin: string): Promise<string> {
  const stdin = openStdin()
  if (stdin.isTTY !== true) {
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
 * Checks the key, then asks for the list of models, and returns it; it is empty if the service sends none. A service that is
 * not reached is tried again for some seconds.
 */
async function askService(
  { interrupts, out }: Context,
  session: Context,
  origin: string,
): Promise<readonly unknown[]> {
  const { client } = await session.connect()
  out.note(`Checking the API key at ${origin}. Without an answer, it is tried again for some seconds.`)
  try {
    await checkKey(client, interrupts.first)
  } catch (error) {
    if (!(error instanceof RushesError)) throw error
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
  const models = await session.models()
  const outcome = await models.ask()
  return outcome.kind === 'list' ? outcome.models : []
}

type ServiceModels = Readonly<Partial<Record<Kind, string>>>
type ModelSetting = readonly [key: string, value: string]

/** Returns the default model of each kind in a service's list, or its only one. Invalid documents count too. */
export function defaultsIn(listed: readonly unknown[]): ServiceModels {
  const models = KINDS.map((kind) => {
    const ofKind = listed.filter(isObject).filter((entry) => entry.kind === kind)
    const [byDefault] = ofKind.filter((entry) => entry.default === true)
    return [kind, (byDefault ?? (ofKind.length === 1 ? ofKind[0] : undefined))?.name] as const
  })
  return Object.fromEntries(models.filter(([, name]) => isUsableName(name)))
}

/** Models to store. One that is set stays, unless it belongs to the service that this login replaces. */
function newModels(profile: RawProfile, offered: ServiceModels, origin: string): readonly ModelSetting[] {
  const isOther = (storedKeyOf(profile)?.origin ?? origin) !== origin
  return KINDS.flatMap((kind) => {
    const { key } = modelSetting(kind)
    const model = offered[kind]
    const isKept = settingOf(profile, key) !== undefined && !isOther
    return model === undefined || isKept ? [] : [[key, model] as const]
  })
}

async function logoutCommand(ctx: Context): Promise<number> {
  const { out, config, profileName } = ctx
  const stored = storedKeyOf(ctx.profile())
  if (stored === undefined) {
    out.note(`The profile ${profileName} has no stored API key.`)
    return EXIT.ok
  }
  await config.update(profileName, (profile) => withValue(profile, 'apiKey', undefined))
  out.note(
    `Removed the API key for ${stored.origin} from this machine. It still works at the service: ` +
      `to revoke it, disable it in the account's settings (API keys).`,
  )
  return EXIT.ok
}
