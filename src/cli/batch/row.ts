/** One run of a batch: created, looked at, its output put in place; and what the lock file knows of it at each moment. */
import { relative } from 'node:path'
import type { LockKeeper } from '../../batch/lock/keeper.js'
import type { LockEntry, Made, Pending, Placing } from '../../batch/lock/lock.js'
import { publicUrl } from '../../batch/lock/lock.js'
import { inputToSend } from '../../batch/manifest/index.js'
import type { FetchAction, MakeAction, Step } from '../../batch/plan/index.js'
import type { Looked } from '../../batch/schedule/index.js'
import type { Client, LookOutcome } from '../../client/index.js'
import { nextTryMs } from '../../client/pace.js'
import { afterFailure, isExhausted, type Patience, UNTRIED } from '../../client/patience.js'
import type { Downloader } from '../../download/index.js'
import { createNamer } from '../../download/index.js'
import { RushesError } from '../../errors.js'
import { copyAtomically } from '../../host/files.js'
import type { RunState } from '../../protocol/run.js'
import type { Context } from '../context/context.js'
import { asRushesError } from '../process/exit.js'
import type { Recorder } from '../runs/record.js'
import { encodeRequest } from '../runs/request.js'
import { withRunOutputs } from '../runs/run-outputs.js'
import { submit } from '../runs/submit.js'
import { runFailed } from '../runs/watch.js'

export interface RowParts {
  readonly ctx: Context
  readonly client: Pick<Client, 'create' | 'look' | 'get'>
  readonly recorder: Recorder
  readonly downloader: Downloader
  readonly keeper: LockKeeper
  readonly address: string
  /** Absolute: the manifest's. */
  readonly folder: string
  readonly patienceMs: number | undefined
  readonly overwrite: boolean
  onStatus(step: Step, run: string, status: string): void
  onGrace(): void
  /** The lock file could not be written. What it lacks the journal knows. */
  onLockTrouble(error: unknown): void
}

export interface RowResult {
  readonly step: Step
  readonly result: 'made' | 'fetched' | 'failed' | 'unconfirmed'
  readonly made?: Made | undefined
  readonly run?: string | undefined
  readonly error?: RushesError | undefined
  readonly warnings?: readonly string[]
}

/** A step that is carried out. */
export type Active = Step & { readonly action: FetchAction | MakeAction }

export interface RowTask {
  readonly group: string
  create?: () => Promise<boolean>
  look(): Promise<Looked>
}

/** A replica may be behind for that long after the create. */
const REPLICA_LAG_MS = 10_000

export function createRow(parts: RowParts, step: Active, settle: (result: RowResult) => void) {
  const { ctx, client, recorder, keeper, address } = parts
  const { clock, interrupts } = ctx
  const { entry, action } = step
  const before = keeper.entry(entry.name)
  let runId = action.do === 'fetch' ? action.run : undefined
  let createdAtMs: number | undefined
  let startedAtMs = clock.monotonic()
  let patience: Patience = UNTRIED
  let lastTryMs = startedAtMs
  let status: string | undefined
  const delivering: Promise<void>[] = []

  const keep = (pending: Pending | undefined): Promise<void> =>
    keeper.set(entry.name, entryWith(before, pending))
  /** Where a run exists already, a lock file that cannot be written is no reason to lose it. */
  const keepSafely = (pending: Pending | undefined): Promise<void> => keep(pending).catch(parts.onLockTrouble)
  const end = (result: Omit<RowResult, 'step' | 'run'>): void => settle({ ...result, step, run: runId })

  async function create(): Promise<boolean> {
    const { model = '', hash = '' } = step
    const pending = {
      hash,
      model,
      kind: entry.kind,
      service: address,
      sent_at: new Date(clock.now()).toISOString(),
    }
    let key: string | undefined
    let isSent = false
    try {
      const input = await withRunOutputs(ctx, client, await inputToSend(entry))
      const note = recorder.note({ kind: entry.kind, model, input, meaning: entry.meaning })
      const created = await submit({
        client,
        body: encodeRequest(model, input),
        clock,
        interrupts,
        note: () => ({
          ...note,
          unknown: (error) => {
            key = note.unknown(error)
            return key
          },
        }),
        beforeSend: async () => {
          isSent = true
          await keep({ ...pending, state: 'unconfirmed', key: undefined }).catch((error) => {
            parts.onLockTrouble(error)
            throw error
          })
        },
        onGrace: parts.onGrace,
      })
      runId = created.id
      createdAtMs = created.answeredAtMs
      startedAtMs = created.answeredAtMs
      await keepSafely({ ...pending, state: 'accepted', run: runId })
      parts.onStatus(step, runId, 'created')
      return true
    } catch (thrown) {
      const error = asRushesError(thrown)
      const isUnknown =
        error.code === 'submission_unknown' || (error.code === 'interrupted' && key !== undefined)
      if (isUnknown) await keepSafely({ ...pending, state: 'unconfirmed', key })
      else if (isSent) await keeper.set(entry.name, before).catch(parts.onLockTrouble)
      end({ result: isUnknown ? 'unconfirmed' : 'failed', error })
      return false
    }
  }

  async function look(): Promise<Looked> {
    const id = runId ?? ''
    let outcome: LookOutcome
    try {
      outcome = await client.look(id, interrupts.first)
    } catch {
      // The schedule ends by the same signal.
      return { is: 'trouble', againInMs: 0 }
    }
    const nowMs = clock.monotonic()
    if (outcome.kind === 'state') {
      patience = UNTRIED
      lastTryMs = nowMs
      return onState(outcome.state)
    }
    const isLag =
      outcome.error.code === 'run_not_found' &&
      createdAtMs !== undefined &&
      nowMs - createdAtMs < REPLICA_LAG_MS
    if (outcome.kind === 'final' && !isLag) {
      if (outcome.error.code === 'run_not_found') recorder.missed(outcome.error, id)
      end({ result: 'failed', error: outcome.error })
      return { is: 'over' }
    }
    patience = afterFailure(patience, nowMs - lastTryMs)
    lastTryMs = nowMs
    if (isExhausted(patience)) {
      end({ result: 'failed', error: outcome.error })
      return { is: 'over' }
    }
    const wish = outcome.kind === 'trouble' ? outcome.retryAfterMs : 0
    return { is: 'trouble', againInMs: nextTryMs(patience.failures, wish) }
  }

  function onState(state: RunState): Looked {
    const elapsedMs = createdAtMs === undefined ? undefined : clock.monotonic() - createdAtMs
    if (state.status !== status) {
      status = state.status
      recorder.saw({ state, elapsedMs, tookMs: tookOf(state) ?? elapsedMs })
      parts.onStatus(step, state.id, state.status)
    }
    if (state.phase === 'going') return isTooLate(state)
    if (state.phase === 'succeeded') delivering.push(deliver(state))
    else delivering.push(giveUp(state))
    return { is: 'over', tookMs: tookOf(state) }
  }

  function isTooLate({ id, status: said }: RunState): Looked {
    const { patienceMs } = parts
    if (patienceMs === undefined || clock.monotonic() - startedAtMs < patienceMs) return { is: 'going' }
    end({
      result: 'failed',
      error: new RushesError('wait_timeout', `The wait limit has passed (${said}); the run goes on.`, {
        runId: id,
        hint: 'The same batch goes on from there: nothing is paid again.',
      }),
    })
    return { is: 'over' }
  }

  /** It ended without success: what was made before stays what it is. */
  async function giveUp(state: RunState): Promise<void> {
    await keepSafely(undefined)
    end({ result: 'failed', error: runFailed(state) })
  }

  /** Killed between the renaming and the next writing of the lock file, a batch must know the file as its own. */
  function keepPlacing(run: string, placing: Placing): Promise<void> {
    const known = keeper.entry(entry.name)?.pending
    const { hash = '', model = '' } = step
    const sent_at = known?.sent_at ?? new Date(clock.now()).toISOString()
    return keep({ hash, model, kind: entry.kind, service: address, sent_at, state: 'accepted', run, placing })
  }

  async function deliver(state: RunState): Promise<void> {
    const target = { kind: 'template', template: step.path } as const
    const results = await parts.downloader
      .download(
        state.urls.map((url, at) => ({
          url,
          runId: state.id,
          kind: entry.kind,
          name: entry.rowName,
          freshUrl: async () => (await client.get(state.id, interrupts.first)).urls[at],
        })),
        {
          target,
          namer: createNamer(target),
          overwrite: action.replaces || parts.overwrite,
          signal: interrupts.first,
          earlier: recorder.filesOf(state.id),
          beforeMove: ({ sha256, bytes }) => keepPlacing(state.id, { sha256, bytes }),
        },
      )
      .catch((thrown: unknown) => [
        { ok: false as const, error: asRushesError(thrown).with({ runId: state.id }) },
      ])
    const [first] = results
    const files = results.flatMap((each) => (each.ok ? [each.file] : []))
    recorder.files(state.id, files)
    const failed = results.find((each) => !each.ok)
    if (first === undefined || !first.ok || failed !== undefined) {
      end({ result: 'failed', error: failed?.ok === false ? failed.error : undefined })
      return
    }
    const { url, bytes, sha256, content_type } = first.file
    const made: Made = {
      hash: step.hash ?? '',
      model: step.model ?? '',
      kind: entry.kind,
      run: state.id,
      service: address,
      url: publicUrl(url),
      file: relative(parts.folder, first.file.path).replaceAll('\\', '/'),
      sha256,
      bytes,
      content_type,
      made_at: new Date(clock.now()).toISOString(),
    }
    await keeper
      .set(entry.name, { made, pending: undefined, further: before?.further ?? {} })
      .catch(parts.onLockTrouble)
    const warnings = results.flatMap((each) => (each.ok ? each.warnings : []))
    end({ result: action.do === 'fetch' ? 'fetched' : 'made', made, warnings })
  }

  const task: RowTask = { group: step.model ?? '', look, ...(action.do === 'make' && { create }) }
  return { task, settled: () => Promise.all(delivering) }
}

const tookOf = ({ createdAt, finishedAt }: RunState): number | undefined =>
  createdAt === undefined || finishedAt === undefined
    ? undefined
    : Math.max(0, Date.parse(finishedAt) - Date.parse(createdAt))

const entryWith = (before: LockEntry | undefined, pending: Pending | undefined): LockEntry | undefined =>
  before?.made === undefined && pending === undefined
    ? undefined
    : { made: before?.made, pending, further: before?.further ?? {} }

/** A file that is here already, byte for byte: nobody is asked. */
export async function copyInPlace(
  { keeper, folder }: Pick<RowParts, 'keeper' | 'folder'>,
  step: Active,
): Promise<RowResult> {
  const before = keeper.entry(step.entry.name)
  const made = before?.made
  const from = step.action.do === 'fetch' ? step.action.copyFrom : undefined
  if (made === undefined || from === undefined) throw new Error('a copy is made of what the lock file knows')
  await copyAtomically(from, step.path)
  const moved: Made = { ...made, file: relative(folder, step.path).replaceAll('\\', '/') }
  await keeper.set(step.entry.name, { made: moved, pending: undefined, further: before?.further ?? {} })
  return { step, result: 'fetched', made: moved, run: made.run }
}
