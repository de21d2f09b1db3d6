/** What the commands that wait have in common: follow runs, deliver their outputs, print in order, sum up. */
import { dirname, resolve } from 'node:path'
import { obstacleAt } from '../../download/move-into-place.js'
import { createNamer, knownPaths } from '../../download/names.js'
import { EXIT, messageOf, type RushesError, usageError } from '../../errors.js'
import { reasonUnwritable } from '../../host/directories.js'
import { printable } from '../../protocol/text.js'
import type { Connection, Context } from '../context/context.js'
import type { Delivery } from '../flags/delivery.js'
import { exitCodeOf } from '../process/exit.js'
import { createProgress, type Progress } from '../terminal/progress.js'
import { type RunRecord, runJson } from '../terminal/run-json.js'
import { collect } from './collect.js'
import type { Following, Known } from './follow.js'
import { inOrder } from './in-order.js'
import { resumeCommand } from './resume.js'
import { sidecarOf } from './sidecar.js'
import { type Watched, watch } from './watch.js'

export interface Session {
  readonly progress: Progress
  /** Follows a run to its end and prints it in its turn. Never rejects. */
  follow(index: number, known: Known): Promise<void>
  /** A run that does not exist, or that is not waited for: it has its turn, and perhaps an error. */
  settle(index: number, record: RunRecord | undefined, error?: RushesError): void
  /** The exit code of the whole command. */
  end(): number
}

export interface SessionOptions {
  readonly ctx: Context
  readonly connection: Connection
  readonly delivery: Delivery
  readonly runs: number
}

interface Turn {
  readonly record: RunRecord | undefined
  readonly error: RushesError | undefined
}

export async function openSession({ ctx, connection, delivery, runs }: SessionOptions): Promise<Session> {
  const { out, clock, interrupts } = ctx
  const progress = await createProgress(ctx, runs)
  const errors: RushesError[] = []
  const recorder = await ctx.recorder()
  const following: Following = {
    client: connection.client,
    clock,
    interrupts,
    delivery,
    downloader: delivery.target === undefined ? undefined : await ctx.downloader(connection.fetch),
    namer: delivery.target === undefined ? undefined : createNamer(delivery.target),
    stdout: () => ctx.stdout,
    recorder,
    address: await ctx.address(),
    resume: (id, verb) => resumeCommand({ globals: ctx.globals, delivery: delivery.again }, verb, id),
    warn: out.warn,
    onState: (id, state) => progress.status(id, state.status),
    onTrouble: (id, error) => {
      progress.activity('no good answer, trying again')
      out.debug(`run ${id}: ${error.message}`)
    },
    onTransfer: progress.transfer,
  }

  const turns = inOrder<Turn>(({ record, error }) => {
    if (record !== undefined) print(ctx, record, delivery)
    if (error === undefined) return
    errors.push(error)
    const unsaid = interrupts.first.aborted && error.exitCode === EXIT.stdoutClosed
    if (!unsaid) out.error(error)
  })

  /**
   * Names count over the outputs of all runs in their order, and are given as a download begins: with a template, a
   * run's download begins after that of the run before it, or after that one has ended without.
   */
  const begun: Beginning[] = Array.from({ length: runs }, createBeginning)
  const collectInTurn = async (index: number, watched: Watched): Promise<RunRecord> => {
    if (delivery.target?.kind === 'template') await begun[index - 1]?.promise
    const record = collect(following, watched)
    begun[index]?.resolve()
    return record
  }

  return {
    progress,
    async follow(index, known) {
      progress.runBegan(known.model, known.model === undefined ? undefined : recorder.usual(known.model))
      const record = await collectInTurn(index, await watch(following, known))
      progress.runEnded(known.id)
      turns.settle(index, { record, error: record.error })
      if (delivery.open && record.error === undefined) await openResults(ctx, record)
    },
    settle(index, record, error) {
      begun[index]?.resolve()
      progress.runEnded()
      turns.settle(index, { record, error })
    },
    end() {
      progress.end()
      return exitCodeOf(errors)
    },
  }
}

interface Beginning {
  readonly promise: Promise<void>
  resolve(): void
}

function createBeginning(): Beginning {
  let resolve = () => {}
  const promise = new Promise<void>((settle) => {
    resolve = settle
  })
  return { promise, resolve }
}

function print({ out }: Context, record: RunRecord, { target }: Delivery): void {
  if (out.mode.json) out.json(runJson(record))
  else if (target?.kind === 'stdout') return
  else if (target !== undefined) for (const { path } of record.files) out.line(printable(path))
  else if (record.state?.phase === 'succeeded') for (const url of record.state.urls) out.line(printable(url))
}

async function openResults(ctx: Context, { files, state }: RunRecord): Promise<void> {
  const results = files.length > 0 ? files.map(({ path }) => path) : (state?.urls ?? [])
  for (const result of results) {
    try {
      await ctx.openResult(result)
    } catch (error) {
      ctx.out.warn(`${result} could not be opened: ${messageOf(error)}`)
    }
  }
}

/** Files in the way, and folders that cannot be written, are found before anything is paid for. Throws `usage`. */
export async function checkTarget(
  { target, overwrite, sidecar }: Delivery,
  runs: number,
  kind: string | undefined,
  /** Absolute paths of files that may be there: they are what is asked for. */
  own: readonly string[] = [],
): Promise<void> {
  if (target === undefined || target.kind === 'stdout') return
  const folder = target.kind === 'folder' ? target.folder : dirname(target.template)
  // A folder whose name waits for the run is looked at from the last one that is certain.
  const reason = reasonUnwritable(folder.replace(/[^/\\]*\{.*$/s, '') || '.')
  if (reason !== undefined)
    throw usageError(
      `Outputs cannot be written: ${reason}; nothing was sent.`,
      'Name another place: -o <path>.',
    )
  const paths = knownPaths(target, { count: runs, kind })
  for (const path of sidecar ? paths.flatMap((each) => [each, sidecarOf(each)]) : paths) {
    if (own.includes(resolve(path))) continue
    const obstacle = obstacleAt(path, overwrite)
    if (obstacle !== undefined) throw usageError(obstacle.message, obstacle.hint)
  }
}
