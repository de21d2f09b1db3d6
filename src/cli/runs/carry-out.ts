/** Carries out the runs of `run`, `wait` and `download`: the engine yields, the view and the printer show. */
import { Namer } from '../../download/file-names.js'
import type { Journal, Policy } from '../../journal/index.js'
import { deliver, deliveryError } from '../../runs/deliver.js'
import type { Begin, Delivery as Delivered, Row, Run, RunsSession } from '../../runs/run.js'
import { carryOut, type RunEvent, stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import type { TransferProgress } from '../terminal/spinner.js'
import { InOrder, type PrinterOptions, printRun, RunPrinter } from './print-run.js'
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

/** What every command of this process tells the engine. */
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
): Promise<{ readonly code: number; readonly sent: number }> {
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
    ...{ ctx, delivery, creates, isFree, isFollowed },
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
  view.end(session)
  return { code: printer.end(), sent: printer.sent }
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
    { progress }: RunsView,
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
          progress.transfer(id, transfer)
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
