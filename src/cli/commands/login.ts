/** `rushes login`: gets the key from a hidden prompt, standard input or the service's console, checks it and stores it. */
import { randomBytes } from 'node:crypto'
import { type Command, Option } from 'commander'
import { EXIT, RushesError, usageError } from '../../errors.js'
import type { Context } from '../context/context.js'
import { linesOf, readStdin } from '../process/stdin.js'
import { parseApiKey } from '../settings/key.js'
import { withValue } from '../settings/profile.js'
import type { CommandEnvironment } from './command-environment.js'

export interface LoginOptions {
  readonly verify: boolean
  readonly web?: boolean
}

export function register(command: Command, { run }: CommandEnvironment, logIn = loginCommand): void {
  command
    .addOption(new Option('--no-verify', 'Store the key without checking it at the service'))
    .addOption(new Option('--web', "Sign in on the service's console in a browser, which creates a key"))
    .action((flags: LoginOptions) =>
      run(command, (ctx) => logIn(ctx, flags), {
        createsProfile: true,
        ignoresLocal: true,
      }),
    )
}

export async function loginCommand(ctx: Context, { verify, web = false }: LoginOptions): Promise<number> {
  if (ctx.globals.local) throw usageError('--local needs no API key.')
  const baseUrl = await ctx.baseUrl()
  const { origin } = new URL(baseUrl)
  const apiKey = await (web ? webKey(ctx, baseUrl) : typedKey(ctx, origin))
  if (verify) await checkKey(ctx, baseUrl, apiKey)
  await ctx.config.update(ctx.profileName, (profile) => {
    const kept = withValue(profile, 'apiKey', { value: apiKey, origin })
    return ctx.globals.baseUrl === undefined ? kept : withValue(kept, 'baseUrl', baseUrl)
  })
  ctx.out.note(
    `${verify ? 'The service accepted the API key.' : 'The API key was not checked.'} Stored for ${origin} in ${ctx.config.path}.`,
  )
  return EXIT.ok
}

async function webKey(ctx: Context, baseUrl: string): Promise<string> {
  const { logInOnWeb } = await import('../login/web-login.js')
  return parseApiKey(await logInOnWeb(ctx, baseUrl), 'the service')
}

const typedKey = async (ctx: Context, origin: string): Promise<string> =>
  parseApiKey(await readKey(ctx, origin), 'standard input')

async function readKey({ stdin: open, stderr, interrupts }: Context, origin: string): Promise<string> {
  const stdin = open()
  if (stdin.isTTY !== true)
    return linesOf((await readStdin(open, 'the API key', interrupts.first)).toString('utf8'))[0] ?? ''
  const { default: password } = await import('@inquirer/password')
  try {
    return await password(
      { message: `API key for ${origin}` },
      { input: stdin, output: stderr, signal: interrupts.first },
    )
  } catch (error) {
    interrupts.first.throwIfAborted()
    // The prompt handles Ctrl-C and Ctrl-D itself.
    throw new RushesError('interrupted', 'No API key was entered; nothing was stored.', { cause: error })
  }
}

/** Asks for a run that cannot exist: a valid key gets 404 `run_not_found`, at no cost. */
async function checkKey(ctx: Context, baseUrl: string, apiKey: string): Promise<void> {
  const client = await ctx.clientFor(baseUrl, apiKey)
  try {
    await client.get(`login-check-${randomBytes(8).toString('hex')}`, ctx.interrupts.first)
  } catch (error) {
    if (error instanceof RushesError && error.code === 'run_not_found') return
    if (!(error instanceof RushesError)) throw error
    throw error.with({
      consequence: 'The API key was not stored.',
      hint:
        error.exitCode === EXIT.key
          ? "Check that you copied the whole key. Keys are created and enabled in the account's settings (API keys)."
          : `${error.hint ?? ''} To store the key without this check, add --no-verify.`.trim(),
    })
  }
}
