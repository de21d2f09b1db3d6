/** Carries out the runs of `run`, `wait` and `download`: the engine yields, the printer prints. */
import { Namer } from '../../download/file-names.js'
import type { Policy } from '../../journal/index.js'
import { deliver, deliveryError } from '../../runs/deliver.js'
import type { CreateRequest, Delivery as Delivered, KnownRun, Row, Run, RunsSession } from '../../runs/run.js'
import { carryOut, type RunEvent, stopsCreating } from '../../runs/schedule.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { createProgress } from '../terminal/progress.js'
import type { TransferProgress } from '../terminal/spinner.js'
import type { Creates } from './create-errors.js'
import { inOrder, type PrinterOptions, printRun, RunPrinter } from './print-run.js'
import type { ResumeMany } from './resume.js'
import { writeSidecars } from './sidecar.js'

/** What a session of `rushes mcp` adds to a command that it runs. */
export interface Observer {
  /** Whether a create may be sent whose intent cannot be written. */
  readonly policy: Policy
  /** Called with each event, before it is printed. */
  see(event: RunEvent): void
}

interface CarryOutOptions {
  readonly connection: Connection
  readonly delivery: Delivery
  /** Existing runs, or the create of each new run. */
  readonly runs: readonly KnownRun[] | (Creates & { readonly request: CreateRequest })
  /** Whether to wait for the runs. If false, they are printed as soon as they exist. */
  readonly isFollowed: boolean
  /** How to resume when there are many runs. */
  readonly many: ResumeMany
  readonly observer: Observer | undefined
}

/** Resolves with the exit code, and with the number of creates that were accepted, or whose outcome is unknown. */
export async function carryOutRuns(
  ctx: Context,
  options: CarryOutOptions,
): Promise<{ readonly code: number; readonly sent: number }> {
  const { connection, delivery, runs, isFollowed, many, observer } = options
  const journal = await ctx.openJournal()
  const session: RunsSession = {
    client: connection.client,
    journal,
    policy: observer?.policy ?? 'best effort',
    address: await ctx.address(),
    profile: ctx.profileName,
    clock: ctx.clock,
    random: ctx.random,
    interrupts: ctx.interrupts,
    timeoutMs: delivery.patience === 'once' ? undefined : delivery.patience,
    isOnce: delivery.patience === 'once',
    isFollowed,
    stopsCreates: (error) => stopsCreating(error) || error.code === 'interrupted',
  }
  const begins = 'request' in runs ? createsOf(runs) : runs.map((run) => ({ is: 'follow', run }) as const)
  const progress = await createProgress(ctx, begins.length)
  const printer = new RunPrinter(ctx, {
    delivery,
    runs: begins.length,
    creates: 'request' in runs ? runs : undefined,
    isFollowed,
    many,
    journal,
    address: session.address,
    progress,
    print: await printOf(ctx, options),
  })
  const downloads =
    delivery.target &&
    (await openDownloads(ctx, options, session, {
      hintFor: (id) => `Download its outputs with \`${printer.downloadCommand(id)}\`.`,
      onTransfer: progress.transfer,
    }))
  const rows = begins.map(
    (begin, index): Row => ({
      name: String(index),
      begin: () => begin,
      ...(downloads !== undefined && { deliver: downloads.begin }),
    }),
  )
  for await (const event of carryOut(rows, session)) {
    observer?.see(event)
    if (event.is === 'ended') downloads?.skip(event.run)
    await printer.see(event)
  }
  return { code: await printer.end(), sent: printer.sent }
}

const createsOf = ({ count, request }: Creates & { readonly request: CreateRequest }) =>
  Array.from({ length: count }, () => ({ is: 'create', request: async () => request }) as const)

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

interface DownloadHooks {
  /** How to download the outputs of a run later. */
  hintFor(id: string): string
  onTransfer(id: string, progress: TransferProgress): void
}

/**
 * Downloads of a template start in the order of the runs, because it numbers the outputs of all runs. `skip` a run
 * without a download.
 */
async function openDownloads(
  ctx: Context,
  { connection, delivery }: CarryOutOptions,
  session: RunsSession,
  { hintFor, onTransfer }: DownloadHooks,
) {
  const { target = { kind: 'folder', folder: '.' }, overwrite, sidecar } = delivery
  const downloader = await ctx.downloader(connection.fetch)
  const namer = new Namer(target)
  const start = inOrder<() => void>((begin) => begin())

  async function download({ known, id, state, finishedAt, elapsedMs }: Run): Promise<Delivered> {
    if (known === undefined || state === undefined) return { files: [], warnings: [], error: undefined }
    const hint = hintFor(id)
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
      onProgress: (transfer) => onTransfer(id, transfer),
    })
    const { files, warnings } = delivered
    if (!sidecar || session.interrupts.first.aborted) return delivered
    const { address } = session
    const errors = await writeSidecars(files, { known, state, address, overwrite, finishedAt, elapsedMs })
    return { files, warnings, error: delivered.error ?? deliveryError(errors, hint, id) }
  }

  return {
    begin: (run: Run): Promise<Delivered> =>
      target.kind === 'template'
        ? new Promise((resolve, reject) => start(run.index, () => download(run).then(resolve, reject)))
        : download(run),
    skip: (run: Run) => start(run.index, undefined),
  }
}
