/**
 * `run`, `wait` and `download`: creates runs or finds existing ones, carries them out, and passes the events of the schedule
 * to the view and the printer.
 */
import { dirname, relative, resolve, sep } from 'node:path'
import { encodeCreate } from '../../client/create.js'
import { knownPaths, Namer } from '../../download/file-names.js'
import { obstacleAt } from '../../download/final-files.js'
import type { Downloader, Target } from '../../download/index.js'
import { EXIT, usageError } from '../../errors.js'
import { exists, nameProblem, reasonUnwritable } from '../../host/file-system.js'
import type { Journal, Policy } from '../../journal/index.js'
import { identityOf, withoutData } from '../../protocol/identity.js'
import { sourceFormOf } from '../../protocol/media.js'
import { type MediaSource, mediaSources } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { fill, holds, numbered } from '../../protocol/output-names.js'
import type { RunState } from '../../protocol/run-state.js'
import { deliver, deliveryError } from '../../runs/deliver.js'
import type { Begin, Delivery as Delivered, Row, Run, RunsSession } from '../../runs/run.js'
import { carryOut, type RunEvent, stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import { type Delivery, type DeliveryNeeds, type DeliveryOptions, deliveryOf } from '../flags/delivery.js'
import type { CostLimit } from '../models/cost-limit.js'
import { inTurns } from '../process/io.js'
import { resumeCommand } from '../settings/globals.js'
import type { RunRecord } from '../terminal/run-json.js'
import type { TransferProgress } from '../terminal/spinner.js'
import { isFinished } from './journal-rows.js'
import { InOrder, linesOf, printRun, RunPrinter, type RunsCommand } from './print-run.js'
import type { RunRequest } from './request.js'
import { RunsView } from './runs-view.js'
import { sidecarOf, writeSidecars } from './sidecar.js'

/** What a session of `rushes mcp` adds to a command that it runs. */
export interface Observer {
  /** Whether a create may be sent whose intent cannot be written. */
  readonly policy: Policy
  /** Called with each event, before it is printed. */
  see(event: RunEvent): void
  /** Called for every chunk of the outputs. */
  transfer(amount: TransferProgress): void
}

/** The part of a session that is the same for every command of this process. */
export const sessionOf = async (
  ctx: Context,
  { client }: Connection,
  journal: Journal | undefined,
): Promise<Omit<RunsSession, 'policy' | 'stopsCreates'>> => ({
  client,
  journal,
  address: await ctx.address(),
  profile: ctx.profileName,
  clock: ctx.clock,
  random: ctx.random,
  interrupts: ctx.interrupts,
})

export interface CreateRunsOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  readonly count: number
  /** A request whose model is known. */
  readonly request: RunRequest & { readonly model: string; readonly body: Uint8Array }
  readonly wait: boolean
  readonly labels: readonly string[]
  /** Name of the create, for a session that repeats it. */
  readonly requestId?: string | undefined
  readonly observer?: Observer | undefined
  /** Checked here, directly before the creates. */
  readonly limit: CostLimit
}

/** Creates the runs. Returns the exit code. Rejects with errors that occur before the first create. */
export async function createRuns(ctx: Context, options: CreateRunsOptions): Promise<number> {
  const { connection, delivery, count, request, wait, labels, limit, observer } = options
  const { kind, model, media } = request
  connection.checkModel?.(model)
  const input = await withRunOutputs(ctx, connection, request)
  const sent = {
    body: input === request.input ? request.body : encodeCreate({ model, input }),
    input: withoutData(input, media),
  }
  // What cannot be encoded is not counted.
  await limit.reserve(() => limit.prices.sum([request], count))
  const estimate = limit.prices.estimate(request)
  const intent = {
    kind,
    model,
    input,
    media,
    labels,
    estimate,
    requestId: options.requestId,
    folder: resolve('.'),
    // Equal for links to one output that differ at each call.
    identity: identityOf(model, request.input, media),
    dayLimit: limit.perDay,
  }
  const begins = Array.from({ length: count }, (_, index): Begin => {
    const output = outputOf(delivery, index)
    return { is: 'create', request: async () => ({ ...sent, intent: { ...intent, output } }) }
  })
  const isFree = ctx.globals.local && estimate?.millionths === 0
  const command = { ctx, connection, delivery, begins, isFree, isFollowed: wait }
  const { code, created } = await carryOutRuns(command, observer)
  const unsent = count - created
  limit.giveBack({ runs: unsent, millionths: unsent * (estimate?.millionths ?? 0) })
  // Exit code 2 means that nothing was sent.
  return code === EXIT.usage && created > 0 ? EXIT.runFailed : code
}

/** Loads the code for outputs of earlier runs only if they are used. */
async function withRunOutputs(
  ctx: Context,
  connection: Connection,
  { input, media }: RunRequest,
): Promise<ModelInput> {
  const isRun = ({ value }: MediaSource) => typeof value === 'string' && sourceFormOf(value) === 'run'
  if (!mediaSources(input, media).some(isRun)) return input
  const { OutputUrls } = await import('./run-outputs.js')
  const parts = { address: await ctx.address(), clock: ctx.clock, signal: ctx.interrupts.first }
  return new OutputUrls({ ...connection, ...parts }).ofRuns(ctx, input, media)
}

/**
 * The path of `-o` for the run with this index alone, for `wait --last`: as if each run before it had one output. Undefined
 * in a folder with braces in its name, which `wait` would fill in too.
 */
function outputOf({ target }: Delivery, index: number): string | undefined {
  if (target?.kind !== 'template' || resolve('.').includes('{')) return undefined
  const { template } = target
  const path = fill(template, { index: String(index + 1) })
  const isOwn = index === 0 || path !== template || holds(path, 'id') || holds(path, 'name')
  return resolve(isOwn ? path : numbered(path, index + 1, sep))
}

/** Finds existing runs, follows them and downloads their outputs, for `wait` and `download`. */
export async function revisit(
  ctx: Context,
  ids: readonly string[],
  options: DeliveryOptions,
  { isDownload = false, observer, isLast = false }: RevisitOptions,
): Promise<number> {
  const isNamed = options.download === true || options.output !== undefined
  const [last] = isLast && !isNamed ? ids : []
  const output = last === undefined ? undefined : await openOutput(ctx, last)
  const delivery = await deliveryOf(ctx, output ? { ...options, output } : options, {
    runs: ids.length,
    isDownload,
  })
  const connection = await ctx.connect({ render: delivery.patience !== 'once' })
  const journal = await ctx.openJournal()
  const address = await ctx.address()
  const find = (id: string) => journal.tryRead(() => journal.find(address, id))
  const own = () => {
    const rows = ids.flatMap((id) => find(id) ?? [])
    const files = rows.flatMap((row) => journal.filesOf(row).map(({ path }) => path))
    return delivery.sidecar ? files.flatMap((each) => [each, sidecarOf(each)]) : files
  }
  checkTarget(delivery, { runs: ids.length, own })
  const begins: Begin[] = []
  for await (const id of inTurns(ids, ctx.interrupts.first)) {
    const row = find(id)
    // Without the key of its provider, for example, its job could not be followed.
    if (row !== undefined && !isFinished(row) && delivery.patience !== 'once') await connection.checkRun?.(id)
    begins.push({ is: 'follow', run: { ...row, id } })
  }
  const command = { ctx, connection, delivery, begins, isFree: false, isFollowed: true }
  return (await carryOutRuns(command, observer)).code
}

interface RevisitOptions extends Omit<DeliveryNeeds, 'runs'> {
  readonly observer?: Observer | undefined
  /** Whether the run is that of the last command, whose `-o` counts until the run has a file. */
  readonly isLast?: boolean | undefined
}

/**
 * The `-o` of the command that created the run; undefined once the run has a file. The journal names a file before it is
 * there.
 */
async function openOutput(ctx: Context, id: string): Promise<string | undefined> {
  const journal = await ctx.journal()
  const run = journal.find(await ctx.address(), id)
  if (run?.output === undefined || journal.filesOf(run).some(({ path }) => exists(path))) return undefined
  // A file of this name is not standard output.
  return relative('.', run.output).replace(/^-$/, './-')
}

interface CheckTargetOptions {
  readonly runs: number
  readonly kind?: string | undefined
  /** Absolute paths of earlier files of these runs, which may exist. Called when a file exists. */
  own?(): readonly string[]
}

/** Values as long as real ones, to check a path before the run exists. */
const SAMPLES = { id: `run_${'x'.repeat(20)}`, index: '1', kind: 'image', name: 'x', ext: 'jpeg' }

/** Throws `usage` for files that exist and folders that cannot be written, before anything is paid for. */
export function checkTarget(
  { target, overwrite, sidecar }: Delivery,
  { runs, kind, own = () => [] }: CheckTargetOptions,
): void {
  if (target === undefined || target.kind === 'stdout') return
  const folder = target.kind === 'folder' ? target.folder : dirname(target.template)
  // If the name of the folder depends on the run, only the part before the first placeholder is checked.
  const reason =
    reasonUnwritable(folder.replace(/[^/\\]*\{.*$/s, '') || '.') ??
    nameProblem(fill(target.kind === 'folder' ? folder : target.template, SAMPLES))
  if (reason !== undefined)
    throw usageError(
      `Cannot write outputs: ${reason}. Nothing was sent.`,
      'Choose another path with -o <path>.',
    )
  let ownPaths: ReadonlySet<string> | undefined
  const paths = knownPaths(target, runs, kind)
  for (const path of sidecar ? paths.flatMap((each) => [each, sidecarOf(each)]) : paths) {
    const obstacle = obstacleAt(path, overwrite)
    if (obstacle === undefined) continue
    ownPaths ??= new Set(own())
    if (!ownPaths.has(resolve(path))) throw usageError(`${obstacle.message}.`, obstacle.hint)
  }
}

/** Resolves with the exit code, and with the number of creates that were accepted, or whose outcome is unknown. */
async function carryOutRuns(
  command: RunsCommand,
  observer: Observer | undefined,
): Promise<{ readonly code: number; readonly created: number }> {
  const { ctx, connection, delivery, begins, isFollowed } = command
  const session: RunsSession = {
    ...(await sessionOf(ctx, connection, await ctx.openJournal())),
    policy: observer?.policy ?? 'best effort',
    timeoutMs: delivery.patience === 'once' ? undefined : delivery.patience,
    isOnce: delivery.patience === 'once',
    isFollowed,
    stopsCreates: (error) => stopsCreating(error) || error.code === 'interrupted',
  }
  const view = await RunsView.open(ctx, begins.length)
  const printer = new RunPrinter(command, await printOf(command))
  const { target } = delivery
  const downloads = target && new Downloads(command, target, session, await ctx.downloader(connection.fetch))
  const onProgress = (amount: TransferProgress) => {
    view.transfer(amount)
    observer?.transfer(amount)
  }
  const rows = begins.map(
    (begin, index): Row => ({
      name: String(index),
      begin: () => begin,
      ...(downloads !== undefined && { deliver: (run, state) => downloads.deliver(run, state, onProgress) }),
    }),
  )
  for await (const event of carryOut(rows, session)) {
    observer?.see(event)
    if (event.is === 'ended') downloads?.skip(event.run)
    view.see(event)
    await printer.see(event)
  }
  view.end(session.journal, session.address)
  return { code: printer.end(), created: printer.sent }
}

/** Loads the code for pictures only if they are wanted. */
async function printOf(command: RunsCommand): Promise<(record: RunRecord) => void | Promise<void>> {
  const { ctx, connection, delivery, isFollowed } = command
  const pictures =
    delivery.show && isFollowed
      ? await (await import('./pictures.js')).openPictures(ctx, connection.fetch)
      : undefined
  if (pictures === undefined) return (record) => printRun(command, record)
  return (record) => pictures.printRun(record, linesOf(command, record))
}

/**
 * Downloads the outputs of runs. Downloads of a template start in the order of the runs, because it numbers the outputs of
 * all runs: `skip` a run without a download.
 */
class Downloads {
  readonly #command: RunsCommand
  readonly #target: Target
  readonly #session: RunsSession
  readonly #downloader: Downloader
  readonly #namer: Namer
  readonly #start = new InOrder<() => void>()

  constructor(command: RunsCommand, target: Target, session: RunsSession, downloader: Downloader) {
    this.#command = command
    this.#target = target
    this.#session = session
    this.#downloader = downloader
    this.#namer = new Namer(target)
  }

  deliver(run: Run, state: RunState, onProgress: OnProgress): Promise<Delivered> {
    if (this.#target.kind !== 'template') return this.#download(run, state, onProgress)
    return new Promise((resolve, reject) => {
      this.#next(run, () => this.#download(run, state, onProgress).then(resolve, reject))
    })
  }

  skip(run: Run): void {
    this.#next(run, undefined)
  }

  #next(run: Run, begin: (() => void) | undefined): void {
    for (const each of this.#start.add(run.index, begin)) each()
  }

  async #download(run: Run, state: RunState, onProgress: OnProgress): Promise<Delivered> {
    const { ctx, delivery } = this.#command
    const { id, known } = run
    const target = this.#target
    // Standard output takes a single output.
    const isTooMany = target.kind === 'stdout' && state.urls.length > 1
    const command = resumeCommand(ctx.globals, 'download', [id], isTooMany ? [] : delivery.again(1))
    const hint = `Download its outputs with \`${command}\`.`
    const delivered = await deliver(this.#session, state, {
      downloader: this.#downloader,
      run: { kind: known?.kind },
      row: known?.row,
      target,
      hint,
      stdout: target.kind === 'stdout' ? ctx.stdout : undefined,
      overwrite: delivery.overwrite,
      namesFor: async (urls, from) =>
        this.#namer.name(urls.slice(from).map(() => ({ runId: id, kind: known?.kind }))),
      onProgress,
    })
    const { files, warnings } = delivered
    const { address, interrupts } = this.#session
    if (!delivery.sidecar || interrupts.first.aborted) return delivered
    const errors = await writeSidecars(files, run, { address, overwrite: delivery.overwrite })
    return { files, warnings, error: delivered.error ?? deliveryError(errors, hint, id) }
  }
}

type OnProgress = (amount: TransferProgress) => void
