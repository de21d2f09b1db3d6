/**
 * `rushes doctor`: checks config, address, models, one request, key, disk and journal. It changes nothing, and sends at most
 * two requests, which cost nothing. A check that throws has failed.
 */
import { existsSync, statfsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { networkError } from '../../client/requests.js'
import { RushesError, usageError } from '../../errors.js'
import { integrityOf } from '../../host/database.js'
import { isPosix, nearestFolder, reasonUnwritable } from '../../host/file-system.js'
import { HttpFailure } from '../../host/http.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import { describeError, isBusy } from '../../host/system-error.js'
import { JOURNAL_FILE } from '../../journal/index.js'
import { KINDS } from '../../protocol/models.js'
import { onOneLine, printable } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { LOCAL_MODELS } from '../../service/rules/names.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { variable } from '../process/io.js'
import { exitCodeOf } from '../runs/error-groups.js'
import { checkKey } from '../settings/key.js'
import { modelsByKind, wrongKind } from '../settings/settings.js'
import { modelSetting, SETTING_NAMES } from '../settings/table.js'

export function register(command: Command, { act }: CommandEnvironment): void {
  act(command, doctorCommand)
}

/** Prints each finding as soon as its check is done. */
async function doctorCommand(ctx: Context): Promise<number> {
  const found: Finding[] = []
  for await (const finding of checkAll(ctx)) {
    found.push(finding)
    print(ctx, finding)
  }
  return exitCodeOf(found.flatMap(({ exitCode }) => (exitCode === undefined ? [] : [{ exitCode }])))
}

function print({ out }: Context, { check, status, message, advice }: Finding): void {
  if (out.mode.json) {
    out.json({ check, status, message, advice: advice === undefined ? null : onOneLine(advice) })
    return
  }
  const { green, yellow, red, dim } = out.style.out
  const colour = { ok: green, warning: yellow, failed: red, skipped: dim }[status]
  const label = (status === 'skipped' ? '-' : status).padEnd(8)
  out.line(`${colour(label)}${check.padEnd(7)} ${printable(message)}`)
  for (const line of advice?.split('\n') ?? [])
    out.line(`${' '.repeat(16)}${out.named(printable(line.trim()))}`)
}

interface Finding extends Part {
  readonly check: string
  /** Set by a failed check. */
  readonly exitCode?: number
}

/** What a check that did not throw has found. */
interface Part {
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly message: string
  /** What the user can do to fix the problem. */
  readonly advice?: string | undefined
}

const ok = (message: string): Part => ({ status: 'ok', message })

const warning = (message: string, advice: string): Part => ({ status: 'warning', message, advice })

/** Runs a check. Rejects only after a signal. */
async function check(name: string, work: () => Part | Promise<Part>): Promise<Finding> {
  try {
    return { check: name, ...(await work()) }
  } catch (thrown) {
    if (thrown instanceof Interruption) throw thrown
    const { message, hint: advice, exitCode } = asRushesError(thrown)
    return { check: name, status: 'failed', message, advice, exitCode }
  }
}

/** Yields each finding as soon as its check is done. */
async function* checkAll(ctx: Context): AsyncGenerator<Finding> {
  const config = await check('config', () => checkConfig(ctx))
  yield config
  if (config.status === 'failed')
    yield* skipped('the settings cannot be read', 'address', 'models', 'request', 'key')
  else yield* checkService(ctx)
  yield await check('disk', () => checkDisk(['.', ctx.stateFolder]))
  yield await check('journal', () => checkJournal(ctx))
}

async function* checkService(ctx: Context): AsyncGenerator<Finding> {
  const address = await check('address', () => checkAddress(ctx))
  yield address
  const isInvalid = address.status === 'failed'
  const url = isInvalid || ctx.globals.local ? undefined : await ctx.findAddress()
  const hasService = url !== undefined || isInvalid
  yield await check('models', () => checkModels(ctx, hasService))
  if (url === undefined) {
    const reason = ctx.globals.local ? 'not needed with --local' : 'no service'
    yield* skipped(isInvalid ? 'the address is not valid' : reason, 'request', 'key')
    return
  }
  const request = await check('request', () => checkRequest(ctx, new URL(url)))
  yield request
  if (request.status === 'failed') yield* skipped('the service was not reached', 'key')
  else yield await check('key', () => checkOwnKey(ctx))
}

const skipped = (reason: string, ...checks: readonly string[]): readonly Finding[] =>
  checks.map((check) => ({ check, status: 'skipped', message: `not checked: ${reason}` }))

function checkConfig(ctx: Context): Part {
  const { config, profileName, env } = ctx
  const { path } = config
  // Throws for a value that no command could use. Models have a check of their own.
  for (const name of SETTING_NAMES) if (!name.endsWith('Model')) ctx.setting(name)
  const variables = Object.keys(env).filter((name) => name.startsWith('RUSHES_') && variable(env, name))
  const profile = profileName === 'default' ? [] : [`profile ${profileName}`]
  // They come before the file.
  const more = [...profile, ...variables].map((each) => `, ${each}`).join('')
  if (!existsSync(path)) return ok(`no config file (${path})${more}`)
  return isPosix && (statSync(path).mode & 0o077) !== 0
    ? warning(`other users can read ${path}`, `The file may contain the API key. Run \`chmod 600 ${path}\`.`)
    : ok(`${path}${more}`)
}

async function checkAddress(ctx: Context): Promise<Part> {
  const address = await ctx.findAddress()
  if (address === undefined) return ok('no service configured: `--local` works, without key and cost')
  if (ctx.globals.local) return ok('the local service in this process')
  return ok(address)
}

/** Checks the models that are set, and their kinds where these are known. */
async function checkModels(ctx: Context, hasService: boolean): Promise<Part> {
  const set = await modelsByKind(ctx)
  const models = await ctx.models()
  for (const kind of KINDS) {
    const model = set[kind]
    if (model === undefined) continue
    // Before it says no: the kept list may be old.
    if (models.listedAtMs !== undefined && models.find(model)?.kind !== kind) await models.ask()
    const document = models.find(model)
    if (document !== undefined && document.kind !== kind) throw wrongKind(document, kind, false)
    if (document === undefined && !models.isInvalid(model) && models.listedAtMs !== undefined)
      return warning(
        `${model} is not in the service's list of models`,
        'Run `rushes models --refresh` to see its models, then change the setting.',
      )
  }
  const missing = hasService ? KINDS.filter((kind) => set[kind] === undefined) : []
  if (missing.length === 0)
    return ok(KINDS.map((kind) => `${kind}: ${set[kind] ?? `${LOCAL_MODELS[kind]} with --local`}`).join('; '))
  const advice = missing
    .map(modelSetting)
    .map(
      ({ environment, key }) =>
        `Set ${environment} or run \`rushes config set ${key} <provider/name>\`; or add --model.`,
    )
  return warning(`not set: ${missing.join(', ')}`, advice.join('\n'))
}

/** What a system answers where a sandbox forbids connections. */
const FORBIDDEN = ['EPERM', 'EACCES', 'ENETUNREACH']
const SANDBOX = 'A sandbox may forbid network connections to this process. `--local` needs none.'

/** Sends one request without the key. Any response proves the connection. */
async function checkRequest(ctx: Context, url: URL): Promise<Part> {
  const { clock, interrupts } = ctx
  const startedAtMs = clock.monotonic()
  const fetch = await ctx.fetch()
  const request = { method: 'GET', url, headers: { accept: '*/*' }, signal: interrupts.first } as const
  try {
    const response = await fetch(request)
    response.discard()
  } catch (error) {
    interrupts.first.throwIfAborted()
    if (!(error instanceof HttpFailure)) throw error
    const failure = networkError(error, url.host)
    throw FORBIDDEN.includes(error.code ?? '') ? failure.with({ hint: SANDBOX }) : failure
  }
  return ok(`connected (${Math.round(clock.monotonic() - startedAtMs)} ms)`)
}

async function checkOwnKey(ctx: Context): Promise<Part> {
  await checkKey((await ctx.connect()).client, ctx.interrupts.first)
  return ok('accepted by the service')
}

const MIN_SPACE_BYTES = 100 * 1024 ** 2

/** Free space in bytes. Undefined where it is not told, as on some file systems and in sandboxes. */
function freeBytesIn(path: string): number | undefined {
  try {
    const { bavail, bsize } = statfsSync(nearestFolder(resolve(path, 'file')))
    return bavail * bsize
  } catch {
    return undefined
  }
}

/** Checks the free space for downloads and for the journal. Throws `download_failed` if there is next to none. */
export function checkDisk(paths: readonly string[], readFreeBytes = freeBytesIn): Part {
  const texts = paths.map((path) => {
    const bytes = readFreeBytes(path)
    if (bytes === undefined) return `the free space of ${path} is not known`
    const free = `${formatBytes(bytes)} free in ${path}`
    if (bytes >= MIN_SPACE_BYTES) return free
    throw new RushesError('download_failed', free, {
      hint: 'Free some space, or download to another disk with -o.',
    })
  })
  return ok(texts.join('; '))
}

async function checkJournal(ctx: Context): Promise<Part> {
  const { stateFolder } = ctx
  const reason = reasonUnwritable(stateFolder)
  if (reason !== undefined)
    throw usageError(`cannot write the journal: ${reason}`, 'Set RUSHES_STATE_DIR to a writable folder.')
  const path = join(stateFolder, JOURNAL_FILE)
  if (!existsSync(path)) return ok('empty: no runs on this machine yet')
  return checkDatabase(path) ?? (await checkRuns(ctx, path))
}

/** Returns undefined if the database is well. Throws `usage`, or `service_error` for a damaged one. */
function checkDatabase(path: string): Part | undefined {
  try {
    const integrity = integrityOf(path)
    if (integrity === 'ok') return undefined
    throw new RushesError('service_error', `${path} is damaged: ${integrity}`, {
      hint: 'Copy the file if you want to recover its rows. The next command renames it and creates a new journal.',
    })
  } catch (error) {
    if (error instanceof RushesError) throw error
    const message = `could not be checked: ${describeError(error, path)}`
    if (isBusy(error)) return warning(message, 'Run `rushes doctor` again when the other process has ended.')
    throw usageError(message, 'Set RUSHES_STATE_DIR to a folder on a local disk.')
  }
}

/** Throws `submission_unknown` if the outcome of a create is unknown. */
async function checkRuns(ctx: Context, path: string): Promise<Part> {
  const journal = await ctx.journal()
  const unconfirmed = journal.unconfirmed()
  if (unconfirmed.length > 0)
    throw new RushesError(
      'submission_unknown',
      `unconfirmed: ${unconfirmed.map(({ key, model, address }) => `${key} (${model}, ${address})`).join(', ')}`,
      {
        hint:
          'A run may exist and cost money. Check the runs of your account, then remove it from the journal with ' +
          `\`rushes forget ${unconfirmed.map(({ key }) => `'${key}'`).join(' ')} --yes\`.`,
      },
    )
  return ok(path)
}
