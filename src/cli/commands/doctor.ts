/**
 * `rushes doctor`: checks config, address, models, one request, key, disk and journal. It changes nothing, and sends at most
 * two requests, which cost nothing. A check that throws has failed.
 */
import { randomBytes } from 'node:crypto'
import { existsSync, statfsSync, statSync } from 'node:fs'
import { join, resolve } from 'node:path'
import type { Command } from 'commander'
import { networkError } from '../../client/requests.js'
import { RushesError, usageError } from '../../errors.js'
import { integrityOf, sizeOfDatabase } from '../../host/database.js'
import { isPosix, nearestFolder, reasonUnwritable } from '../../host/file-system.js'
import { HttpFailure } from '../../host/http.js'
import { asRushesError, Interruption } from '../../host/interrupts.js'
import { describeError, isBusy } from '../../host/system-error.js'
import { JOURNAL_FILE } from '../../journal/index.js'
import { KINDS, type Kind } from '../../protocol/models.js'
import { onOneLine, printable } from '../../protocol/text.js'
import { formatBytes } from '../../protocol/units.js'
import { LOCAL_MODELS } from '../../service/rules/names.js'
import type { CommandEnvironment, Context } from '../context/context.js'
import { exitCodeOf } from '../process/exit.js'
import { modelFor, wrongKind } from '../settings/settings.js'
import { LOCAL_ADDRESS, modelSetting } from '../settings/table.js'
import { plural } from '../terminal/format.js'

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
  return exitCodeFor(found)
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
  for (const line of advice?.split('\n') ?? []) out.line(`${' '.repeat(16)}${printable(line.trim())}`)
}

/** What one check found, or one of several things that it looked at. */
interface Part {
  readonly status: 'ok' | 'warning' | 'failed' | 'skipped'
  readonly message: string
  /** What the user can do to fix the problem. */
  readonly advice?: string | undefined
  /** Exit code of the command when this is the only failed check. */
  readonly exitCode?: number
}

interface Finding extends Part {
  readonly check: string
}

const ok = (message: string, advice?: string): Part => ({ status: 'ok', message, advice })

const warning = (message: string, advice?: string): Part => ({ status: 'warning', message, advice })

/** Runs the parts of a check. Reports the problems, or else everything that is well. Rejects only after a signal. */
export async function check(
  name: string,
  ...works: readonly (() => Part | Promise<Part>)[]
): Promise<Finding> {
  const parts = await Promise.all(works.map(attempt))
  const problems = parts.filter(({ status }) => status !== 'ok')
  const shown = problems.length > 0 ? problems : parts
  const failed = problems.filter(({ status }) => status === 'failed')
  return {
    check: name,
    status: failed.length > 0 ? 'failed' : problems.length > 0 ? 'warning' : 'ok',
    message: shown.map(({ message }) => message).join('; '),
    advice: [...new Set(shown.flatMap(({ advice }) => advice ?? []))].join('\n') || undefined,
    ...(failed.length > 0 && { exitCode: exitCodeFor(failed) }),
  }
}

async function attempt(work: () => Part | Promise<Part>): Promise<Part> {
  try {
    return await work()
  } catch (thrown) {
    if (thrown instanceof Interruption) throw thrown
    const { message, hint: advice, exitCode } = asRushesError(thrown)
    return { status: 'failed', message, advice, exitCode }
  }
}

const exitCodeFor = (parts: readonly Part[]): number =>
  exitCodeOf(parts.flatMap(({ exitCode }) => (exitCode === undefined ? [] : [{ exitCode }])))

/** Yields each finding as soon as its check is done. */
async function* checkAll(ctx: Context): AsyncGenerator<Finding> {
  const config = await check('config', () => checkConfig(ctx))
  yield config
  if (config.status === 'failed')
    yield* skipped('the settings cannot be read', 'address', 'models', 'request', 'key')
  else yield* checkService(ctx)
  yield await check('disk', ...['.', ctx.stateFolder].map((path) => () => checkDisk(path)))
  yield await check('journal', () => checkJournal(ctx))
}

async function* checkService(ctx: Context): AsyncGenerator<Finding> {
  const address = await check('address', () => checkAddress(ctx))
  yield address
  const isInvalid = address.status === 'failed'
  const url = isInvalid || ctx.globals.local ? undefined : await ctx.findAddress()
  const hasService = url !== undefined || isInvalid
  yield await check('models', ...KINDS.map((kind) => () => checkModel(ctx, kind, hasService)))
  if (url === undefined) {
    const reason = ctx.globals.local ? 'not needed with --local' : 'no service'
    yield* skipped(isInvalid ? 'the address is not valid' : reason, 'request', 'key')
    return
  }
  const request = await check('request', () => checkRequest(ctx, new URL(url)))
  yield request
  if (request.status === 'failed') yield* skipped('the service was not reached', 'key')
  else yield await check('key', () => checkKey(ctx))
}

const skipped = (reason: string, ...checks: readonly string[]): readonly Finding[] =>
  checks.map((check) => ({ check, status: 'skipped', message: `not checked: ${reason}` }))

function checkConfig(ctx: Context): Part {
  const { config, profileName } = ctx
  const { path } = config
  const profile = profileName === 'default' ? '' : `, profile ${profileName}`
  if (!existsSync(path)) return ok(`no config file (${path})${profile}`)
  ctx.profile()
  return isPosix && (statSync(path).mode & 0o077) !== 0
    ? warning(`other users can read ${path}`, `The file may contain the API key. Run \`chmod 600 ${path}\`.`)
    : ok(`${path}${profile}`)
}

async function checkAddress(ctx: Context): Promise<Part> {
  const address = await ctx.findAddress()
  if (address === undefined) return ok('no service configured: `--local` works, without key and cost')
  if (ctx.globals.local) return ok('the local service in this process')
  return ok(address)
}

/** Checks the model of a kind, and its model file if that is known. */
async function checkModel(ctx: Context, kind: Kind, hasService: boolean): Promise<Part> {
  const model = await modelFor(ctx, kind)
  if (model === undefined) {
    if (!hasService) return ok(`${kind}: ${LOCAL_MODELS[kind]} with --local`)
    const { environment, key } = modelSetting(kind)
    return warning(
      `${kind}: not set`,
      `Set ${environment} or run \`rushes config set ${key} <provider/name>\`; or add --model to each \`rushes run ${kind}\`.`,
    )
  }
  const models = await ctx.models()
  // Before it says no: the kept list may be old.
  if (models.listedAtMs !== undefined && models.find(model)?.kind !== kind) await models.ask()
  const document = models.find(model)
  if (document !== undefined && document.kind !== kind) throw wrongKind(document, kind, false)
  return document !== undefined || models.isInvalid(model) || models.listedAtMs === undefined
    ? ok(`${kind}: ${model}`)
    : warning(
        `${model} is not in the service's list of models`,
        'Run `rushes models --refresh` to see its models, then change the setting.',
      )
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

/** Requests a run that cannot exist. For a valid key the service returns `run_not_found`. */
async function checkKey(ctx: Context): Promise<Part> {
  const { client } = await ctx.connect()
  try {
    await client.get(`doctor-check-${randomBytes(8).toString('hex')}`, ctx.interrupts.first)
  } catch (thrown) {
    if (thrown instanceof RushesError && thrown.code === 'run_not_found') return ok('accepted by the service')
    throw thrown
  }
  return warning(
    'the service returned a run for a random id',
    'Check the service URL: another kind of server may be running there.',
  )
}

const MIN_SPACE_BYTES = 100 * 1024 ** 2

/** Free space in bytes. Throws the system's errors: some file systems and sandboxes do not tell it. */
function freeBytesIn(path: string): number {
  const { bavail, bsize } = statfsSync(nearestFolder(resolve(path, 'file')))
  return bavail * bsize
}

/** Checks the free space for downloads, or for the journal. Throws `download_failed` if there is next to none. */
export function checkDisk(path: string, readFreeBytes = freeBytesIn): Part {
  let bytes: number
  try {
    bytes = readFreeBytes(path)
  } catch (error) {
    return warning(`the free space could not be read: ${describeError(error, path)}`)
  }
  const free = `${formatBytes(bytes)} free in ${path}`
  if (bytes >= MIN_SPACE_BYTES) return ok(free)
  throw new RushesError('download_failed', free, {
    hint: 'Free some space, or download to another disk with -o.',
  })
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
  const unfinished = journal.unfinished()
  const where = `${path}, ${formatBytes(sizeOfDatabase(path))}`
  if (unfinished.length === 0) return ok(where)
  const flags = unfinished.every(({ address }) => address === LOCAL_ADDRESS) ? '--local --all' : '--all'
  return ok(
    `${where}, ${plural(unfinished.length, 'unfinished run')}`,
    `Wait for them with \`rushes wait ${flags}\`.`,
  )
}
