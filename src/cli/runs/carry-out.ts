/**
 * Creates the runs of `run`, and carries out those of `run`, `wait` and `download`: passes the events of the schedule to
 * the view and the printer.
 */
import { resolve, sep } from 'node:path'
import { encodeCreate } from '../../client/create.js'
import { Namer } from '../../download/file-names.js'
import { EXIT } from '../../errors.js'
import type { Journal, Policy } from '../../journal/index.js'
import { identityOf, withoutData } from '../../protocol/identity.js'
import { sourceFormOf } from '../../protocol/media.js'
import { type MediaSource, mediaSources } from '../../protocol/media-parameters.js'
import type { ModelInput } from '../../protocol/models.js'
import { fill, holds, numbered } from '../../protocol/output-names.js'
import { deliver, deliveryError } from '../../runs/deliver.js'
import type { Begin, Delivery as Delivered, Row, Run, RunsSession } from '../../runs/run.js'
import { carryOut, type RunEvent, stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import type { CostLimit } from '../models/cost-limit.js'
import type { TransferProgress } from '../terminal/spinner.js'
import { InOrder, type PrinterOptions, printRun, RunPrinter } from './print-run.js'
import type { RunRequest } from './request.js'
import { resumeCommand } from './resume.js'
import { RunsView } from './runs-view.js'
import { writeSidecars } from './sidecar.js'

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
  await limit.reserve(() => limit.prices.sum([request], count))
  const estimate = limit.prices.estimate(request)
  const sent = {
    body: input === request.input ? request.body : encodeCreate({ model, input }),
    input: withoutData(input, media),
  }
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
  const { code, created } = await carryOutRuns(ctx, {
    connection,
    delivery,
    begins,
    isFree,
    isFollowed: wait,
    observer,
  })
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

interface CarryOutOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  /** One for each run: all are creates, or all exist. */
  readonly begins: readonly Begin[]
  /** Whether creates cost nothing. */
  readonly isFree?: boolean
  /** Whether to wait for the runs. If false, they are printed as soon as they exist. */
  readonly isFollowed: boolean
  readonly observer: Observer | undefined
}

/** Resolves with the exit code, and with the number of creates that were accepted, or whose outcome is unknown. */
export async function carryOutRuns(
  ctx: Context,
  options: CarryOutOptions,
): Promise<{ readonly code: number; readonly created: number }> {
  const { connection, delivery, begins, isFree = false, isFollowed, observer } = options
  const session: RunsSession = {
    ...(await sessionOf(ctx, connection, await ctx.openJournal())),
    policy: observer?.policy ?? 'best effort',
    timeoutMs: delivery.patience === 'once' ? undefined : delivery.patience,
    isOnce: delivery.patience === 'once',
    isFollowed,
    stopsCreates: (error) => stopsCreating(error) || error.code === 'interrupted',
  }
  const view = await RunsView.open(ctx, begins.length)
  const creates = begins[0]?.is === 'create'
  const printer = new RunPrinter({
    ctx,
    delivery,
    creates,
    isFree,
    isFollowed,
    runs: begins.length,
    print: await printOf(ctx, options),
  })
  const downloads = delivery.target && (await Downloads.open(ctx, options, session, view))
  const rows = begins.map(
    (begin, index): Row => ({
      name: String(index),
      begin: () => begin,
      ...(downloads !== undefined && { deliver: (run) => downloads.begin(run) }),
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
async function printOf(
  ctx: Context,
  { delivery: { show }, connection: { fetch }, isFollowed }: CarryOutOptions,
): Promise<PrinterOptions['print']> {
  if (show === undefined || !isFollowed) return printRun
  const { openPictures } = await import('./pictures.js')
  const pictures = await openPictures(ctx, show, fetch)
  return pictures === undefined ? printRun : (_, record, options) => pictures.printRun(record, options)
}

/**
 * Downloads the outputs of runs. Downloads of a template start in the order of the runs, because it numbers the outputs of
 * all runs: `skip` a run without a download.
 */
class Downloads {
  readonly #start = new InOrder<() => void>()
  readonly #download: (run: Run) => Promise<Delivered>
  readonly #isNumbered: boolean

  static async open(
    ctx: Context,
    { connection, delivery, observer }: CarryOutOptions,
    session: RunsSession,
    view: RunsView,
  ): Promise<Downloads> {
    const { target = { kind: 'folder', folder: '.' }, overwrite, sidecar } = delivery
    const downloader = await ctx.downloader(connection.fetch)
    const namer = new Namer(target)
    return new Downloads(target.kind === 'template', async ({ known, id, state, finishedAt, elapsedMs }) => {
      if (known === undefined || state === undefined) return { files: [], warnings: [], error: undefined }
      const command = resumeCommand(ctx.globals, 'download', [id], delivery.again(1))
      const hint = `Download its outputs with \`${command}\`.`
      const delivered = await deliver(session, state, {
        downloader,
        run: { kind: known.kind },
        row: known.row,
        target,
        hint,
        stdout: target.kind === 'stdout' ? ctx.stdout : undefined,
        mayReplace: () => overwrite,
        namesFor: async (urls, from) =>
          namer.name(urls.slice(from).map(() => ({ runId: id, kind: known.kind }))),
        onProgress(transfer) {
          view.transfer(id, transfer)
          observer?.transfer(transfer)
        },
      })
      const { files, warnings } = delivered
      if (!sidecar || session.interrupts.first.aborted) return delivered
      const { address } = session
      const errors = await writeSidecars(files, { known, state, address, overwrite, finishedAt, elapsedMs })
      return { files, warnings, error: delivered.error ?? deliveryError(errors, hint, id) }
    })
  }

  private constructor(isNumbered: boolean, download: (run: Run) => Promise<Delivered>) {
    this.#isNumbered = isNumbered
    this.#download = download
  }

  begin(run: Run): Promise<Delivered> {
    if (!this.#isNumbered) return this.#download(run)
    return new Promise((resolve, reject) => {
      this.#next(run, () => this.#download(run).then(resolve, reject))
    })
  }

  skip(run: Run): void {
    this.#next(run, undefined)
  }

  #next(run: Run, begin: (() => void) | undefined): void {
    for (const each of this.#start.add(run.index, begin)) each()
  }
}
